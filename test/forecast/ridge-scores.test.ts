import { expect, test } from 'vitest';
import { ridgeScores } from '../../src/forecast/ridge-scores.ts';
import { normal, seededRng } from '../../src/lib/rng.ts';
import type { FeatureMatrix, Gemm } from '../../src/types.ts';

const N = 12;
const training = Int32Array.from({ length: 8 }, (_, i) => i);
const held = Int32Array.from([8, 9, 10, 11]);

function random(columns: number): FeatureMatrix {
  const rng = seededRng('ridge', columns);
  return { data: Float32Array.from({ length: N * columns }, () => 3 + 2 * normal(rng)), rows: N, columns };
}

/** Two outcomes, centred. */
const outcomes = Float32Array.from([1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 0, 1].map((y) => y - 0.5));

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((s, v, j) => s + v * b[j], 0);
}

/** Σ over rows of (w·z − y)² + λ|w|², by gradient descent: nothing shared with the code under test. */
function byDescent(x: FeatureMatrix, y: Float32Array, lambda: number): number[] {
  const d = x.columns;
  const at = (row: number, j: number) => x.data[row * d + j];
  const mean = Array.from({ length: d }, (_, j) => training.reduce((s, row) => s + at(row, j), 0) / 8);
  const sd = mean.map((m, j) => Math.sqrt(training.reduce((s, row) => s + (at(row, j) - m) ** 2, 0) / 8));
  const z = (row: number) => mean.map((m, j) => (at(row, j) - m) / sd[j]);
  let w = mean.map(() => 0);
  for (let step = 0; step < 40_000; step += 1) {
    const errors = Array.from(training, (row, i) => dot(w, z(row)) - y[i]);
    const rate = 1 / (8 * d + lambda);
    w = w.map(
      (v, j) => v - rate * (Array.from(training).reduce((s, row, i) => s + errors[i] * z(row)[j], 0) + lambda * v),
    );
  }
  return Array.from(held, (row) => dot(w, z(row)));
}

test.each([3, 20])(
  'scores of %i columns are those of ridge regression, in either of the two systems',
  async (columns) => {
    const x = random(columns);
    const ridges = [10];
    const [scores] = await ridgeScores({ x, training, held, outcomes, ridges });
    for (const b of [0, 1]) {
      const expected = byDescent(x, outcomes.subarray(b * 8, (b + 1) * 8), (10 * columns * 8) / 100);
      expected.forEach((value, i) => expect(scores[b * 4 + i]).toBeCloseTo(value, 4));
    }
  },
);

test('a handed matrix product is used and changes nothing', async () => {
  let calls = 0;
  const gemm: Gemm = (a, b, m, n, k) => {
    calls += 1;
    const out = Float32Array.from({ length: m * n }, (_, at) => {
      let sum = 0;
      for (let l = 0; l < k; l += 1) sum += a[Math.floor(at / n) * k + l] * b[(at % n) * k + l];
      return sum;
    });
    return Promise.resolve(out);
  };
  const task = { x: random(5), training, held, outcomes, ridges: [1, 100] };
  const [own, handed] = [await ridgeScores(task), await ridgeScores({ ...task, gemm })];
  expect(calls).toBeGreaterThan(2);
  own.forEach((scores, r) => scores.forEach((value, i) => expect(value).toBeCloseTo(handed[r][i], 5)));
});
