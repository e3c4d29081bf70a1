/**
 * Matrix products in plain JavaScript: the reference that tests hold other kernels to, and what tiny products use, where
 * handing the work to a runtime costs more than the work.
 */
import type { Gemm } from '../types.ts';

/** [m,k]·[k,n] → [m,n] with double accumulation, rounded once to float32. Same conventions as `Gemm`, but synchronous. */
export function multiply(
  a: Float32Array,
  b: Float32Array,
  m: number,
  n: number,
  k: number,
  { transposeA = false, transposeB = false }: { readonly transposeA?: boolean; readonly transposeB?: boolean } = {},
): Float32Array {
  if (a.length !== m * k) throw new RangeError(`expected a of ${m} × ${k} = ${m * k} numbers, got ${a.length}`);
  if (b.length !== k * n) throw new RangeError(`expected b of ${k} × ${n} = ${k * n} numbers, got ${b.length}`);
  const out = new Float32Array(m * n);
  const row = new Float64Array(n);
  const [stepA, strideA] = transposeA ? [m, 1] : [1, k];
  for (let i = 0; i < m; i += 1) {
    if (transposeB) {
      for (let j = 0; j < n; j += 1) {
        let sum = 0;
        for (let l = 0; l < k; l += 1) sum += a[i * strideA + l * stepA] * b[j * k + l];
        out[i * n + j] = sum;
      }
    } else {
      row.fill(0);
      for (let l = 0; l < k; l += 1) {
        const factor = a[i * strideA + l * stepA];
        const base = l * n;
        for (let j = 0; j < n; j += 1) row[j] += factor * b[base + j];
      }
      out.set(row, i * n);
    }
  }
  return out;
}

/** `multiply` as a `Gemm`. */
export const referenceGemm: Gemm = (a, b, m, n, k, options) => Promise.resolve(multiply(a, b, m, n, k, options));

/** Multiplications below which a product is done here instead of in the runtime (a call there costs about 50 µs). */
const SMALL = 60_000;

/** Does tiny products in JavaScript and hands the others on. */
export function withSmallProducts(gemm: Gemm): Gemm {
  return (a, b, m, n, k, options) =>
    m * n * k < SMALL ? Promise.resolve(multiply(a, b, m, n, k, options)) : gemm(a, b, m, n, k, options);
}
