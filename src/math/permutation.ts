/**
 * Permutation nulls (EVALUATION.md 13): outcomes are exchanged only between units of the same stratum, one permutation
 * serves everything that was searched, and the statistic is the maximum over the search.
 */
import { shuffle } from '../lib/rng.ts';
import type { Rng, Undefined } from '../types.ts';
import { distinctCodes } from './order.ts';

/**
 * A random permutation of 0 … n − 1 that moves items only inside their stratum: item i takes the outcome of result[i].
 * @param strata [n] any integers
 */
export function permuteWithin(strata: ArrayLike<number>, rng: Rng): Int32Array {
  const { codes, count } = distinctCodes(strata);
  const members: number[][] = Array.from({ length: count }, () => []);
  for (let item = 0; item < codes.length; item += 1) members[codes[item]].push(item);
  const source = new Int32Array(codes.length);
  for (const items of members) {
    const dealt = shuffle(items.slice(), rng);
    for (let i = 0; i < items.length; i += 1) source[items[i]] = dealt[i];
  }
  return source;
}

/**
 * The same for groups of rows: whole groups of equal stratum and equal size exchange the outcomes of their rows, in
 * row order, so that the dependence inside a group survives. Groups without a partner stay as they are.
 * @param groups [rows] @param strata [rows], one value per group (that of its first row is used)
 * @returns [rows] the row whose outcome each row takes
 */
export function permuteGroupsWithin(groups: ArrayLike<number>, strata: ArrayLike<number>, rng: Rng): Int32Array {
  const { codes, count } = distinctCodes(groups);
  const rowsOf: number[][] = Array.from({ length: count }, () => []);
  for (let row = 0; row < codes.length; row += 1) rowsOf[codes[row]].push(row);
  const keyOf = new Map<string, number>();
  const cell = rowsOf.map((rows) => {
    const key = `${strata[rows[0]]}:${rows.length}`;
    const code = keyOf.get(key) ?? keyOf.size;
    keyOf.set(key, code);
    return code;
  });
  const from = permuteWithin(cell, rng);
  const source = new Int32Array(codes.length);
  for (let group = 0; group < count; group += 1) {
    for (let i = 0; i < rowsOf[group].length; i += 1) source[rowsOf[group][i]] = rowsOf[from[group]][i];
  }
  return source;
}

/** (b + 1) / (B + 1): b null values at or above the observed one. NaN null values count as above, which is conservative. */
export function permutationPValue(observed: number, nullValues: ArrayLike<number>): number | Undefined {
  if (nullValues.length === 0) return { undefinedBecause: 'no permutations' };
  if (Number.isNaN(observed)) return { undefinedBecause: 'the observed statistic does not exist' };
  let above = 0;
  for (let i = 0; i < nullValues.length; i += 1) if (!(nullValues[i] < observed)) above += 1;
  return (above + 1) / (nullValues.length + 1);
}
