/** Thresholds on per-episode maxima (EVALUATION.md 9). */
import { exactFloor } from '../lib/exact-floor.ts';
import type { Undefined } from '../types.ts';

/**
 * The smallest threshold with at most ⌊alpha · n_neg⌋ alarms on development negatives, where alarm means maximum >
 * threshold. It is one of the maxima (an alarm needs strictly more), so it does not depend on rounding between scores.
 * @param maxima highest score of each negative episode
 */
export function thresholdAt(alpha: number, maxima: ArrayLike<number>): number | Undefined {
  const n = maxima.length;
  const allowed = exactFloor(alpha, n);
  if (allowed < 1) {
    return { undefinedBecause: `alpha ${alpha} of ${n} development negatives allows less than one alarm` };
  }
  const falling = Float64Array.from(maxima).sort().reverse();
  // With alpha 1 every negative may alarm and no smallest threshold exists; this one is finite, so JSON can hold it.
  return allowed >= n ? -Number.MAX_VALUE : falling[allowed];
}
