import { commonPrefix, compareIds } from '../lib/token-order.ts';
import type { SequencePlan } from '../types.ts';

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
