import { MismatchError } from '../errors.ts';
import { checkFreeSpace } from '../lib/atomic-write.ts';
import { findDone } from '../store/activation-shards.ts';
import { importShards } from '../store/import-shards.ts';
import type { PlanFile } from '../store/plan-shards.ts';
import type { PipelineContext } from './context.ts';
import { type ExtractSummary, plannedBytes, summarise } from './extract-stage.ts';
import type { OpenedRun } from './open-run.ts';

/**
 * Takes the activations that another engine computed for this plan, after every check that needs no weights
 * (docs/shard-format.md). A run holds the activations of one engine.
 * @throws MismatchError (78) when the run has activations computed here; DataError (65) naming the file and what is
 * wrong; DiskError (74)
 */
export async function importStage(
  run: OpenedRun,
  plan: PlanFile,
  from: string,
  context: PipelineContext,
): Promise<ExtractSummary> {
  const { config, model, taps, folder } = run;
  const { width } = model;
  const done = await findDone(folder.path, folder.keyHash, plan.shards.length, true, context.clock.date());
  const ours = [...done.values()].filter(({ engine }) => engine === undefined).length;
  if (ours > 0) {
    throw new MismatchError(
      `${folder.path}: expected no activations yet, got ${ours} of ${plan.shards.length} shards that were computed here. Import into another --out`,
    );
  }
  const missing = plan.shards.filter(({ index }) => !done.has(index));
  await checkFreeSpace(
    folder.path,
    plannedBytes({ ...plan, shards: missing }, taps.length, width, config.capture.dtype),
  );
  const total = plan.shards.reduce((sum, shard) => sum + shard.rows, 0);
  context.progress.start('import', total, 'rows');
  let rows = 0;
  const { pairs, largestDifference } = await importShards({
    from,
    folder: folder.path,
    plan,
    taps,
    width,
    keyHash: folder.keyHash,
    dtype: config.capture.dtype,
    onShard: (count) => {
      context.signal.throwIfAborted();
      rows += count;
      context.progress.advance(rows);
    },
  });
  context.progress.end();
  const taken = await findDone(folder.path, folder.keyHash, plan.shards.length, false, context.clock.date());
  return { ...summarise(run, [...taken.values()], 0), imported: { pairs, largestDifference } };
}
