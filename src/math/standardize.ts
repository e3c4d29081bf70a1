/** Weighted column means and standard deviations: what a reader learns about scale from its own training rows only. */
import type { RowBlocks } from './row-blocks.ts';

export interface Standardization {
  /** [columns] */
  readonly mean: Float64Array;
  /** [columns] > 0: population standard deviation; 1 for a column that does not vary on these rows. */
  readonly scale: Float64Array;
}

/**
 * Moments under several row weightings at once, in two walks over the rows (the second is around the means of the
 * first, so large offsets do not cancel). A column counts as constant where its variance is within the rounding of its
 * values, by scikit-learn's rule for StandardScaler.
 * @param weightSets each [rows] ≥ 0 with a positive sum
 */
export async function columnMoments(
  x: RowBlocks,
  weightSets: readonly Float64Array[],
): Promise<readonly Standardization[]> {
  const d = x.columns;
  const totals = weightSets.map((weights) => weights.reduce((sum, s) => sum + s, 0));
  const means = weightSets.map(() => new Float64Array(d));
  for await (const { start, count, data } of x.blocks()) {
    weightSets.forEach((weights, set) => {
      const mean = means[set];
      for (let i = 0; i < count; i += 1) {
        const s = weights[start + i];
        if (s !== 0) for (let k = 0, at = i * d; k < d; k += 1, at += 1) mean[k] += s * data[at];
      }
    });
  }
  means.forEach((mean, set) => {
    for (let k = 0; k < d; k += 1) mean[k] /= totals[set];
  });
  const squares = weightSets.map(() => new Float64Array(d));
  for await (const { start, count, data } of x.blocks()) {
    weightSets.forEach((weights, set) => {
      const mean = means[set];
      const square = squares[set];
      for (let i = 0; i < count; i += 1) {
        const s = weights[start + i];
        if (s !== 0) for (let k = 0, at = i * d; k < d; k += 1, at += 1) square[k] += s * (data[at] - mean[k]) ** 2;
      }
    });
  }
  return squares.map((square, set) => {
    const mean = means[set];
    const scale = square.map((value, k) => {
      const variance = value / totals[set];
      const rounding = Number.EPSILON * (x.rows * variance + (x.rows * mean[k]) ** 2 * Number.EPSILON);
      return variance > rounding ? Math.sqrt(variance) : 1;
    });
    return { mean, scale };
  });
}
