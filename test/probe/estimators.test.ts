import { describe, expect, test } from 'vitest';
import { normal, seededRng } from '../../src/lib/rng.ts';
import { choleskyInPlace, choleskySolve } from '../../src/math/cholesky.ts';
import { referenceGemm as gemm } from '../../src/math/gemm.ts';
import { auroc } from '../../src/math/ranking.ts';
import { type EstimatorProblem, estimators } from '../../src/probe/estimators.ts';
import { createFitReaders, estimatorNames } from '../../src/probe/fit-readers.ts';
import { margins, probabilities } from '../../src/probe/score.ts';
import type { FeatureMatrix, Probe } from '../../src/types.ts';
import { defined } from '../math/golden.ts';

/** Two classes whose means differ along the first column, with correlated noise. */
function twoClasses(seed: number, rows: number, columns: number): { x: FeatureMatrix; problem: EstimatorProblem } {
  const rng = seededRng('estimators', seed);
  const data = new Float32Array(rows * columns);
  const labels = new Uint8Array(rows);
  for (let i = 0; i < rows; i += 1) {
    labels[i] = rng.next() < 0.35 ? 1 : 0;
    const common = normal(rng);
    for (let k = 0; k < columns; k += 1) data[i * columns + k] = normal(rng) + 2 * common;
    data[i * columns] += 2 * labels[i];
    data[i * columns + 1] = 40 + 10 * data[i * columns + 1];
  }
  const weights = Float64Array.from({ length: rows }, (_, i) => 1 + (i % 3));
  return {
    x: { data, rows, columns },
    problem: { rows: Int32Array.from({ length: rows }, (_, i) => i), labels, weights, C: null },
  };
}

/** Weighted class means, total moments and pooled within-class covariance of the standardised columns, by definition. */
function byDefinition({ data, rows, columns }: FeatureMatrix, { labels, weights }: EstimatorProblem) {
  const s = (i: number) => (weights === null ? 1 : weights[i]);
  const total = Array.from({ length: rows }, (_, i) => s(i)).reduce((a, b) => a + b, 0);
  const mean = Array.from({ length: columns }, (_, k) => {
    let sum = 0;
    for (let i = 0; i < rows; i += 1) sum += s(i) * data[i * columns + k];
    return sum / total;
  });
  const scale = mean.map((m, k) => {
    let sum = 0;
    for (let i = 0; i < rows; i += 1) sum += s(i) * (data[i * columns + k] - m) ** 2;
    return Math.sqrt(sum / total);
  });
  const z = (i: number, k: number) => (data[i * columns + k] - mean[k]) / scale[k];
  const classMean = (label: number) =>
    mean.map((_, k) => {
      let sum = 0;
      let weight = 0;
      for (let i = 0; i < rows; i += 1) {
        if (labels[i] !== label) continue;
        sum += s(i) * z(i, k);
        weight += s(i);
      }
      return sum / weight;
    });
  const low = classMean(0);
  const high = classMean(1);
  const within = new Float64Array(columns * columns);
  for (let i = 0; i < rows; i += 1) {
    const centre = labels[i] === 1 ? high : low;
    for (let a = 0; a < columns; a += 1) {
      for (let b = 0; b < columns; b += 1)
        within[a * columns + b] += (s(i) * (z(i, a) - centre[a]) * (z(i, b) - centre[b])) / total;
    }
  }
  return { low, high, within, total };
}

describe('mean difference', () => {
  test('is the difference of the standardised class means, zero half way between them', async () => {
    const { x, problem } = twoClasses(1, 80, 5);
    const reader = defined((await estimators['mean_difference'](x, [problem], { gemm }))[0]);
    const { low, high } = byDefinition(x, problem);
    reader.weights.forEach((w, k) => expect(w).toBeCloseTo(high[k] - low[k], 6));
    const middle = low.map((v, k) => (v + high[k]) / 2);
    expect(reader.weights.reduce((sum, w, k) => sum + w * middle[k], reader.bias)).toBeCloseTo(0, 6);
  });
  test.each([null, 0.5])('whitened is discriminant analysis with the shrunken covariance, C = %s', async (C) => {
    const { x, problem } = twoClasses(2, 90, 6);
    const reader = defined((await estimators['mean_difference_whitened'](x, [{ ...problem, C }], { gemm }))[0]);
    const { low, high, within, total } = byDefinition(x, problem);
    for (let k = 0; k < 6; k += 1) within[k * 7] += C === null ? 0.1 : 1 / (C * total);
    const expected = Float64Array.from(high, (v, k) => v - low[k]);
    choleskyInPlace(within, 6);
    choleskySolve(within, 6, expected);
    reader.weights.forEach((w, k) => expect(w / expected[k]).toBeCloseTo(1, 4));
    const middle = low.map((v, k) => (v + high[k]) / 2);
    expect(reader.weights.reduce((sum, w, k) => sum + w * middle[k], reader.bias)).toBeCloseTo(0, 4);
  });
  test('whitened ignores noise that the plain one follows', async () => {
    const { x, problem } = twoClasses(3, 400, 12);
    const fitted = await Promise.all(
      ['mean_difference', 'mean_difference_whitened'].map(async (name) => {
        const reader = defined((await estimators[name](x, [problem], { gemm }))[0]);
        return defined(auroc(margins(reader, x), problem.labels));
      }),
    );
    expect(fitted[1]).toBeGreaterThan(fitted[0] + 0.05);
  });
});

describe('createFitReaders', () => {
  test('answers in the order of the problems whatever their estimators, one-class problems undefined', async () => {
    const { x, problem } = twoClasses(4, 60, 4);
    const fit = createFitReaders({ gemm });
    const one = { ...problem, labels: new Uint8Array(60) };
    const names = estimatorNames.flatMap((estimator) => [
      { ...problem, estimator },
      { ...one, estimator },
    ]);
    const mixed = names.toReversed();
    const a = await fit(x, names);
    const b = await fit(x, mixed);
    expect(b.toReversed()).toEqual(a);
    a.forEach((reader, at) => {
      if (at % 2 === 1) expect(reader).toEqual({ undefinedBecause: 'the training rows hold negatives only' });
      else expect(defined(auroc(margins(defined(reader), x), problem.labels))).toBeGreaterThan(0.7);
    });
  });
  test('names the estimators there are when asked for another', async () => {
    const { x, problem } = twoClasses(5, 20, 3);
    await expect(createFitReaders({ gemm })(x, [{ ...problem, estimator: 'svm' }])).rejects.toThrow(
      'no estimator svm; there are logistic, ridge, mean_difference, mean_difference_whitened',
    );
  });
  test('makes a fit that did not converge undefined, with how far it came', async () => {
    const { x, problem } = twoClasses(6, 40, 5);
    const [reader] = await createFitReaders({ gemm, tolerance: 1e-30 })(x, [
      { ...problem, C: 1e4, estimator: 'logistic' },
    ]);
    expect(reader).toMatchObject({
      undefinedBecause: expect.stringMatching(/did not converge in \d+ steps \(relative gap/),
    });
  });
});

test('scores are margins of the standardised row, and probabilities their calibration', () => {
  const x: FeatureMatrix = { data: Float32Array.of(1, 2, 3, 4, 5, 6), rows: 3, columns: 2 };
  const probe: Probe = {
    taps: ['resid_post.0'],
    landmark: { anchor: 'reveal', offset: 1, position: 'pre_action' },
    target: 'first_unsafe_event',
    horizon: null,
    estimator: 'logistic',
    C: 1,
    width: 2,
    mean: Float64Array.of(1, 2),
    scale: Float64Array.of(2, 4),
    weights: Float64Array.of(3, -1),
    bias: 0.5,
    calibration: { kind: 'platt', slope: 2, intercept: -1 },
    thresholds: [],
  };
  expect(Array.from(margins(probe, x))).toEqual([0.5, 3, 5.5]);
  expect(Array.from(margins(probe, x, Int32Array.of(2, 0)))).toEqual([5.5, 0.5]);
  expect(probabilities(probe, x)[1]).toBeCloseTo(1 / (1 + Math.exp(-5)), 12);
  expect(() => margins(probe, { ...x, columns: 3, rows: 2 })).toThrow(
    'the reader has 2 weights, the features 3 columns',
  );
});
