import { existsSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Flags } from '../config/load.ts';
import { ForewarnError, InterruptedError } from '../errors.ts';
import { writeFileAtomic } from '../lib/atomic-write.ts';
import { createGemm } from '../model/gemm.ts';
import { saveProbe } from '../probe/artefact.ts';
import { createFitReaders } from '../probe/fit-readers.ts';
import { openFeatures } from '../store/features.ts';
import { joinedFeatures } from '../store/joined-features.ts';
import { writeCurves } from '../store/curves.ts';
import { writeMetrics } from '../store/figures.ts';
import { exportPlan, type PlanFile } from '../store/plan-shards.ts';
import type { Figure, Metrics } from '../types.ts';
import type { PipelineContext } from './context.ts';
import { type ExtractSummary, extractStage } from './extract-stage.ts';
import { type ForecastPart, forecastStage } from './forecast-stage.ts';
import { interveneStage } from './intervene-stage.ts';
import { noteTestRead, preregistrationOf } from './lock-stage.ts';
import { type OpenedRun, openPipeline, packageVersion, runName } from './open-run.ts';
import { importStage } from './import-stage.ts';
import { planStage } from './plan-stage.ts';
import type { PlanCost } from './plan-summary.ts';
import { reportStage } from './report-stage.ts';
import { curvesOf, writeExclusionRows, writeOutcomeRows, writeScoreRows } from './write-results.ts';

export const STAGES = ['plan', 'extract', 'train', 'forecast', 'intervene', 'report'] as const;
export type Stage = (typeof STAGES)[number];

export interface RunOptions {
  /** The last stage to do; what comes before is done first, what is done already is kept. */
  readonly until: Stage;
  readonly flags: Flags;
  /** A run folder whose whole key has to be that of this configuration. */
  readonly resume: string | null;
  /** Folder to copy the plan to, for another engine (docs/shard-format.md). */
  readonly exportTo?: string | null;
  /** Folder with what another engine computed for the plan; null = compute here. */
  readonly importFrom?: string | null;
}

export interface RunResult {
  readonly folder: string;
  readonly plan: PlanFile;
  readonly cost: PlanCost;
  readonly extract: ExtractSummary | null;
  readonly probes: readonly string[];
  readonly metrics: Metrics | null;
  readonly headline: readonly string[];
}

/** Results of an analysis; stale once its settings change. */
const ANALYSIS_FILES = [
  'metrics.json',
  'curves.json',
  'scores.parquet',
  'interventions.parquet',
  'exclusions.parquet',
  'report.json',
  'report.html',
];

/**
 * Runs a configuration up to a stage. Every stage writes whole files or none, so the same command goes on where an
 * interrupted one stopped, with the same result.
 */
export async function run(configPath: string, options: RunOptions, context: PipelineContext): Promise<RunResult> {
  const opened = await openPipeline(configPath, options.flags, context, options.resume);
  try {
    if (opened.folder.analysisChanges.length > 0) {
      context.progress.note(
        `analysis settings changed (${opened.folder.analysisChanges.slice(0, 3).join('; ')}): activations are reused, results are made again`,
      );
      for (const name of ANALYSIS_FILES)
        if (existsSync(join(opened.folder.path, name))) await unlink(join(opened.folder.path, name));
    }
    const result = await stages(opened, options, context);
    await opened.folder.setStatus('done');
    return result;
  } catch (error) {
    await opened.folder.setStatus(error instanceof InterruptedError ? 'interrupted' : 'failed').catch(() => undefined);
    if (!(error instanceof ForewarnError) && context.signal.aborted) throw context.signal.reason;
    throw error;
  } finally {
    await opened.folder.close();
  }
}

async function stages(opened: OpenedRun, options: RunOptions, context: PipelineContext): Promise<RunResult> {
  const { until, exportTo = null, importFrom = null } = options;
  const reaches = (stage: Stage): boolean => STAGES.indexOf(until) >= STAGES.indexOf(stage);
  const plan = await planStage(opened, context);
  if (exportTo !== null) await exportPlan(opened.folder.path, plan, exportTo);
  const none = {
    folder: opened.folder.path,
    plan,
    cost: costOf(opened),
    extract: null,
    probes: [],
    metrics: null,
    headline: [],
  };
  if (!reaches('extract')) return none;
  const extract =
    importFrom === null
      ? await extractStage(opened, plan, context)
      : await importStage(opened, plan, importFrom, context);
  for (const line of extract.health) context.progress.note(`note: ${line}`);
  await opened.folder.note('extract', {
    computedTokens: extract.computedTokens,
    seconds: extract.seconds,
    rows: extract.rows,
    width: extract.width,
    engines: extract.engines,
    health: extract.health,
    ...(extract.imported === undefined ? {} : { imported: extract.imported }),
  });
  if (extract.peakRssBytes > 0) await opened.folder.note('peakRssBytes', extract.peakRssBytes);
  if (!reaches('train')) return { ...none, extract };

  const features = joinedFeatures(await openFeatures(opened.folder.path, extract.shards));
  const { gemm, gemm64, close } = await createGemm({ threads: opened.config.model.threads });
  try {
    const preregistration = await preregistrationOf(opened, plan, context);
    await noteTestRead(opened, context);
    const fit = createFitReaders({ gemm, gemm64, tolerance: opened.config.train.tolerance });
    const { parts, figures } = await forecastStage(opened, plan, features, fit, gemm, context);
    const probes = await writeProbes(opened, parts);
    const base = { ...none, extract, probes };
    if (!reaches('forecast')) return base;
    const exclusions = [
      ...opened.exclusions,
      ...plan.exclusions,
      ...extract.skipped,
      ...parts.flatMap((part) => part.result.exclusions),
    ];
    await writeScoreRows(
      opened.folder.path,
      parts.flatMap((part) => part.result.scores),
    );
    await writeExclusionRows(opened.folder.path, exclusions);
    const intervened = reaches('intervene') ? interveneStage(opened, parts) : null;
    if (intervened) await writeOutcomeRows(opened.folder.path, intervened.outcomes);
    const all: Figure[] = [...figures, ...(intervened?.figures ?? [])];
    const metrics: Metrics = {
      schemaVersion: 1,
      run: runName(opened),
      figures: all,
      ...(preregistration === null ? {} : { preregistration }),
    };
    const curves = curvesOf(runName(opened), parts, intervened);
    await writeCurves(opened.folder.path, curves);
    await writeMetrics(opened.folder.path, metrics);
    if (!reaches('report')) return { ...base, metrics };
    const report = await reportStage(opened, plan, extract, parts, metrics, curves, exclusions);
    await writeFileAtomic(join(opened.folder.path, 'report.html'), report.html);
    return { ...base, metrics, headline: report.headline };
  } finally {
    await close();
  }
}

function costOf({ config, model }: OpenedRun): PlanCost {
  const { threads, chunk } = config.model;
  return { width: model.width, blocks: model.blocks, threads, chunk, tools: config.replay.tools };
}

/** Every landmark's probe, refitted on all rows, with its card. */
async function writeProbes(opened: OpenedRun, parts: readonly ForecastPart[]): Promise<string[]> {
  const folders: string[] = [];
  for (const part of parts) {
    for (const release of part.result.releases) {
      folders.push(
        await saveProbe(join(opened.folder.path, 'probes'), release.probe, {
          model: {
            name: part.model,
            hashes: opened.model.hashes,
            tokenizer: opened.chat.tokenizer.sha256,
            template: opened.chat.template.sha256,
          },
          training: {
            run: runName(opened),
            rows: release.trainingRows,
            positives: release.positives,
            groups: release.groups,
            population: part.episodes.some((meta) => meta.world !== 'none') ? 'x-' : 'all',
            condition: part.condition,
            role: opened.config.replay.role,
            seed: opened.config.seed,
          },
          auroc: release.auroc,
          versions: { forewarn: await packageVersion() },
          notGoodFor: [
            'another model, another quantisation or another chat template: the card holds the hashes it was trained on',
            'positions or landmarks other than its own',
            `episodes of another condition (it learnt from ${part.condition}), and tools or tasks unlike those of its ${release.groups} groups: see the leave-one-out figures of its run`,
            'claims that the model knew: see the baselines of its run',
            ...(opened.config.replay.role === 'reader'
              ? ['what the acting agent knew: these are states of a model that read its transcript']
              : []),
          ],
        }),
      );
    }
  }
  return folders;
}
