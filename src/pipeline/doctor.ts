import { access, constants, stat, statfs } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { dirname } from 'node:path';
import process from 'node:process';
import { loadConfig } from '../config/load.ts';
import { loadMapping } from '../config/mapping.ts';
import { readMetas } from '../dataset/read.ts';
import { ForewarnError } from '../errors.ts';
import { runtimeInfo } from '../model/runtime-info.ts';
import { inspectModel } from '../model/inspect-model.ts';
import { findFamily } from '../plan/chat/family.ts';
import { openTemplate } from '../plan/chat/template.ts';
import { openTokenizer } from '../plan/tokenizer.ts';
import { resolveTaps } from './taps.ts';

export interface Finding {
  readonly what: string;
  readonly state: 'ok' | 'warning' | 'wrong';
  readonly detail: string;
}

const GIB = 2 ** 30;

async function check(what: string, work: () => Promise<string | { readonly warning: string }>): Promise<Finding> {
  try {
    const detail = await work();
    return typeof detail === 'string'
      ? { what, state: 'ok', detail }
      : { what, state: 'warning', detail: detail.warning };
  } catch (error) {
    if (!(error instanceof ForewarnError) && (error as NodeJS.ErrnoException).code === undefined) throw error;
    return { what, state: 'wrong', detail: (error as Error).message };
  }
}

async function machineFindings(folder: string): Promise<Finding[]> {
  const [major, minor] = process.versions.node.split('.').map(Number) as [number, number];
  return [
    {
      what: 'Node',
      state: major > 20 || (major === 20 && minor >= 19) ? 'ok' : 'wrong',
      detail: `${process.version}${major < 20 || (major === 20 && minor < 19) ? ': forewarn needs 20.19 or newer' : ''}`,
    },
    await check('onnxruntime', async () => {
      const info = await runtimeInfo();
      return `${info.version}, execution providers ${info.providers.join(', ')}`;
    }),
    {
      what: 'memory',
      state: totalmem() < 4 * GIB ? 'warning' : 'ok',
      detail: `${(totalmem() / GIB).toFixed(1)} GiB, ${availableParallelism()} cores`,
    },
    await check('disk', async () => {
      await access(folder, constants.W_OK);
      const fs = await statfs(folder);
      const free = fs.bavail * fs.bsize;
      return free < GIB
        ? { warning: `${(free / GIB).toFixed(1)} GiB free in ${folder}: activations may not fit` }
        : `${(free / GIB).toFixed(1)} GiB free in ${folder}`;
    }),
  ];
}

async function modelFindings(
  folder: string,
): Promise<{ findings: Finding[]; blocks: number; vocabulary: number | null }> {
  let blocks = 0;
  let vocabulary: number | null = null;
  const model = await check('model', async () => {
    const { info, taps, refused, warnings } = await inspectModel(folder, { hash: false });
    blocks = info.blocks;
    vocabulary = info.vocabularySize > 0 ? info.vocabularySize : null;
    const text = `${info.exporter}, ${info.blocks} blocks, width ${info.width}, context ${info.contextLimit ?? 'unknown'}, past state ${info.pastState}, ${taps.length} taps`;
    return refused === null && warnings.length === 0
      ? text
      : { warning: [text, refused, ...warnings].filter(Boolean).join('; ') };
  });
  const tokenizer = await check('tokenizer', async () => {
    const open = await openTokenizer(folder, vocabulary);
    return `${open.vocabularySize.toLocaleString('en')} tokens, sha256 ${open.sha256.slice(0, 12)}`;
  });
  const template = await check(
    'chat template',
    async () => `sha256 ${(await openTemplate(folder, {}, {}, '2026-01-01')).sha256.slice(0, 12)}`,
  );
  return { findings: [model, tokenizer, template], blocks, vocabulary };
}

/**
 * What this machine can run, and why not.
 * @param target a configuration, a model folder, or null for the machine alone
 */
export async function doctor(target: string | null): Promise<Finding[]> {
  if (target === null) return machineFindings('.');
  const isFolder = await stat(target)
    .then((info) => info.isDirectory())
    .catch(() => false);
  if (isFolder) return [...(await machineFindings('.')), ...(await modelFindings(target)).findings];
  const { config } = await loadConfig(target);
  const output = await stat(config.output)
    .then(() => config.output)
    .catch(() => dirname(config.output));
  const model = await modelFindings(config.model.folder);
  const data = await check('data', async () => {
    const mapping = await loadMapping(config.dataset.mapping);
    const list = (value: string | readonly string[] | null): readonly string[] | null =>
      typeof value === 'string' ? [value] : value;
    let bad = 0;
    const notes: string[] = [];
    const metas = await readMetas(
      {
        episodes: list(config.dataset.episodes)!,
        scenarios: list(config.dataset.scenarios),
        reportLabels: list(config.dataset.reportLabels),
        tools: config.replay.tools === 'file' ? config.dataset.tools : null,
      },
      mapping,
      {
        where: config.dataset.where,
        maxBad: config.dataset.maxBad,
        onExclusion: () => (bad += 1),
        onWarning: (_kind, detail) => notes.push(detail),
      },
    );
    const unsafe = metas.filter((meta) => meta.unsafe !== null).length;
    const text = `${metas.length.toLocaleString('en')} episodes, ${unsafe} unsafe, ${bad} set aside`;
    return notes.length === 0 ? text : { warning: `${text}; ${notes.join('; ')}` };
  });
  const capture = await check('capture', async () => `${resolveTaps(config.capture, model.blocks).length} taps`);
  const family = await check('tool format', async () => {
    const template = await openTemplate(config.model.folder, {}, {}, config.replay.date);
    return findFamily(template.text, config.replay, config.model.folder).name;
  });
  return [...(await machineFindings(output)), ...model.findings, family, capture, data];
}
