import type { SequencePlan } from '../types.ts';

/** Length of the common prefix. */
export function commonPrefix(a: Int32Array, b: Int32Array): number {
  const most = Math.min(a.length, b.length);
  let at = 0;
  while (at < most && a[at] === b[at]) at += 1;
  return at;
}

/** Lexicographic order of id sequences: neighbours share the longest prefixes, so one walk over them is the trie. */
export function compareIds(a: Int32Array, b: Int32Array): number {
  const at = commonPrefix(a, b);
  if (at === a.length || at === b.length) return a.length - b.length;
  return a[at] - b[at];
}

export interface TokenCount {
  /** Every sequence on its own. */
  readonly naive: number;
  /** Nodes of the prefix trie: what has to be computed. */
  readonly distinct: number;
}

/** @param root leading tokens that are computed elsewhere (shared by all sequences) and not counted again */
export function countTokens(sequences: readonly Pick<SequencePlan, 'ids'>[], root = 0): TokenCount {
  const sorted = sequences.map((sequence) => sequence.ids).sort(compareIds);
  let naive = 0;
  let distinct = 0;
  let before: Int32Array | null = null;
  for (const ids of sorted) {
    naive += ids.length;
    const shared = before === null ? root : Math.max(root, commonPrefix(before, ids));
    distinct += Math.max(0, ids.length - shared);
    before = ids;
  }
  return { naive, distinct };
}
