/**
 * Split-conformal thresholds: of n development negatives the k-th smallest score, k = n + 1 − ⌊α(n + 1)⌋. A new negative,
 * exchangeable with them, is above it with probability at most α, whatever the distribution of the scores (Vovk et al.
 * 2005; Angelopoulos & Bates 2023, arXiv 2107.07511, section 3.2).
 */
import { exactFloor } from '../lib/exact-floor.ts';
import type { Undefined } from '../types.ts';

export interface ConformalThreshold {
  /** Alarm when a score is greater. */
  readonly threshold: number;
  /** k/(n + 1): share of new negatives without an alarm, over draws of the development set; more where scores tie. */
  readonly coverage: number;
  /** For the development set that was drawn, coverage is Beta(k, n + 1 − k): its 2.5 and 97.5 % points. */
  readonly lower: number;
  readonly upper: number;
  /** Development negatives. */
  readonly n: number;
}

/** @param scores one per development negative (for episodes: their highest score); finite */
export function conformalThreshold(alpha: number, scores: ArrayLike<number>): ConformalThreshold | Undefined {
  const n = scores.length;
  const above = exactFloor(alpha, n + 1);
  if (above < 1) {
    return {
      undefinedBecause: `alpha ${alpha} takes ${Math.ceil(1 / alpha) - 1} development negatives to promise, got ${n}`,
    };
  }
  const k = n + 1 - above;
  if (k < 1) return { undefinedBecause: `alpha ${alpha} of ${n} development negatives asks for no coverage` };
  const rising = Float64Array.from(scores).sort();
  return {
    threshold: rising[k - 1],
    coverage: k / (n + 1),
    lower: orderStatisticPoint(k, n, 0.025),
    upper: orderStatisticPoint(k, n, 0.975),
    n,
  };
}

/**
 * Quantile q of Beta(k, n + 1 − k), the distribution of the k-th of n uniform draws, by bisection on its distribution
 * function P(at least k of n draws ≤ x), a binomial tail.
 */
export function orderStatisticPoint(k: number, n: number, q: number): number {
  let low = 0;
  let high = 1;
  for (let step = 0; step < 60; step += 1) {
    const x = (low + high) / 2;
    if (binomialTail(k, n, x) < q) low = x;
    else high = x;
  }
  return (low + high) / 2;
}

/** P(Bin(n, x) ≥ k). */
function binomialTail(k: number, n: number, x: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  let choose = 0;
  let sum = 0;
  for (let i = 0; i <= n; i += 1) {
    if (i > 0) choose += Math.log((n - i + 1) / i);
    if (i >= k) sum += Math.exp(choose + i * Math.log(x) + (n - i) * Math.log1p(-x));
  }
  return Math.min(1, sum);
}
