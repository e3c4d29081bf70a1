import { readdirSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { normal, seededRng } from '../../src/lib/rng.ts';
import { referenceGemm as gemm } from '../../src/math/gemm.ts';
import { logisticLoss } from '../../src/math/logistic-loss.ts';
import { matrixBlocks } from '../../src/math/row-blocks.ts';
import { type FittedReader, fitLinearBatch, type LinearFitProblem } from '../../src/probe/fit-linear.ts';
import { margins } from '../../src/probe/score.ts';
import type { FeatureMatrix } from '../../src/types.ts';
import { defined, readGolden } from '../math/golden.ts';

interface Golden {
  readonly rows: number;
  readonly columns: number;
  readonly x: readonly number[];
  readonly labels: readonly number[];
  readonly weights: readonly number[] | null;
  readonly mean: readonly number[];
  readonly scale: readonly number[];
  readonly fits: readonly {
    readonly C: number;
    readonly objective: number;
    readonly weights: readonly number[];
    readonly bias: number;
    readonly ridgeWeights: readonly number[];
    readonly ridgeBias: number;
  }[];
}
const goldens = readdirSync(new URL('../golden/logistic', import.meta.url))
  .map((file) => file.replace('.json', ''))
  .map((name) => ({ name, golden: readGolden(`logistic/${name}`) as unknown as Golden }));

const matrixOf = (g: Golden): FeatureMatrix => ({ data: Float32Array.from(g.x), rows: g.rows, columns: g.columns });
const everyRow = (rows: number) => Int32Array.from({ length: rows }, (_, i) => i);

/** Relative objective that rescaling the features to float32 may cost. */
const ROUNDING = 1e-11;

/** The objective that is minimised, from the reader alone, in float64. */
function objective(x: FeatureMatrix, problem: LinearFitProblem, reader: FittedReader): number {
  const z = margins(reader, x, problem.rows);
  let sum = 0;
  for (let i = 0; i < z.length; i += 1) {
    sum += (problem.weights === null ? 1 : problem.weights[i]) * logisticLoss(z[i], problem.labels[i]);
  }
  return sum + reader.weights.reduce((square, w) => square + w * w, 0) / (2 * problem.C);
}

function randomMatrix(seed: number, rows: number, columns: number): FeatureMatrix {
  const rng = seededRng('fit-linear test', seed);
  return { data: Float32Array.from({ length: rows * columns }, () => normal(rng)), rows, columns };
}
function noisyLabels(seed: number, { data, rows, columns }: FeatureMatrix): Uint8Array {
  const rng = seededRng('fit-linear labels', seed);
  return Uint8Array.from({ length: rows }, (_, i) => (data[i * columns] + normal(rng) > 0 ? 1 : 0));
}

describe('logistic fits', () => {
  test.each(goldens)('reach the optimum of scikit-learn: $name', async ({ golden }) => {
    const x = matrixOf(golden);
    const rows = everyRow(x.rows);
    const labels = Uint8Array.from(golden.labels);
    const weights = golden.weights === null ? null : Float64Array.from(golden.weights);
    const problems = golden.fits.map(({ C }) => ({ rows, labels, weights, C }));
    for (const tolerance of [undefined, 1e-13]) {
      const fits = (await fitLinearBatch({ x, problems, gemm, tolerance })).map(defined);
      fits.forEach((fit, at) => {
        const expected = golden.fits[at];
        const gap = (objective(x, problems[at], fit) - expected.objective) / expected.objective;
        expect(gap).toBeLessThan(1e-6);
        expect(gap).toBeGreaterThan(-1e-8);
        expect(fit.convergence?.converged).toBe(true);
        if (tolerance === undefined) return;
        const size = Math.hypot(...expected.weights);
        const error = Math.hypot(...expected.weights.map((w, k) => fit.weights[k] - w));
        // The penalty is all that holds a collinear direction: ‖w − w*‖² ≤ 2·C·(objective − optimum).
        expect(error).toBeLessThan(1e-4 * size + Math.sqrt(2 * expected.C * ROUNDING * expected.objective));
        expect(Math.abs(fit.bias - expected.bias) / Math.max(size, Math.abs(expected.bias))).toBeLessThan(1e-4);
        golden.mean.forEach((m, k) => expect(fit.mean[k]).toBeCloseTo(m, 4));
        golden.scale.forEach((s, k) => expect(fit.scale[k] / s).toBeCloseTo(1, 6));
      });
    }
  });

  test('do not depend on what else is fitted in the same call, or on the slots', async () => {
    const x = randomMatrix(1, 60, 8);
    const labels = noisyLabels(1, x);
    const problems: LinearFitProblem[] = [];
    for (let fold = 0; fold < 4; fold += 1) {
      const rows = everyRow(60).filter((i) => i % 4 !== fold);
      for (const C of [0.01, 1, 100])
        problems.push({ rows, labels: labels.filter((_, i) => i % 4 !== fold), weights: null, C });
    }
    const together = (await fitLinearBatch({ x, problems, gemm, tolerance: 1e-13 })).map(defined);
    const twos = (await fitLinearBatch({ x, problems, gemm, tolerance: 1e-13, slots: 2 })).map(defined);
    for (let at = 0; at < problems.length; at += 1) {
      const alone = defined((await fitLinearBatch({ x, problems: [problems[at]], gemm, tolerance: 1e-13 }))[0]);
      for (const fits of [together, twos]) {
        fits[at].weights.forEach((w, k) => expect(Math.abs(w - alone.weights[k])).toBeLessThan(1e-4));
      }
      expect(Array.from(together[at].mean)).toEqual(Array.from(alone.mean));
    }
  });

  test('do not see rows they do not train on', async () => {
    const x = randomMatrix(2, 40, 5);
    const rows = everyRow(30);
    const labels = noisyLabels(2, x).slice(0, 30);
    const other = { ...x, data: Float32Array.from(x.data, (v, at) => (at >= 30 * 5 ? 1e6 + v : v)) };
    const problems = [{ rows, labels, weights: null, C: 1 }];
    const [a] = (await fitLinearBatch({ x, problems, gemm })).map(defined);
    const [b] = (await fitLinearBatch({ x: other, problems, gemm })).map(defined);
    expect(b).toEqual(a);
  });

  test('of permuted rows are the same; a weight of 2 is the row twice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 1000 }), fc.boolean(), async (seed, wide) => {
        const x = randomMatrix(seed, 24, wide ? 60 : 4);
        const labels = noisyLabels(seed, x);
        labels[0] = 1;
        labels[1] = 0;
        const { columns } = x;
        const order = everyRow(24).reverse();
        const permuted = { ...x, data: Float32Array.from(order, () => 0) } as FeatureMatrix;
        const data = new Float32Array(24 * columns);
        order.forEach((from, to) => data.set(x.data.subarray(from * columns, (from + 1) * columns), to * columns));
        const weights = Float64Array.from({ length: 24 }, (_, i) => 1 + (i % 2));
        const copies = Array.from({ length: 24 }, (_, i) => i).flatMap((i) => (i % 2 === 0 ? [i] : [i, i]));
        const copied = new Float32Array(copies.length * columns);
        copies.forEach((from, to) => copied.set(x.data.subarray(from * columns, (from + 1) * columns), to * columns));
        const fit = async (features: FeatureMatrix, y: Uint8Array, s: Float64Array | null) =>
          defined(
            (
              await fitLinearBatch({
                x: features,
                problems: [{ rows: everyRow(features.rows), labels: y, weights: s, C: 0.5 }],
                gemm,
                tolerance: 1e-13,
              })
            )[0],
          );
        const weighted = await fit(x, labels, weights);
        const turned = await fit(
          { ...permuted, data },
          Uint8Array.from(order, (i) => labels[i]),
          Float64Array.from(order, (i) => weights[i]),
        );
        const repeated = await fit(
          { data: copied, rows: copies.length, columns },
          Uint8Array.from(copies, (i) => labels[i]),
          null,
        );
        for (const other of [turned, repeated]) {
          other.weights.forEach((w, k) => expect(Math.abs(w - weighted.weights[k])).toBeLessThan(2e-4));
          other.scale.forEach((s, k) => expect(s).toBeCloseTo(weighted.scale[k], 6));
        }
      }),
      { numRuns: 15 },
    );
  });

  test('in the span of few rows equal those on the columns', async () => {
    // 30 rows of 59 columns are solved on the columns, 30 of 60 in the span of the rows: one zero column apart.
    const x = randomMatrix(3, 30, 59);
    const wide = new Float32Array(30 * 60);
    for (let i = 0; i < 30; i += 1) wide.set(x.data.subarray(i * 59, (i + 1) * 59), i * 60);
    const problems = [0.01, 1, 1000].map((C) => ({ rows: everyRow(30), labels: noisyLabels(3, x), weights: null, C }));
    const onColumns = (await fitLinearBatch({ x, problems, gemm, tolerance: 1e-13 })).map(defined);
    const onRows = (
      await fitLinearBatch({ x: { data: wide, rows: 30, columns: 60 }, problems, gemm, tolerance: 1e-13 })
    ).map(defined);
    onColumns.forEach((fit, at) => {
      const size = Math.hypot(...fit.weights);
      fit.weights.forEach((w, k) => expect(Math.abs(onRows[at].weights[k] - w) / size).toBeLessThan(1e-4));
      expect(onRows[at].weights[59]).toBe(0);
    });
  });

  test('read blocks of rows as they read the matrix', async () => {
    const x = randomMatrix(4, 50, 6);
    const problems = [{ rows: everyRow(50), labels: noisyLabels(4, x), weights: null, C: 2 }];
    const blocks = {
      ...matrixBlocks(x),
      async *blocks() {
        for (let start = 0; start < 50; start += 16) {
          await Promise.resolve();
          const count = Math.min(16, 50 - start);
          yield { start, count, data: x.data.slice(start * 6, (start + count) * 6) };
        }
      },
    };
    const [a] = (await fitLinearBatch({ x, problems, gemm, tolerance: 1e-12 })).map(defined);
    const [b] = (await fitLinearBatch({ x: blocks, problems, gemm, tolerance: 1e-12 })).map(defined);
    b.weights.forEach((w, k) => expect(w).toBeCloseTo(a.weights[k], 5));
  });

  test('without standardisation are plain coefficients of x', async () => {
    const x = randomMatrix(5, 50, 4);
    x.data.forEach((v, at) => (x.data[at] = at % 4 === 1 ? 100 + 20 * v : v));
    const problem = { rows: everyRow(50), labels: noisyLabels(5, x), weights: null, C: 0.3 };
    const [fit] = (await fitLinearBatch({ x, problems: [problem], gemm, tolerance: 1e-13, standardize: false })).map(
      defined,
    );
    expect(Array.from(fit.scale)).toEqual([1, 1, 1, 1]);
    // The gradient of the objective in plain coordinates vanishes.
    const z = margins(fit, x, problem.rows);
    for (let k = 0; k < 4; k += 1) {
      let gradient = fit.weights[k] / problem.C;
      for (let i = 0; i < 50; i += 1) gradient += (1 / (1 + Math.exp(-z[i])) - problem.labels[i]) * x.data[4 * i + k];
      expect(Math.abs(gradient)).toBeLessThan(1e-3 * (k === 1 ? 100 : 1));
    }
  });

  test('of one class, or of no weight, are undefined with the reason, and the others of the call are fitted', async () => {
    const x = randomMatrix(6, 20, 3);
    const rows = everyRow(20);
    const labels = noisyLabels(6, x);
    const fits = await fitLinearBatch({
      x,
      problems: [
        { rows, labels: new Uint8Array(20), weights: null, C: 1 },
        { rows, labels, weights: null, C: 1 },
        { rows, labels, weights: Float64Array.from(labels), C: 1 },
        { rows, labels, weights: new Float64Array(20), C: 1 },
        { rows: new Int32Array(0), labels: new Uint8Array(0), weights: null, C: 1 },
      ],
      gemm,
    });
    expect(fits[0]).toEqual({ undefinedBecause: 'the training rows hold negatives only' });
    expect(defined(fits[1]).convergence?.converged).toBe(true);
    expect(fits[2]).toEqual({ undefinedBecause: 'the training rows hold positives only' });
    expect(fits[3]).toEqual({ undefinedBecause: 'the training rows hold no rows' });
    expect(fits[4]).toEqual({ undefinedBecause: 'the training rows hold no rows' });
  });

  test('report that they did not converge when they are stopped', async () => {
    const x = randomMatrix(7, 40, 5);
    const stopped = defined(
      (
        await fitLinearBatch({
          x,
          problems: [{ rows: everyRow(40), labels: noisyLabels(7, x), weights: null, C: 1e4 }],
          gemm,
          maxIterations: 1,
        })
      )[0],
    );
    expect(stopped.convergence).toMatchObject({ converged: false, iterations: 1 });
    expect(stopped.convergence?.relativeGap).toBeGreaterThan(1e-7);
  });

  test('refuse what is not a number, naming the column, and problems that do not fit the matrix', async () => {
    const x = randomMatrix(8, 10, 3);
    x.data[3 * 3 + 1] = Number.NaN;
    const labels = Uint8Array.from([0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    const problem = { rows: everyRow(10), labels, weights: null, C: 1 };
    await expect(fitLinearBatch({ x, problems: [problem], gemm })).rejects.toThrow('NaN or Infinity in column 1');
    const clean = [{ ...problem, rows: everyRow(10).filter((i) => i !== 3), labels: labels.slice(1) }];
    expect(defined((await fitLinearBatch({ x, problems: clean, gemm }))[0]).convergence?.converged).toBe(true);
    for (const [bad, message] of [
      [{ ...problem, C: 0 }, 'C must be a positive number'],
      [{ ...problem, labels: labels.slice(1) }, '9 labels for 10 rows'],
      [{ ...problem, rows: everyRow(10).reverse() }, 'rows must ascend'],
      [{ ...problem, weights: new Float64Array(10).fill(-1) }, 'must be a finite number ≥ 0'],
    ] as const) {
      await expect(fitLinearBatch({ x, problems: [bad], gemm })).rejects.toThrow(message);
    }
  });
});

test.each(goldens)('ridge fits on ±1 equal scikit-learn: $name', async ({ golden }) => {
  const x = matrixOf(golden);
  const weights = golden.weights === null ? null : Float64Array.from(golden.weights);
  const problems = golden.fits.map(({ C }) => ({
    rows: everyRow(x.rows),
    labels: Uint8Array.from(golden.labels),
    weights,
    C,
    loss: 'squared' as const,
  }));
  const fits = (await fitLinearBatch({ x, problems, gemm, tolerance: 1e-13 })).map(defined);
  fits.forEach((fit, at) => {
    const { ridgeWeights, ridgeBias } = golden.fits[at];
    const size = Math.hypot(...ridgeWeights);
    const error = Math.hypot(...ridgeWeights.map((w, k) => fit.weights[k] - w));
    expect(error).toBeLessThan(1e-4 * size + Math.sqrt(2 * problems[at].C * ROUNDING * (x.rows / 2)));
    expect(fit.bias).toBeCloseTo(ridgeBias, 4);
  });
});
