import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGemm } from '../../src/model/gemm.ts';

type Opened = Awaited<ReturnType<typeof createGemm>>;
let opened: Opened;
beforeAll(async () => {
  opened = await createGemm({ threads: 1 });
});
afterAll(() => opened.close());

/** Sums in float64. */
function plain(
  a: ArrayLike<number>,
  b: ArrayLike<number>,
  m: number,
  n: number,
  k: number,
  ta: boolean,
  tb: boolean,
): number[] {
  const c: number[] = [];
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let l = 0; l < k; l++) sum += (a[ta ? l * m + i : i * k + l] ?? 0) * (b[tb ? j * k + l : l * n + j] ?? 0);
      c.push(sum);
    }
  }
  return c;
}
const numbers = (count: number, seed: number): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => Math.fround(Math.sin(seed + i * 12.9898) * 2));

describe('createGemm', () => {
  it('equals sums in double precision for every shape and transposition, empty ones included', async () => {
    const size = fc.integer({ min: 0, max: 17 });
    await fc.assert(
      fc.asyncProperty(size, size, size, fc.boolean(), fc.boolean(), fc.integer(), async (m, n, k, ta, tb, seed) => {
        const a = numbers(m * k, seed % 1000);
        const b = numbers(k * n, (seed % 1000) + 0.5);
        const c = await opened.gemm(a, b, m, n, k, { transposeA: ta, transposeB: tb });
        const want = plain(a, b, m, n, k, ta, tb);
        expect(c.length).toBe(m * n);
        for (const [i, value] of want.entries()) expect(Math.abs((c[i] ?? NaN) - value)).toBeLessThan(1e-4);
      }),
      { numRuns: 60 },
    );
  });

  it('gives double precision for doubles, views and transposes included', async () => {
    const pool = Float64Array.from({ length: 60 }, (_, i) => Math.sin(1 + i * 12.9898) + 1e-9 * i);
    for (const [transposeA, transposeB] of [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ] as const) {
      const a = pool.subarray(3, 3 + 20);
      const b = pool.subarray(30, 30 + 15);
      const c = await opened.gemm64(a, b, 4, 3, 5, { transposeA, transposeB });
      const want = plain(a, b, 4, 3, 5, transposeA, transposeB);
      for (const [i, value] of want.entries()) expect(Math.abs((c[i] ?? NaN) - value)).toBeLessThan(1e-13);
    }
  });

  it('reads operands that are views into a larger array', async () => {
    const pool = numbers(100, 3);
    const c = await opened.gemm(pool.subarray(10, 16), pool.subarray(40, 46), 2, 2, 3);
    const want = plain(pool.slice(10, 16), pool.slice(40, 46), 2, 2, 3, false, false);
    for (const [i, value] of want.entries()) expect(c[i]).toBeCloseTo(value, 5);
  });

  it('gives the same in pieces as in double precision when the product is too large for one call', async () => {
    // 2 × 2 results over a depth that needs more than one piece would take seconds, so rows are checked by sampling.
    const [m, n, k] = [5200, 2000, 2000];
    const a = numbers(m * k, 1);
    const b = numbers(k * n, 2);
    const c = await opened.gemm(a, b, m, n, k);
    for (const i of [0, 4999, 5000, 5199]) {
      const want = plain(a.subarray(i * k, (i + 1) * k), b, 1, n, k, false, false);
      for (let j = 0; j < n; j += 97) expect(Math.abs((c[i * n + j] ?? NaN) - (want[j] ?? 0))).toBeLessThan(2e-2);
    }
    const d = await opened.gemm(a, a, k, k, m, { transposeA: true });
    for (const [i, j] of [
      [0, 0],
      [17, 1999],
      [1999, 3],
    ] as const) {
      let sum = 0;
      for (let l = 0; l < m; l++) sum += (a[l * k + i] ?? 0) * (a[l * k + j] ?? 0);
      expect(Math.abs((d[i * k + j] ?? NaN) - sum)).toBeLessThan(5e-2);
    }
  });

  it('says which operand does not fit its shape', async () => {
    await expect(opened.gemm(new Float32Array(5), new Float32Array(6), 2, 2, 3)).rejects.toThrow(
      'expected a of 2 × 3 = 6 numbers, got 5',
    );
    await expect(opened.gemm(new Float32Array(6), new Float32Array(7), 2, 2, 3)).rejects.toThrow(
      'expected b of 3 × 2 = 6 numbers, got 7',
    );
  });
});
