import { commonPrefix, compareIds } from '../lib/token-order.ts';
import type { ReplaySequence } from '../types.ts';

/**
 * Which tokens to push through the model, in which order, so that each distinct prefix of a set of sequences is computed
 * once. Sorted by their ids, sequences that share a prefix are neighbours: going from one to the next means rewinding
 * the state to their common prefix and continuing, which visits every node of the prefix trie exactly once.
 */
export interface Pass {
  /** Index of the sequence whose ids are used. */
  readonly sequence: number;
  /** Token range computed; [0, start) is held in the state. */
  readonly start: number;
  readonly end: number;
  /** Ascending positions in (start, end] where a later pass branches off: where to keep a state that cannot be rewound. */
  readonly branches: readonly number[];
  /** Ascending distinct positions in [start, end) whose rows are wanted, and who gets each. */
  readonly wanted: Int32Array;
  readonly takers: readonly (readonly Taker[])[];
}

export interface Taker {
  readonly sequence: number;
  /** Index into that sequence's `rows`. */
  readonly row: number;
}

/**
 * @param sequences rows ascending; tokens after a sequence's last wanted row are never computed
 * @param reuse 'prefix' shares prefixes; 'whole' runs whole sequences but not those that are prefixes of others (graphs
 *   without state); 'none' runs every sequence alone
 */
export function planPasses(sequences: readonly ReplaySequence[], reuse: 'prefix' | 'whole' | 'none'): Pass[] {
  const lengths = sequences.map((s) => (s.rows.length === 0 ? 0 : (s.rows[s.rows.length - 1] ?? -1) + 1));
  const order = [...sequences.keys()].filter((i) => (lengths[i] ?? 0) > 0);
  if (reuse === 'none') {
    return order.map((i) =>
      makePass(sequences, lengths, [{ sequence: i, shared: lengths[i] ?? 0 }], 0, lengths[i] ?? 0, []),
    );
  }
  const ids = (i: number): Int32Array => sequences[i].ids.subarray(0, lengths[i]);
  order.sort((a, b) => compareIds(ids(a), ids(b)) || a - b);
  // common[k]: common prefix of order[k−1] and order[k]
  const common = order.map((s, k) => (k === 0 ? 0 : commonPrefix(ids(order[k - 1]), ids(s))));
  const passes: Pass[] = [];
  for (const [k, leader] of order.entries()) {
    const end = lengths[leader] ?? 0;
    const sharers: Sharer[] = [{ sequence: leader, shared: end }];
    if (reuse === 'whole') {
      if (k + 1 < order.length && (common[k + 1] ?? 0) >= end) continue; // a prefix of the next one
      let shared = end;
      for (let j = k; j > 0; j--) {
        shared = Math.min(shared, common[j] ?? 0);
        const before = order[j - 1];
        if (shared < (lengths[before] ?? 0)) break;
        sharers.push({ sequence: before, shared });
      }
      passes.push(makePass(sequences, lengths, sharers, 0, end, []));
      continue;
    }
    const start = common[k] ?? 0;
    if (start >= end) continue;
    const branches = new Set<number>();
    let shared = end;
    for (let j = k + 1; j < order.length; j++) {
      shared = Math.min(shared, common[j] ?? 0);
      if (shared <= start) break;
      sharers.push({ sequence: order[j], shared });
      branches.add(shared);
    }
    passes.push(
      makePass(
        sequences,
        lengths,
        sharers,
        start,
        end,
        [...branches].sort((a, b) => a - b),
      ),
    );
  }
  return passes;
}

interface Sharer {
  readonly sequence: number;
  /** Tokens it has in common with the leader of the pass. */
  readonly shared: number;
}

function makePass(
  sequences: readonly ReplaySequence[],
  lengths: readonly number[],
  sharers: readonly Sharer[],
  start: number,
  end: number,
  branches: readonly number[],
): Pass {
  const takers = new Map<number, Taker[]>();
  for (const { sequence, shared } of sharers) {
    const rows = sequences[sequence].rows;
    const limit = Math.min(shared, lengths[sequence] ?? 0);
    for (let row = firstAtLeast(rows, start); row < rows.length && (rows[row] ?? 0) < limit; row++) {
      const position = rows[row] ?? 0;
      const list = takers.get(position);
      if (list) list.push({ sequence, row });
      else takers.set(position, [{ sequence, row }]);
    }
  }
  const wanted = Int32Array.from(takers.keys()).sort();
  return {
    sequence: sharers[0]?.sequence ?? 0,
    start,
    end,
    branches,
    wanted,
    takers: [...wanted].map((p) => takers.get(p) ?? []),
  };
}

/**
 * Boundaries of the chunks that cover [start, end), both ends included. Full chunks from `start`, the last one between half
 * and one and a half times as long, cut at `branches` as well. From 0 they lie on multiples of `chunk` until the last, so a
 * state computed for one set of sequences can be taken over by the next without changing a bit of its results.
 */
export function chunkBoundaries(start: number, end: number, chunk: number, branches: readonly number[] = []): number[] {
  const bounds = [start];
  let from = start;
  for (const to of [...branches.filter((b) => b > start && b < end), end]) {
    while (to - from >= 1.5 * chunk) bounds.push((from += chunk));
    bounds.push((from = to));
  }
  return bounds;
}

/** The last boundary at or below `position` of the chunks that every sequence has: a grid from 0 to `root`, and one from there. */
export function gridBelow(position: number, root: number, chunk: number): number {
  if (position >= root) return root + (Math.floor((position - root) / chunk) * chunk || 0);
  return chunkBoundaries(0, root, chunk).findLast((bound) => bound <= position) ?? 0;
}

function firstAtLeast(rows: Int32Array, value: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
