/**
 * What the probe adds to the best text reader (EVALUATION.md 12): a logistic regression on both margins, fitted on the
 * inner out-of-fold margins of the training side, against the text margin alone.
 */
import { csrFromRows, csrMargins, fitSparseLogistic } from '../math/sparse.ts';
import type { FoldScores } from './search.ts';
import type { Sides } from './sides.ts';

/** @returns outer margins only; a fold that cannot be stacked keeps NaN */
export function stackScores(readers: readonly FoldScores[], sides: Sides): FoldScores {
  const outer = new Float64Array(readers[0].outer.length).fill(Number.NaN);
  const chosen = sides.training.map((side, o) => {
    const usable = Array.from(side.rows.keys()).filter((k) => readers.every(({ inner }) => !Number.isNaN(inner[o][k])));
    const scaling = readers.map(({ inner }) => meanAndScale(usable.map((k) => inner[o][k])));
    const rowsOf = (margins: readonly (readonly number[])[]) =>
      csrFromRows(
        margins.map((row) => row.map((value, j) => [j, (value - scaling[j].mean) / scaling[j].scale] as const)),
        readers.length,
      );
    const fitted = fitSparseLogistic({
      x: rowsOf(usable.map((k) => readers.map(({ inner }) => inner[o][k]))),
      labels: usable.map((k) => side.labels[k]),
      weights: null,
      C: 1,
    });
    if ('undefinedBecause' in fitted) return fitted;
    const tested = sides.outer[o].rows.filter((row) => readers.every((reader) => !Number.isNaN(reader.outer[row])));
    const margins = csrMargins(
      rowsOf(Array.from(tested, (row) => readers.map((reader) => reader.outer[row]))),
      fitted.weights,
      fitted.bias,
    );
    tested.forEach((row, i) => (outer[row] = margins[i]));
    return readers[0].chosen[o];
  });
  return { outer, inner: [], chosen };
}

function meanAndScale(values: readonly number[]): { readonly mean: number; readonly scale: number } {
  const mean = values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(1, values.length);
  return { mean, scale: Math.sqrt(variance) || 1 };
}
