/** A small fitter for tests: the estimators of the contract on float64, nothing shared between fits. */
import type { FitProblem, FitReaders, LinearReader } from '../../src/forecast/types.ts';
import { fitSparseLogistic } from '../../src/math/sparse.ts';
import type { FeatureMatrix, Undefined } from '../../src/types.ts';

export const fitReaders: FitReaders = (x, problems) => Promise.resolve(problems.map((problem) => fitOne(x, problem)));

function fitOne(x: FeatureMatrix, { rows, labels, estimator, C }: FitProblem): LinearReader | Undefined {
  const { columns, data } = x;
  const mean = new Float64Array(columns);
  const scale = new Float64Array(columns);
  for (const row of rows) for (let j = 0; j < columns; j += 1) mean[j] += data[row * columns + j] / rows.length;
  for (const row of rows) {
    for (let j = 0; j < columns; j += 1) scale[j] += (data[row * columns + j] - mean[j]) ** 2 / rows.length;
  }
  for (let j = 0; j < columns; j += 1) scale[j] = Math.sqrt(scale[j]) || 1;
  const z = (row: number, j: number): number => (data[row * columns + j] - mean[j]) / scale[j];
  if (estimator === 'mean_difference') {
    const sums = [new Float64Array(columns), new Float64Array(columns)];
    const n = [0, 0];
    rows.forEach((row, k) => {
      n[labels[k]] += 1;
      for (let j = 0; j < columns; j += 1) sums[labels[k]][j] += z(row, j);
    });
    if (n[0] === 0 || n[1] === 0) return { undefinedBecause: 'the training rows hold one class' };
    return { mean, scale, weights: sums[1].map((s, j) => s / n[1] - sums[0][j] / n[0]), bias: 0 };
  }
  if (estimator !== 'logistic') throw new Error(`the test fitter knows no ${estimator}`);
  const indptr = Int32Array.from({ length: rows.length + 1 }, (_, i) => i * columns);
  const indices = Int32Array.from({ length: rows.length * columns }, (_, i) => i % columns);
  const values = Float64Array.from(indices, (j, i) => z(rows[Math.floor(i / columns)], j));
  const csr = { rows: rows.length, columns, indptr, indices, values };
  const fitted = fitSparseLogistic({ x: csr, labels, weights: null, C: C! }, { tolerance: 1e-8 });
  return 'undefinedBecause' in fitted ? fitted : { mean, scale, weights: fitted.weights, bias: fitted.bias };
}
