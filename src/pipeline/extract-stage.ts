import { DataError, MismatchError } from '../errors.ts';
import { checkFreeSpace } from '../lib/atomic-write.ts';
import { checkTaps, refuseDeadTaps } from '../model/check-taps.ts';
import { type ModelReplayer, openReplayer } from '../model/open-replayer.ts';
import { SequenceError } from '../model/sequence-error.ts';
import { type DoneFile, findDone, writeShard } from '../store/activation-shards.ts';
import { type PlanFile, type PlanShardInfo, readPlanShard } from '../store/plan-shards.ts';
import type { Exclusion, FeatureKey, ReplaySequence, SequencePlan } from '../types.ts';
import { healthLines, refuseUnhealthy } from './activation-health.ts';
import { poolRows } from '../math/pooling.ts';
import type { PipelineContext } from './context.ts';
import type { OpenedRun } from './open-run.ts';

export interface ExtractSummary {
  readonly rows: number;
  readonly width: number;
  readonly computedTokens: number;
  readonly seconds: number;
  readonly peakRssBytes: number;
  readonly skipped: readonly Exclusion[];
  readonly shards: readonly number[];
  /** Engines the activations come from; empty = computed here. */
  readonly engines: readonly string[];
  /** What is worth knowing about the values: magnitudes that float16 cannot hold. */
  readonly health: readonly string[];
  /** Set when they were imported just now: states after the same tokens that were compared (docs/shard-format.md). */
  readonly imported?: { readonly pairs: number; readonly largestDifference: number };
}

/** A sequence whose process died this often is set aside; the rest of its shard goes on. */
const DEATHS_BEFORE_QUARANTINE = 2;

const BYTES: Readonly<Record<'float32' | 'float16' | 'bfloat16', number>> = { float32: 4, float16: 2, bfloat16: 2 };

/** Bytes the activations will take. */
export function plannedBytes(plan: PlanFile, taps: number, width: number, dtype: keyof typeof BYTES): number {
  return plan.shards.reduce((sum, shard) => sum + shard.rows, 0) * taps * width * BYTES[dtype];
}

function toReplay(sequence: SequencePlan): ReplaySequence {
  const rows = new Set<number>();
  for (const capture of sequence.captures) for (let at = capture.start; at < capture.end; at += 1) rows.add(at);
  return { ids: sequence.ids, rows: Int32Array.from([...rows].sort((a, b) => a - b)) };
}

interface Collected {
  readonly keys: FeatureKey[];
  /** Per tap, per row. */
  readonly rows: Float32Array[][];
  readonly skipped: Exclusion[];
}

/** Replays the sequences of one shard; a sequence that kills its process twice is set aside. */
async function replayShard(
  replayer: ModelReplayer,
  plans: readonly SequencePlan[],
  width: number,
  signal: AbortSignal,
  note: (line: string) => void,
): Promise<Collected> {
  const collected: Collected = { keys: [], rows: replayer.taps.map(() => []), skipped: [] };
  const deaths = new Map<SequencePlan, number>();
  let wanted = plans.filter((plan) => plan.captures.length > 0);
  let results = new Map<SequencePlan, Float32Array>();
  for (;;) {
    const batch = wanted;
    const requests = batch.map(toReplay);
    results = new Map();
    try {
      for await (const block of replayer.replay(requests, signal)) results.set(batch[block.sequence], block.data);
      break;
    } catch (error) {
      if (!(error instanceof SequenceError)) throw error;
      const plan = batch[error.sequence];
      const count = (deaths.get(plan) ?? 0) + 1;
      deaths.set(plan, count);
      note(`turn ${plan.turn} of ${plan.episode}: ${error.message}`);
      if (count < DEATHS_BEFORE_QUARANTINE) continue;
      collected.skipped.push({
        stage: 'extract',
        episode: plan.episode,
        file: null,
        row: null,
        turn: plan.turn,
        reason: `model_${error.kind}`,
        detail: error.message,
      });
      wanted = wanted.filter((item) => item !== plan);
    }
  }
  for (const plan of wanted) {
    const data = results.get(plan)!;
    const { rows } = toReplay(plan);
    refuseUnhealthy(replayer, plan, rows, data, width);
    const at = new Map(Array.from(rows, (row, index) => [row, index]));
    for (const capture of plan.captures) {
      collected.keys.push({ episode: plan.episode, turn: capture.turn, position: capture.position });
      for (const [tap, list] of collected.rows.entries()) {
        const from = (tap * rows.length + at.get(capture.start)!) * width;
        const count = capture.end - capture.start;
        list.push(poolRows(data.subarray(from, from + count * width), width, capture.pooling));
      }
    }
  }
  return collected;
}

function stack(rows: readonly Float32Array[], width: number): Float32Array {
  const out = new Float32Array(rows.length * width);
  for (const [index, row] of rows.entries()) out.set(row, index * width);
  return out;
}

/**
 * Activations of every planned shard. Finished shards are kept; the rest is computed in a forked process.
 * @throws DiskError (74) before anything is computed when the disk is too small
 */
export async function extractStage(run: OpenedRun, plan: PlanFile, context: PipelineContext): Promise<ExtractSummary> {
  const { config, model, taps, folder } = run;
  const { width } = model;
  const done = await findDone(folder.path, folder.keyHash, plan.shards.length, true, context.clock.date());
  const missing = plan.shards.filter((shard) => !done.has(shard.index));
  checkEngine(run, [...done.values()], missing.length);
  let peakRssBytes = 0;
  if (missing.length > 0) {
    const left = plannedBytes({ ...plan, shards: missing }, taps.length, width, config.capture.dtype);
    await checkFreeSpace(folder.path, left);
    const total = missing.reduce((sum, shard) => sum + shard.distinctTokens - plan.rootTokens, plan.rootTokens);
    context.progress.start('extract', total, 'tokens');
    let tokens = 0;
    refuseDeadTaps(
      config.model.folder,
      await checkTaps({
        folder: config.model.folder,
        ...(config.model.dtype === null ? {} : { dtype: config.model.dtype }),
        taps,
        threads: config.model.threads,
        executionProvider: config.model.executionProvider,
        signal: context.signal,
      }),
    );
    const replayer = await openReplayer({
      folder: config.model.folder,
      ...(config.model.dtype === null ? {} : { dtype: config.model.dtype }),
      taps,
      threads: config.model.threads,
      executionProvider: config.model.executionProvider,
      chunk: config.model.chunk,
      sharing: config.model.shareAcrossEpisodes,
      rootTokens: plan.rootTokens,
      memoryCapBytes: config.model.memoryCapGiB * 2 ** 30,
      info: model,
      onProgress: (count) => {
        tokens += count;
        context.progress.advance(Math.min(tokens, total));
      },
    });
    try {
      for (const shard of missing) {
        context.signal.throwIfAborted();
        done.set(shard.index, await extractShard(run, shard, replayer, context));
        peakRssBytes = Math.max(peakRssBytes, replayer.stats().peakRssBytes);
      }
    } finally {
      await replayer.close();
    }
    context.progress.end();
  }
  return summarise(run, [...done.values()], peakRssBytes);
}

/**
 * Numbers of two engines differ in their last digits, so they do not mix within a run.
 * @throws MismatchError (78) when what is missing would have to be computed by another engine than what is there,
 * DataError (65) when there is nothing to compute it with
 */
function checkEngine({ folder, model, config }: OpenedRun, done: readonly DoneFile[], missing: number): void {
  if (missing === 0) return;
  const other = done.find(({ engine }) => engine !== undefined);
  if (other !== undefined) {
    throw new MismatchError(
      `${folder.path}: expected activations of one engine, got ${done.length} shards of ${other.engine} and ${missing} that are missing. Import them all with extract --from, or use another --out`,
    );
  }
  if (model.exporter === 'none') {
    throw new DataError(
      `${config.model.folder}: expected a .onnx file in the model folder or in onnx/, got none. Export the model to ONNX, or let another engine compute: plan --export, then extract --from (docs/shard-format.md)`,
    );
  }
}

/** @throws DataError (65) when no state was captured at all */
export function summarise(run: OpenedRun, done: readonly DoneFile[], peakRssBytes: number): ExtractSummary {
  const shards = [...done].sort((a, b) => a.shard - b.shard);
  const sum = (value: (shard: DoneFile) => number): number => shards.reduce((total, shard) => total + value(shard), 0);
  const skipped = shards.flatMap((shard) => shard.skipped);
  if (sum((shard) => shard.rows) === 0)
    throw new DataError(
      `${run.folder.path}: expected captured states, got none. Check capture.positions against the exclusions`,
    );
  return {
    rows: sum((shard) => shard.rows),
    width: run.model.width,
    computedTokens: sum((shard) => shard.computedTokens),
    seconds: sum((shard) => shard.seconds),
    peakRssBytes,
    skipped,
    shards: shards.map((shard) => shard.shard),
    engines: [...new Set(shards.flatMap(({ engine }) => (engine === undefined ? [] : [engine])))],
    health: healthLines(shards),
  };
}

async function extractShard(
  run: OpenedRun,
  shard: PlanShardInfo,
  replayer: ModelReplayer,
  context: PipelineContext,
): Promise<DoneFile> {
  const from = context.clock.now();
  const before = replayer.stats().computedTokens;
  const plans = await readPlanShard(run.folder.path, shard);
  const collected = await replayShard(replayer, plans, run.model.width, context.signal, (line) =>
    context.progress.note(line),
  );
  return writeShard(
    run.folder.path,
    {
      keyHash: run.folder.keyHash,
      shard: shard.index,
      computedTokens: replayer.stats().computedTokens - before,
      seconds: (context.clock.now() - from) / 1000,
      skipped: collected.skipped,
      dtype: run.config.capture.dtype,
    },
    {
      keys: collected.keys,
      taps: run.taps,
      width: run.model.width,
      data: collected.rows.map((rows) => stack(rows, run.model.width)),
    },
  );
}
