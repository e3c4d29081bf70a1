import { access, constants, stat, statfs } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { dirname } from 'node:path';
import process from 'node:process';
import { loadConfig } from '../config/load.ts';
import { loadMapping } from '../config/mapping.ts';
import { readMetas } from '../dataset/read.ts';
import { ForewarnError } from '../errors.ts';
import { runtimeInfo } from '../model/runtime-info.ts';
import { checkTaps, refuseDeadTaps } from '../model/check-taps.ts';
import { inspectForPlan, type InspectedModel, type TapInfo } from '../model/inspect-model.ts';
import type { TapEffect } from '../model/live-taps.ts';
import { findFamily } from '../plan/chat/family.ts';
import { openTemplate } from '../plan/chat/template.ts';
import { openTokenizer } from '../plan/tokenizer.ts';
import { withLocalCopies } from './local-copies.ts';
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

/** A model as its graph shows it: what can be read, and what speaks against running it. */
export interface ModelReport {
  /** Blocks; null where the graph could not be understood. */
  readonly layers: number | null;
  readonly width: number | null;
  readonly exporter: string | null;
  /** The value of the graph that each tap stands for; `moves` = largest change of a logit when a vector is added there. */
  readonly taps: readonly (TapInfo & { readonly moves?: number })[];
  readonly state: InspectedModel['state'];
  /** Why it cannot be run here, with what could; absent when nothing speaks against it. */
  readonly refused?: string;
}

export interface ModelLook {
  readonly report: ModelReport;
  readonly findings: readonly Finding[];
  readonly blocks: number;
}

/** @param live run the model once per tap, to see that it reads what is tapped (loads the weights) */
async function modelFindings(folder: string, dtype: string | null, live: boolean): Promise<ModelLook> {
  let inspected: InspectedModel | null = null;
  let effects: readonly TapEffect[] = [];
  const model = await check('model', async () => {
    inspected = await inspectForPlan(folder, { hash: false, ...(dtype === null ? {} : { dtype }) });
    const { info, taps, state, refused, warnings } = inspected;
    const kinds = [...new Set(state.map(({ kind, dtype: type }) => `${kind} ${type}`))].join(', ') || 'none';
    const text = `${info.exporter}, ${info.blocks} blocks, width ${info.width}, context ${info.contextLimit ?? 'unknown'}, past state ${info.pastState} (${kinds}), ${taps.length} taps`;
    return refused === null && warnings.length === 0
      ? text
      : { warning: [text, refused, ...warnings].filter(Boolean).join('; ') };
  });
  const seen = inspected as InspectedModel | null;
  const findings = [model];
  if (live && seen !== null && seen.refused === null) {
    findings.push(
      await check('live taps', async () => {
        const taps = seen.taps.map(({ tap }) => tap);
        effects = await checkTaps({ folder, taps, ...(dtype === null ? {} : { dtype }) });
        refuseDeadTaps(folder, effects);
        return `adding a vector moves the logits at each of ${taps.length} taps`;
      }),
    );
  }
  const home = folder.endsWith('.onnx') ? dirname(folder) : folder;
  const vocabulary = seen !== null && seen.info.vocabularySize > 0 ? seen.info.vocabularySize : null;
  findings.push(
    await check('tokenizer', async () => {
      const open = await openTokenizer(home, vocabulary);
      return `${open.vocabularySize.toLocaleString('en')} tokens, sha256 ${open.sha256.slice(0, 12)}`;
    }),
    await check(
      'chat template',
      async () => `sha256 ${(await openTemplate(home, {}, {}, '2026-01-01')).sha256.slice(0, 12)}`,
    ),
  );
  const moves = new Map(effects.map(({ tap, moved }) => [tap, moved]));
  const wrong = findings.find(({ what, state }) => state === 'wrong' && (what === 'model' || what === 'live taps'));
  const refused = seen?.refused ?? wrong?.detail;
  return {
    report: {
      layers: seen?.info.blocks ?? null,
      width: seen?.info.width ?? null,
      exporter: seen?.info.exporter ?? null,
      taps: (seen?.taps ?? []).map((tap) => {
        const moved = moves.get(tap.tap);
        return moved === undefined ? tap : { ...tap, moves: moved };
      }),
      state: seen?.state ?? [],
      ...(refused === undefined ? {} : { refused }),
    },
    findings,
    blocks: seen?.info.blocks ?? 0,
  };
}

/** A folder without a tokenizer or a template can still be looked at: only using it needs them. */
const optional = (finding: Finding): Finding =>
  finding.state === 'wrong' && (finding.what === 'tokenizer' || finding.what === 'chat template')
    ? { ...finding, state: 'warning' }
    : finding;

export interface Diagnosis {
  readonly findings: readonly Finding[];
  /** Set where the target is a model folder or a .onnx file. */
  readonly model: ModelReport | null;
}

/**
 * What this machine can run, and why not.
 * @param target a configuration, a model folder or graph, or null for the machine alone
 */
export async function doctor(target: string | null): Promise<Diagnosis> {
  if (target === null) return { findings: await machineFindings('.'), model: null };
  const isFolder = await stat(target)
    .then((info) => info.isDirectory())
    .catch(() => false);
  if (isFolder || target.endsWith('.onnx')) {
    const { findings, report } = await modelFindings(target, null, true);
    return { findings: [...(await machineFindings('.')), ...findings.map(optional)], model: report };
  }
  const config = await withLocalCopies((await loadConfig(target)).config, null);
  const output = await stat(config.output)
    .then(() => config.output)
    .catch(() => dirname(config.output));
  const model = await modelFindings(config.model.folder, config.model.dtype, false);
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
  return { findings: [...(await machineFindings(output)), ...model.findings, family, capture, data], model: null };
}
