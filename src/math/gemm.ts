/**
 * Matrix products in plain JavaScript: the reference that tests hold other kernels to, and what tiny products use, where
 * handing the work to a runtime costs more than the work.
 */
import type { Gemm, Gemm64 } from '../types.ts';

export interface Transposes {
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
}

/** [m,k]·[k,n] → `out` [m,n] with double accumulation. Same conventions as `Gemm`, but synchronous. Returns `out`. */
export function multiplyInto<A extends Float32Array | Float64Array>(
  out: A,
  a: A,
  b: A,
  [m, n, k]: readonly [number, number, number],
  { transposeA = false, transposeB = false }: Transposes = {},
): A {
  if (a.length !== m * k) throw new RangeError(`expected a of ${m} × ${k} = ${m * k} numbers, got ${a.length}`);
  if (b.length !== k * n) throw new RangeError(`expected b of ${k} × ${n} = ${k * n} numbers, got ${b.length}`);
  const row = new Float64Array(n);
  const [stepA, strideA] = transposeA ? [m, 1] : [1, k];
  for (let i = 0; i < m; i += 1) {
    row.fill(0);
    if (transposeB) {
      for (let j = 0; j < n; j += 1) {
        let sum = 0;
        for (let l = 0; l < k; l += 1) sum += a[i * strideA + l * stepA] * b[j * k + l];
        row[j] = sum;
      }
    } else {
      for (let l = 0; l < k; l += 1) {
        const factor = a[i * strideA + l * stepA];
        const base = l * n;
        for (let j = 0; j < n; j += 1) row[j] += factor * b[base + j];
      }
    }
    out.set(row, i * n);
  }
  return out;
}

export const referenceGemm: Gemm = (a, b, m, n, k, transposes) =>
  Promise.resolve(multiplyInto(new Float32Array(m * n), a, b, [m, n, k], transposes));

export const referenceGemm64: Gemm64 = (a, b, m, n, k, transposes) =>
  Promise.resolve(multiplyInto(new Float64Array(m * n), a, b, [m, n, k], transposes));

/** Multiplications below which a product is done here instead of in the runtime (a call there costs about 50 µs). */
const SMALL = 30_000;

/** Does tiny products in JavaScript and hands the others on. */
export function withSmallProducts(gemm: Gemm): Gemm {
  return (a, b, m, n, k, transposes) => (m * n * k < SMALL ? referenceGemm : gemm)(a, b, m, n, k, transposes);
}
