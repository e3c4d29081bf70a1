import { Matrix } from 'ml-matrix';
import MlLogisticRegression from 'ml-logistic-regression';
import { expect, test } from 'vitest';
import { normal, seededRng } from '../../src/lib/rng.ts';
import { referenceGemm as gemm } from '../../src/math/gemm.ts';
import { fitLinearBatch } from '../../src/probe/fit-linear.ts';
import { defined } from '../math/golden.ts';

/**
 * ml-logistic-regression: gradient descent without penalty or intercept. On overlapping classes, long enough, it reaches
 * the maximum of the likelihood, which ours reaches as C grows. Mirrored rows (−x, 1 − y) make our intercept 0.
 */
test('without a penalty the fit is that of ml-logistic-regression, which knows nothing of ours', async () => {
  const rng = seededRng('ml', 1);
  const [half, columns] = [60, 3];
  const data = new Float32Array(2 * half * columns);
  const labels = new Uint8Array(2 * half);
  for (let i = 0; i < half; i += 1) {
    let margin = 0;
    for (let k = 0; k < columns; k += 1) {
      const value = normal(rng);
      data[i * columns + k] = value;
      data[(half + i) * columns + k] = -value;
      margin += value * [1, -0.5, 0.25][k];
    }
    labels[i] = rng.next() < 1 / (1 + Math.exp(-margin)) ? 1 : 0;
    labels[half + i] = 1 - labels[i];
  }
  const rows = 2 * half;
  const x = new Matrix(rows, columns);
  for (let i = 0; i < rows; i += 1) for (let k = 0; k < columns; k += 1) x.set(i, k, data[i * columns + k]);
  const theirs = new MlLogisticRegression({ numSteps: 4000, learningRate: 5e-3 });
  theirs.train(x, Matrix.columnVector(Array.from(labels)));
  // One against all: the first classifier's target is class 0.
  const [{ weights }] = theirs.classifiers;
  const fit = defined(
    (
      await fitLinearBatch({
        x: { data, rows, columns },
        problems: [{ rows: Int32Array.from(labels.keys()), labels, weights: null, C: 1e8 }],
        gemm,
        tolerance: 1e-12,
        standardize: false,
      })
    )[0],
  );
  expect(fit.bias).toBeCloseTo(0, 5);
  expect(Math.hypot(...fit.weights)).toBeGreaterThan(0.5);
  for (let k = 0; k < columns; k += 1) expect(Math.abs(weights.get(0, k))).toBeCloseTo(Math.abs(fit.weights[k]), 3);
  const signs = new Set(Array.from(fit.weights, (weight, k) => Math.sign(weight * weights.get(0, k))));
  expect(signs.size).toBe(1);
});
