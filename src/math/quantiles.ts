/** Quantiles by linear interpolation between order statistics (type 7 of Hyndman & Fan 1996; NumPy's default). */
import type { Undefined } from '../types.ts';

/** @param sorted ascending, not empty @param p in [0, 1] */
export function quantileSorted(sorted: ArrayLike<number>, p: number): number {
  const at = p * (sorted.length - 1);
  const low = Math.floor(at);
  const high = Math.min(low + 1, sorted.length - 1);
  const a = sorted[low];
  const b = sorted[high];
  // a === b covers two infinities, whose difference is NaN.
  return a === b ? a : a + (at - low) * (b - a);
}

/** @throws TypeError on NaN */
export function quantile(values: ArrayLike<number>, p: number): number | Undefined {
  if (values.length === 0) return { undefinedBecause: 'no values' };
  return quantileSorted(ascending(values), p);
}

/** Several quantiles of the same values for one sort. @throws TypeError on NaN */
export function quantiles(values: ArrayLike<number>, ps: readonly number[]): readonly number[] | Undefined {
  if (values.length === 0) return { undefinedBecause: 'no values' };
  const sorted = ascending(values);
  return ps.map((p) => quantileSorted(sorted, p));
}

function ascending(values: ArrayLike<number>): Float64Array {
  const sorted = Float64Array.from(values);
  for (let i = 0; i < sorted.length; i += 1) {
    if (Number.isNaN(sorted[i])) throw new TypeError(`value ${i} is NaN`);
  }
  return sorted.sort();
}
