import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../src/lib/atomic-write.ts';
import { encodeSafetensors } from '../src/lib/safetensors.ts';
import { commonPrefix, compareIds } from '../src/lib/token-order.ts';
import { type PlanFile, readPlanShard, writePlanShard } from '../src/store/plan-shards.ts';
import type { SequencePlan, Tap } from '../src/types.ts';

/** What one engine is to compute, as `bench/extract.ts` hands it to a process of its own. */
export interface Job {
  /** ours: the replayer as a run uses it. alone: nothing taken over from episode to episode. bare: onnxruntime alone. */
  readonly engine: 'ours' | 'alone' | 'bare';
  /** Exported plan (docs/shard-format.md). */
  readonly plan: string;
  readonly model: string;
  readonly taps: readonly Tap[];
  readonly threads: number;
  readonly chunk: number;
  /** Tokens that all sequences share, as the plan says. */
  readonly rootTokens: number;
  /** `<out>.json` gets the measurement, `<out>.safetensors` the states. */
  readonly out: string;
}

export interface Measurement {
  /** Of the work: processes are started and weights loaded before. */
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly computedTokens: number;
  /** Largest resident memory of all processes that took part, added up. */
  readonly peakBytes: number;
}

/** Sequences of every shard of an exported plan, shard by shard. */
export async function readSet(plan: string): Promise<SequencePlan[][]> {
  const file = JSON.parse(await readFile(join(plan, 'plan.json'), 'utf8')) as PlanFile;
  const shards: SequencePlan[][] = [];
  for (const shard of file.shards) shards.push(await readPlanShard(plan, shard));
  return shards.map((shard) => shard.filter(({ captures }) => captures.length > 0));
}

/** One row per capture, by its name; every engine writes the same. */
export async function writeStates(
  out: string,
  width: number,
  states: ReadonlyMap<Tap, ReadonlyMap<string, Float32Array>>,
): Promise<void> {
  const tensors = [...states].map(([name, rows]) => {
    const data = new Float32Array(rows.size * width);
    for (const [index, row] of [...rows.values()].entries()) data.set(row, index * width);
    return { name, dtype: 'F32' as const, shape: [rows.size, width], data };
  });
  const rows = [...([...states.values()][0] ?? new Map()).keys()];
  await writeFileAtomic(`${out}.safetensors`, encodeSafetensors(tensors, { rows: JSON.stringify(rows) }));
}

/** Name of a row: the sequence it is read from and its token, so that positions that share a token are one row. */
export const rowName = ({ episode, turn }: SequencePlan, token: number): string => `${episode} ${turn} ${token}`;

/** Tokens of a sequence whose states are wanted, ascending. */
export function wantedTokens({ captures }: SequencePlan): Int32Array {
  const tokens = new Set(
    captures.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, i) => start + i)),
  );
  return Int32Array.from(tokens).sort();
}

/** Writes sequences as an exported plan of their own. */
export async function writeSet(
  folder: string,
  shards: readonly (readonly SequencePlan[])[],
  taps: readonly Tap[],
): Promise<void> {
  const infos = [];
  for (const [index, sequences] of shards.filter((shard) => shard.length > 0).entries()) {
    const sha256 = await writePlanShard(folder, index, sequences);
    infos.push({ index, sequences: sequences.length, sha256 });
  }
  await writeFileAtomic(join(folder, 'plan.json'), JSON.stringify({ taps, shards: infos }));
}

/** Tokens that have to be read up to the last capture of each sequence: all, distinct, and distinct within each episode. */
export function tokensOf(shards: readonly (readonly SequencePlan[])[]): {
  readonly naive: number;
  readonly distinct: number;
  readonly distinctWithinEpisodes: number;
} {
  const read = shards.flat().map(({ episode, ids, captures }) => ({
    episode,
    ids: ids.subarray(0, Math.max(...captures.map(({ end }) => end))),
  }));
  const distinctOf = (list: readonly { readonly ids: Int32Array }[]): number =>
    list
      .map(({ ids }) => ids)
      .sort(compareIds)
      .reduce(
        (sum, ids, index, sorted) => sum + ids.length - (index === 0 ? 0 : commonPrefix(sorted[index - 1], ids)),
        0,
      );
  const episodes = new Set(read.map(({ episode }) => episode));
  return {
    naive: read.reduce((sum, { ids }) => sum + ids.length, 0),
    distinct: distinctOf(read),
    distinctWithinEpisodes: [...episodes].reduce(
      (sum, name) => sum + distinctOf(read.filter(({ episode }) => episode === name)),
      0,
    ),
  };
}

/**
 * One episode of `turns` turns, each of which adds the same number of tokens to the text of the longest sequence, so that
 * `most` turns read it to its end. One state per turn.
 */
export function growingEpisode(
  sequences: readonly SequencePlan[],
  rootTokens: number,
  turns: number,
  most: number,
): SequencePlan[] {
  const longest = sequences.reduce((a, b) => (b.ids.length > a.ids.length ? b : a));
  const step = Math.floor((longest.ids.length - rootTokens) / most);
  return Array.from({ length: turns }, (_, turn) => {
    const end = rootTokens + (turn + 1) * step;
    const capture = { turn, position: 'prompt_end', start: end - 1, end, pooling: 'none', straddles: false } as const;
    return { ...longest, turn, ids: longest.ids.slice(0, end), captures: [capture] };
  });
}
