import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { normal, seededRng } from '../../src/lib/rng.ts';
import { choleskyInPlace, choleskySolve, inverseCholesky, pivotedCholesky } from '../../src/math/cholesky.ts';
import { multiplyInto, referenceGemm, referenceGemm64 } from '../../src/math/gemm.ts';
import { smallestRitzValue } from '../../src/math/lanczos.ts';
import { gramOfRows, rowSpace } from '../../src/math/row-space.ts';

function randomArray(seed: number, length: number): Float64Array {
  const rng = seededRng('linear algebra', seed);
  return Float64Array.from({ length }, () => normal(rng));
}

/** A well-conditioned symmetric positive definite matrix. */
function positiveDefinite(seed: number, n: number): Float64Array {
  const a = gramOfRows(randomArray(seed, n * (n + 4)), n, n + 4);
  for (let i = 0; i < n; i += 1) a[i * n + i] += 0.1 * n;
  return a;
}

test('products are sums by definition for every transposition, and shapes are checked', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 6 }),
      fc.integer({ min: 0, max: 6 }),
      fc.integer({ min: 0, max: 6 }),
      fc.boolean(),
      fc.boolean(),
      async (m, n, k, transposeA, transposeB) => {
        const a = randomArray(m * 7 + k, m * k);
        const b = randomArray(n * 11 + k, k * n);
        const c = await referenceGemm64(a, b, m, n, k, { transposeA, transposeB });
        const single = await referenceGemm(Float32Array.from(a), Float32Array.from(b), m, n, k, {
          transposeA,
          transposeB,
        });
        for (let i = 0; i < m; i += 1) {
          for (let j = 0; j < n; j += 1) {
            let sum = 0;
            for (let l = 0; l < k; l += 1)
              sum += a[transposeA ? l * m + i : i * k + l] * b[transposeB ? j * k + l : l * n + j];
            expect(c[i * n + j]).toBeCloseTo(sum, 12);
            expect(single[i * n + j]).toBeCloseTo(sum, 5);
          }
        }
      },
    ),
  );
  expect(() => multiplyInto(new Float64Array(4), new Float64Array(3), new Float64Array(4), [2, 2, 2])).toThrow(
    '2 × 2 = 4',
  );
});

describe('Cholesky', () => {
  test('solves what it factored', () => {
    const a = positiveDefinite(1, 20);
    const x = randomArray(2, 20);
    const b = Float64Array.from({ length: 20 }, (_, i) => x.reduce((sum, v, j) => sum + a[i * 20 + j] * v, 0));
    expect(choleskyInPlace(a, 20)).toBe(true);
    choleskySolve(a, 20, b);
    b.forEach((v, i) => expect(v).toBeCloseTo(x[i], 10));
    expect(choleskyInPlace(Float64Array.of(1, 2, 2, 1), 2)).toBe(false);
  });
  test.each([1, 2, 63, 64, 65, 130, 201])('by halves gives an inverse triangle of order %i', async (n) => {
    const a = positiveDefinite(n, n);
    const w = await inverseCholesky(Float32Array.from(a), n, referenceGemm);
    if (w === null) throw new Error('not positive definite');
    // Wᵀ·W·A is the identity.
    const half = multiplyInto(new Float64Array(n * n), Float64Array.from(w), a, [n, n, n]);
    const identity = multiplyInto(new Float64Array(n * n), Float64Array.from(w), half, [n, n, n], { transposeA: true });
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < n; j += 1) {
        expect(Math.abs(identity[i * n + j] - (i === j ? 1 : 0))).toBeLessThan(1e-3);
        if (j > i) expect(w[i * n + j]).toBe(0);
      }
    }
  });
  test('by halves says so when the matrix is not positive definite, in either half', async () => {
    for (const spoiled of [3, 80]) {
      const a = Float32Array.from(positiveDefinite(5, 100));
      a[spoiled * 100 + spoiled] = -1;
      expect(await inverseCholesky(a, 100, referenceGemm)).toBe(null);
    }
  });
  test('with pivots stops at the rank and reproduces the matrix', () => {
    const basis = randomArray(7, 3 * 30);
    const mix = randomArray(8, 12 * 3);
    const rows = multiplyInto(new Float64Array(12 * 30), mix, basis, [12, 30, 3]);
    const k = gramOfRows(rows, 12, 30);
    const { rank, factor } = pivotedCholesky(k.slice(), 12);
    expect(rank).toBe(3);
    const back = multiplyInto(new Float64Array(144), factor, factor, [12, 12, 3], { transposeB: true });
    back.forEach((v, i) => expect(v).toBeCloseTo(k[i], 8));
  });
});

test('coordinates in the span of the rows keep inner products, and weights come back with norm and margins', () => {
  const [rows, columns] = [9, 40];
  const x = randomArray(3, rows * columns);
  x.copyWithin(columns * 4, columns * 2, columns * 3); // row 4 is row 2 again
  const { rank, coordinates, expand } = rowSpace(x, rows, columns);
  expect(rank).toBe(8);
  const weights = randomArray(4, rank);
  const w = expand(weights);
  const norm = (v: Float64Array) => v.reduce((sum, value) => sum + value * value, 0);
  expect(norm(w)).toBeCloseTo(norm(weights), 9);
  for (let i = 0; i < rows; i += 1) {
    let margin = 0;
    for (let r = 0; r < rank; r += 1) margin += coordinates[i * rank + r] * weights[r];
    let direct = 0;
    for (let k = 0; k < columns; k += 1) direct += x[i * columns + k] * w[k];
    expect(margin).toBeCloseTo(direct, 5);
  }
});

test('the smallest Ritz value of a full conjugate-gradient solve is the smallest eigenvalue', () => {
  const eigenvalues = [0.03, 0.5, 1, 2.5, 7];
  let residual = [1, 1, 1, 1, 1];
  let direction = residual;
  const alphas: number[] = [];
  const betas: number[] = [];
  for (let step = 0; step < 5; step += 1) {
    const rr = residual.reduce((s, r) => s + r * r, 0);
    const alpha = rr / direction.reduce((s, p, i) => s + p * p * eigenvalues[i], 0);
    const before = direction;
    residual = residual.map((r, i) => r - alpha * eigenvalues[i] * before[i]);
    const beta = residual.reduce((s, r) => s + r * r, 0) / rr;
    alphas.push(alpha);
    if (step < 4) betas.push(beta);
    const left = residual;
    direction = before.map((p, i) => left[i] + beta * p);
  }
  expect(smallestRitzValue(alphas, betas) / 0.03).toBeCloseTo(1, 2);
  expect(smallestRitzValue([], [])).toBe(1);
  expect(smallestRitzValue([0.5], [])).toBeCloseTo(2, 2);
});
