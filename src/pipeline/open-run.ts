import { readFile } from 'node:fs/promises';
import { arch, cpus, hostname, platform, totalmem } from 'node:os';
import { basename } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { loadConfig, type Flags } from '../config/load.ts';
import { loadMapping } from '../config/mapping.ts';
import { type Mapping, positionsOf } from '../config/mapping-fields.ts';
import type { Config } from '../config/schema.ts';
import { checkClasses } from '../dataset/check.ts';
import { hashSource } from '../dataset/hash-source.ts';
import { checkSource, type DatasetSource, readEpisodesInOrder, readMetas, type ReadOptions } from '../dataset/read.ts';
import { selectEpisodes } from '../dataset/select.ts';
import { assignGroups, groupNames } from '../dataset/split.ts';
import { inspectForPlan } from '../model/inspect-model.ts';
import type { ChatSetup } from '../plan/sequences.ts';
import { openTokenizer } from '../plan/tokenizer.ts';
import { openRun, type RunFolder, type RunKey } from '../store/run-folder.ts';
import type { Episode, EpisodeMeta, Exclusion, ModelInfo, Tap } from '../types.ts';
import { openChat } from './chat-setup.ts';
import type { PipelineContext } from './context.ts';
import { withLocalCopies } from './local-copies.ts';
import { resolveTaps, searchedTaps } from './taps.ts';

/** A run with everything the stages need; each stage finds what is done already in the folder. */
export interface OpenedRun {
  readonly config: Config;
  readonly configPath: string;
  readonly mapping: Mapping;
  readonly source: DatasetSource;
  /** Selected episodes, twins next to each other. */
  readonly metas: readonly EpisodeMeta[];
  /** Group of each (EVALUATION.md 6), and a name of each group. */
  readonly groups: Int32Array;
  readonly groupNames: readonly string[];
  readonly exclusions: readonly Exclusion[];
  readonly warnings: readonly string[];
  readonly model: ModelInfo;
  readonly taps: readonly Tap[];
  /** Taps that probes are searched on: those, and the sets of `train.layerSets`, joined. */
  readonly searchTaps: readonly Tap[];
  readonly chat: ChatSetup;
  readonly folder: RunFolder;
  /** Full episodes in the order of `metas`, in waves that fit in memory. */
  episodes(): AsyncGenerator<Episode>;
}

export async function packageVersion(): Promise<string> {
  const text = await readFile(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

async function versions(): Promise<Record<string, string>> {
  const dependency = async (name: string): Promise<string> => {
    const text = await readFile(
      fileURLToPath(new URL(`../../node_modules/${name}/package.json`, import.meta.url)),
      'utf8',
    ).catch(() => null);
    return text === null ? 'unknown' : (JSON.parse(text) as { version: string }).version;
  };
  return {
    forewarn: await packageVersion(),
    'onnxruntime-node': await dependency('onnxruntime-node'),
    '@huggingface/tokenizers': await dependency('@huggingface/tokenizers'),
    '@huggingface/jinja': await dependency('@huggingface/jinja'),
  };
}

/**
 * The configuration, split by what it determines. Paths, memory caps, the output folder and what only the report shows
 * determine nothing; threads and chunk do (the order of float sums).
 */
export function splitConfig(config: Config): { readonly extraction: object; readonly analysis: object } {
  const { dataset, model, replay, capture, seed, landmarks, train, forecast, intervene } = config;
  return {
    extraction: {
      dataset: { where: dataset.where, select: dataset.select },
      model: {
        threads: model.threads,
        executionProvider: model.executionProvider,
        chunk: model.chunk,
        shareAcrossEpisodes: model.shareAcrossEpisodes,
      },
      replay,
      capture,
    },
    analysis: { seed, landmarks, train, forecast, intervene },
  };
}

/** What of a mapping determines the episodes; its name and the notes on its labels are for the report. */
function readingOf({ name: _name, limits: _limits, ...reading }: Mapping): object {
  return reading;
}

function machine(): Record<string, string | number> {
  return {
    host: hostname(),
    platform: platform(),
    arch: arch(),
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryBytes: totalmem(),
    node: process.version,
  };
}

/** Reads configuration, data, model, tokenizer and template, and opens the run folder they determine. */
export async function openPipeline(
  configPath: string,
  flags: Flags,
  context: PipelineContext,
  resume: string | null = null,
): Promise<OpenedRun> {
  const config = await withLocalCopies((await loadConfig(configPath, flags)).config, context);
  const mapping = await loadMapping(config.dataset.mapping);
  const list = (value: string | readonly string[]): readonly string[] => (typeof value === 'string' ? [value] : value);
  const source: DatasetSource = {
    episodes: list(config.dataset.episodes),
    scenarios: config.dataset.scenarios === null ? null : list(config.dataset.scenarios),
    reportLabels: config.dataset.reportLabels === null ? null : list(config.dataset.reportLabels),
    tools: config.replay.tools === 'file' ? config.dataset.tools : null,
  };
  const exclusions: Exclusion[] = [];
  const warnings: string[] = [];
  const readOptions: ReadOptions = {
    where: config.dataset.where,
    maxBad: config.dataset.maxBad,
    onExclusion: (exclusion) => exclusions.push(exclusion),
    onWarning: (_kind, detail) => warnings.push(detail),
    signal: context.signal,
  };
  checkSource(source, mapping);
  const all = await readMetas(source, mapping, readOptions);
  checkClasses(all, source.episodes);
  const unordered = selectEpisodes(all, config.dataset.select);
  const order = (meta: EpisodeMeta): string =>
    [meta.model, meta.pairId ?? meta.scenarioId ?? '', meta.key].join('\u0000');
  const metas = [...unordered].sort((a, b) => (order(a) < order(b) ? -1 : 1));
  for (const warning of warnings) context.progress.note(`warning: ${warning}`);

  const { info, warnings: modelWarnings } = await inspectForPlan(
    config.model.folder,
    config.model.dtype === null ? {} : { dtype: config.model.dtype },
  );
  for (const warning of modelWarnings) context.progress.note(`warning: ${warning}`);
  const taps = resolveTaps(config.capture, info.blocks);
  const searchTaps = searchedTaps(taps, config.train.layerSets);
  const tokenizer = await openTokenizer(config.model.folder, info.vocabularySize > 0 ? info.vocabularySize : null);
  const limits = [info.contextLimit, config.replay.context.limit].filter((limit) => limit !== null);
  const chat = await openChat({
    folder: config.model.folder,
    tokenizer,
    settings: config.replay,
    contextLimit: limits.length === 0 ? null : Math.min(...limits),
    positions: config.capture.positions,
    pooling: config.capture.pooling,
    recordedBy: (model) => positionsOf(mapping, model),
  });
  const { template } = chat;
  for (const warning of template.warnings) context.progress.note(`warning: ${warning}`);
  const split = splitConfig(config);
  const key: RunKey = {
    extraction: {
      config: split.extraction,
      data: { files: await hashSource(source), mapping: readingOf(mapping) },
      model: info.hashes,
      tokenizer: tokenizer.sha256,
      template: template.sha256,
      versions: await versions(),
    },
    analysis: split.analysis,
  };
  const folder = await openRun({
    root: config.output,
    name: config.name,
    key,
    machine: machine(),
    now: () => context.clock.date(),
    resume,
  });
  const groups = assignGroups(metas);
  return {
    config,
    configPath,
    mapping,
    source,
    metas,
    groups,
    groupNames: groupNames(metas, groups),
    exclusions,
    warnings,
    model: info,
    taps,
    searchTaps,
    chat,
    folder,
    episodes: () => readEpisodesInOrder(source, mapping, metas, context.signal),
  };
}

/** For messages: the run's folder as the user sees it. */
export const runName = (run: OpenedRun): string => basename(run.folder.path);
