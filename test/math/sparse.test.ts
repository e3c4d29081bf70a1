import { describe, expect, test } from 'vitest';
import { seededRng } from '../../src/lib/rng.ts';
import { logisticLoss, logisticPass, logit, sigmoid, softplus } from '../../src/math/logistic-loss.ts';
import { type CsrMatrix, csrFromRows, csrMargins, fitSparseLogistic } from '../../src/math/sparse.ts';
import { defined, readGolden } from './golden.ts';

interface Golden {
  readonly rows: number;
  readonly columns: number;
  readonly indptr: readonly number[];
  readonly indices: readonly number[];
  readonly values: readonly number[];
  readonly labels: readonly number[];
  readonly weights: readonly number[];
  readonly fits: readonly {
    readonly C: number;
    readonly weighted: boolean;
    readonly weights: readonly number[];
    readonly bias: number;
  }[];
}
const golden = readGolden('math/sparse-logistic') as unknown as Golden;
const x: CsrMatrix = {
  rows: golden.rows,
  columns: golden.columns,
  indptr: Int32Array.from(golden.indptr),
  indices: Int32Array.from(golden.indices),
  values: Float64Array.from(golden.values),
};

test('the loss and its derivatives agree with finite differences, also where probabilities saturate', () => {
  const margins = Float64Array.of(-800, -30, -2, 0, 0.5, 3, 40, 800);
  const labels = [0, 1, 1, 0, 1, 0, 0, 1];
  const weights = [1, 2, 0.5, 1, 3, 1, 1, 1];
  const residual = new Float64Array(8);
  const curvature = new Float64Array(8);
  const total = logisticPass(margins, labels, weights, residual, curvature);
  let sum = 0;
  for (let i = 0; i < 8; i += 1) {
    sum += weights[i] * logisticLoss(margins[i], labels[i]);
    const h = 1e-5;
    const at = (d: number) => weights[i] * logisticLoss(margins[i] + d, labels[i]);
    expect(residual[i]).toBeCloseTo((at(h) - at(-h)) / (2 * h), 6);
    const slope = (d: number) => weights[i] * (sigmoid(margins[i] + d) - labels[i]);
    expect(curvature[i]).toBeCloseTo((slope(h) - slope(-h)) / (2 * h), 6);
  }
  expect(total).toBe(sum);
  expect(softplus(-800)).toBe(0);
  expect(softplus(800)).toBe(800);
  expect(logit(sigmoid(3))).toBeCloseTo(3, 12);
});

describe('sparse logistic regression', () => {
  test('has the coefficients of scikit-learn at every C, weighted or not', () => {
    for (const fit of golden.fits) {
      const got = defined(
        fitSparseLogistic(
          { x, labels: golden.labels, weights: fit.weighted ? golden.weights : null, C: fit.C },
          { tolerance: 1e-14 },
        ),
      );
      expect(got.convergence.converged).toBe(true);
      const scale = Math.max(...fit.weights.map(Math.abs));
      fit.weights.forEach((w, j) => expect(Math.abs(got.weights[j] - w) / scale).toBeLessThan(1e-5));
      expect(Math.abs(got.bias - fit.bias) / scale).toBeLessThan(1e-5);
    }
  });
  test('integer weights are copies of rows, and a subset of rows is a matrix of them', () => {
    const rows = Int32Array.from({ length: x.rows }, (_, i) => i).filter((i) => i % 3 !== 0);
    const labels = Array.from(rows, (i) => golden.labels[i]);
    const weights = Array.from(rows, (i) => 1 + (i % 2));
    const copies = Array.from(rows).flatMap((i, at) => Array.from({ length: weights[at] }, () => i));
    const weighted = defined(fitSparseLogistic({ x, rows, labels, weights, C: 5 }, { tolerance: 1e-14 }));
    const repeated = defined(
      fitSparseLogistic(
        { x, rows: Int32Array.from(copies), labels: copies.map((i) => golden.labels[i]), weights: null, C: 5 },
        { tolerance: 1e-14 },
      ),
    );
    repeated.weights.forEach((w, j) => expect(weighted.weights[j]).toBeCloseTo(w, 6));
  });
  test('separable rows reach the finite optimum of the penalised loss', () => {
    const tiny = csrFromRows([[[0, 1]], [[0, -1]]], 2);
    const fit = defined(fitSparseLogistic({ x: tiny, labels: [1, 0], weights: null, C: 1e6 }, { tolerance: 1e-13 }));
    // d/dw: w/C = 2·sigmoid(−w)
    expect(fit.weights[0] / 1e6).toBeCloseTo(2 * sigmoid(-fit.weights[0]), 10);
    expect(fit.weights[1]).toBe(0);
    expect(fit.bias).toBeCloseTo(0, 8);
    expect(Array.from(csrMargins(tiny, fit.weights, fit.bias, Int32Array.of(1)))[0]).toBeLessThan(-10);
  });
  test('one class is undefined with the reason, and a bad C or weight is an error', () => {
    const tiny = csrFromRows([[[0, 1]], [[0, -1]]], 1);
    expect(fitSparseLogistic({ x: tiny, labels: [1, 1], weights: null, C: 1 })).toEqual({
      undefinedBecause: 'the training rows hold positives only',
    });
    expect(fitSparseLogistic({ x: tiny, labels: [1, 0], weights: [0, 1], C: 1 })).toEqual({
      undefinedBecause: 'the training rows hold negatives only',
    });
    expect(() => fitSparseLogistic({ x: tiny, labels: [1, 0], weights: null, C: 0 })).toThrow(
      'C must be a positive number',
    );
    expect(() => fitSparseLogistic({ x: tiny, labels: [1, 0], weights: [1, Number.NaN], C: 1 })).toThrow('weight 1');
  });
  test('a fit that is stopped says so', () => {
    const stopped = defined(
      fitSparseLogistic({ x, labels: golden.labels, weights: null, C: 1e4 }, { maxIterations: 1 }),
    );
    expect(stopped.convergence).toMatchObject({ converged: false, iterations: 1 });
    expect(stopped.convergence.relativeGap).toBeGreaterThan(1e-10);
  });
  test('thousands of words for dozens of rows take a few Newton steps', () => {
    const rng = seededRng('sparse', 1);
    const rows = Array.from({ length: 80 }, () =>
      Array.from(new Set(Array.from({ length: 60 }, () => rng.below(5000))), (c) => [c, rng.next()] as const),
    );
    const labels = rows.map(() => rng.below(2));
    const fit = defined(fitSparseLogistic({ x: csrFromRows(rows, 5000), labels, weights: null, C: 10 }));
    expect(fit.convergence.converged).toBe(true);
    expect(fit.convergence.iterations).toBeLessThan(40);
  });
});
