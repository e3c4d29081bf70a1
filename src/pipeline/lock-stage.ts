/**
 * Preregistration of a run: what will be tested, on which rows, by which rule, written before any outcome of a test row
 * is read. It needs the plan and no weights; the labels of the rows it lists stay sealed.
 */
import { basename } from 'node:path';
import type { Flags } from '../config/load.ts';
import { MismatchError, UserError } from '../errors.ts';
import { hasWorlds, landmarkName, landmarkRows } from '../forecast/landmarks.ts';
import { type Lock, lockChanges, makeLock } from '../forecast/lock.ts';
import { targetNamed } from '../forecast/targets.ts';
import { sha256 } from '../lib/content-hash.ts';
import { findLock, readLock, writeLock } from '../store/lock-file.ts';
import { type PlanFile, readPlanShard } from '../store/plan-shards.ts';
import type { EpisodeMeta, FeatureKey, Preregistration } from '../types.ts';
import type { PipelineContext } from './context.ts';
import { landmarkSpecs } from './forecast-input.ts';
import { conditionsOf } from './forecast-stage.ts';
import { type OpenedRun, openPipeline } from './open-run.ts';
import { planStage } from './plan-stage.ts';

/** Note in run.json: when the outcomes of test rows were first read. */
const READ_NOTE = 'testRowsReadAt';

const keyText = (key: FeatureKey): string => `${key.episode}\u0000${key.turn}\u0000${key.position}`;

async function plannedStates(run: OpenedRun, plan: PlanFile): Promise<ReadonlySet<string>> {
  const planned = new Set<string>();
  for (const shard of plan.shards) {
    for (const { episode, captures } of await readPlanShard(run.folder.path, shard))
      for (const { turn, position } of captures) planned.add(keyText({ episode, turn, position }));
  }
  return planned;
}

/** What this configuration would test on this plan, dated by the context's clock. */
export async function describeTest(run: OpenedRun, plan: PlanFile, context: PipelineContext): Promise<Lock> {
  const { config } = run;
  const planned = await plannedStates(run, plan);
  const specs = landmarkSpecs(config.landmarks);
  const rows: string[] = [];
  const hypotheses: string[] = [];
  const rival = config.forecast.textScopes.length > 0 ? 'text:best' : 'baseline:majority';
  for (const model of [...new Set(run.metas.map((meta) => meta.model))].sort()) {
    const ofModel = run.metas.filter((meta) => meta.model === model);
    for (const condition of conditionsOf(run, ofModel)) {
      const episodes = ofModel.filter((meta) => condition === null || meta.condition === condition);
      for (const target of config.forecast.targets) {
        for (const spec of specs) {
          const landmark = landmarkName(spec);
          const where = `${model}, ${condition ?? 'all'}, ${target}`;
          const found = landmarkRows({
            episodes,
            target: targetNamed(target),
            horizon: config.forecast.horizon,
            spec,
            seed: config.seed,
            available: (key) => planned.has(keyText(key)),
          });
          for (const { episode, turn } of found.rows) rows.push(`${where} ${landmark} ${episode} ${turn}`);
          hypotheses.push(
            `${where}: AUROC within folds at ${landmark}, ${leading(episodes)}: probe > 0.5, and probe minus ${rival} > 0`,
          );
        }
      }
    }
  }
  const thresholds = Object.fromEntries([
    ...config.forecast.alphas.map((alpha) => [`false alarms per episode (${alpha})`, alpha] as const),
    ['interval that has to exclude 0.5 and 0', 0.95] as const,
    ...(config.forecast.permutations > 0 ? [['p-value after Bonferroni', 0.05] as const] : []),
  ]);
  return makeLock(
    {
      config: run.folder.record().key as unknown as Readonly<Record<string, unknown>>,
      rows,
      hypotheses: [...hypotheses, ...config.forecast.hypotheses],
      thresholds,
    },
    context.clock.date().toISOString(),
    sha256,
  );
}

function leading(episodes: readonly EpisodeMeta[]): string {
  return hasWorlds(episodes) ? 'x-' : 'all';
}

export interface LockResult {
  readonly folder: string;
  readonly lock: Lock;
  /** False where exactly this was locked before. */
  readonly written: boolean;
}

/**
 * Writes `lock.json` of the run that a configuration determines.
 * @throws UserError (2) when outcomes of its test rows were read already, MismatchError (78) when something else was locked
 */
export async function lockRun(configPath: string, flags: Flags, context: PipelineContext): Promise<LockResult> {
  const run = await openPipeline(configPath, flags, context);
  try {
    const { path } = run.folder;
    const readAt = run.folder.record().notes[READ_NOTE];
    const before = await readLock(path);
    if (before === null && typeof readAt === 'string') {
      throw new UserError(
        `${path}: expected a run whose test rows nobody has read, got one that read them at ${readAt}. Lock first, on episodes that are not tested yet (dataset.where)`,
      );
    }
    const lock = await describeTest(run, await planStage(run, context), context);
    await run.folder.setStatus('done');
    if (before !== null) {
      const [change, ...more] = lockChanges(before, lock);
      if (change !== undefined) {
        throw new MismatchError(
          `${path}/lock.json: ${change.field}: expected what was locked at ${before.lockedAt} (${change.locked.slice(0, 60)}), got ${change.now.slice(0, 60)}${more.length > 0 ? `, and ${more.length} more changes` : ''}. A lock is never replaced: run as it is (the report lists the changes), or lock under another name`,
        );
      }
      return { folder: path, lock: before, written: false };
    }
    return { folder: path, lock, written: await writeLock(path, lock) };
  } finally {
    await run.folder.close();
  }
}

/** To be called before the first outcome of a test row is read. */
export async function noteTestRead(run: OpenedRun, context: PipelineContext): Promise<void> {
  if (run.folder.record().notes[READ_NOTE] === undefined)
    await run.folder.note(READ_NOTE, context.clock.date().toISOString());
}

/** What was locked for this run and what differs now; null = nothing was locked before its test rows were read. */
export async function preregistrationOf(
  run: OpenedRun,
  plan: PlanFile,
  context: PipelineContext,
): Promise<Preregistration | null> {
  const found = await findLock(run.folder.path, run.config.name);
  if (found === null) return null;
  const { hash, lockedAt, rowCount, hypotheses, thresholds } = found.lock;
  return {
    hash,
    lockedAt,
    rows: rowCount,
    hypotheses,
    thresholds,
    folder: found.folder === basename(run.folder.path) ? null : found.folder,
    changes: lockChanges(found.lock, await describeTest(run, plan, context)),
  };
}
