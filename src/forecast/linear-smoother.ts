/**
 * Ridge regression as a linear map of the labels. Held-out scores are H·(y − mean y) with
 * H = Xs·Xtᵀ·(Xt·Xtᵀ + λI)⁻¹, and H does not depend on y: thousands of permuted outcomes cost one product.
 * Xt, Xs: [training, d] and [held out, d], standardised by the training rows. λ large: the difference of class means.
 */
import type { FeatureMatrix, Gemm } from '../types.ts';

export interface SmootherInput {
  readonly x: FeatureMatrix;
  readonly training: Int32Array;
  readonly held: Int32Array;
  /** λ = ridge · d · number of training rows / 100, so that one value means the same for every width and size. */
  readonly ridges: readonly number[];
  readonly gemm?: Gemm;
}

/** Per ridge: H, [held out, training] row-major. */
export async function ridgeSmoothers({
  x,
  training,
  held,
  ridges,
  gemm,
}: SmootherInput): Promise<readonly Float64Array[]> {
  const { t, s } = standardized(x, training, held);
  const [n, m, d] = [training.length, held.length, x.columns];
  const gram = await product(t, t, n, n, d, gemm);
  const cross = await product(s, t, m, n, d, gemm);
  return ridges.map((ridge) => {
    const lambda = (ridge * d * n) / 100;
    const lower = Float64Array.from(gram);
    for (let i = 0; i < n; i += 1) lower[i * n + i] += lambda;
    choleskyInPlace(lower, n);
    return solveRows(lower, n, cross, m);
  });
}

/** A·Bᵀ: a [m, k], b [n, k] → [m, n]. */
export async function product(
  a: Float32Array,
  b: Float32Array,
  m: number,
  n: number,
  k: number,
  gemm?: Gemm,
): Promise<Float32Array> {
  if (gemm) return await gemm(a, b, m, n, k, { transposeB: true });
  const out = new Float32Array(m * n);
  for (let i = 0; i < m; i += 1) {
    for (let j = 0; j < n; j += 1) {
      let even = 0;
      let odd = 0;
      const [ai, bj] = [i * k, j * k];
      for (let l = 0; l + 1 < k; l += 2) {
        even += a[ai + l] * b[bj + l];
        odd += a[ai + l + 1] * b[bj + l + 1];
      }
      if (k % 2 === 1) even += a[ai + k - 1] * b[bj + k - 1];
      out[i * n + j] = even + odd;
    }
  }
  return out;
}

function standardized(
  x: FeatureMatrix,
  training: Int32Array,
  held: Int32Array,
): { readonly t: Float32Array; readonly s: Float32Array } {
  const { columns, data } = x;
  const mean = new Float64Array(columns);
  const scale = new Float64Array(columns);
  for (const row of training) {
    for (let j = 0; j < columns; j += 1) mean[j] += data[row * columns + j] / training.length;
  }
  for (const row of training) {
    for (let j = 0; j < columns; j += 1) scale[j] += (data[row * columns + j] - mean[j]) ** 2 / training.length;
  }
  for (let j = 0; j < columns; j += 1) scale[j] = Math.sqrt(scale[j]) || 1;
  const take = (rows: Int32Array): Float32Array => {
    const out = new Float32Array(rows.length * columns);
    rows.forEach((row, i) => {
      for (let j = 0; j < columns; j += 1) out[i * columns + j] = (data[row * columns + j] - mean[j]) / scale[j];
    });
    return out;
  };
  return { t: take(training), s: take(held) };
}

/** A = L·Lᵀ, A [n, n] symmetric positive definite; the lower triangle is replaced by L. */
function choleskyInPlace(a: Float64Array, n: number): void {
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j <= i; j += 1) {
      let sum = a[i * n + j];
      for (let k = 0; k < j; k += 1) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i === j ? Math.sqrt(sum) : sum / a[j * n + j];
    }
  }
}

/** Row by row: out·(L·Lᵀ) = rows. */
function solveRows(lower: Float64Array, n: number, rows: Float32Array, m: number): Float64Array {
  const out = Float64Array.from(rows);
  for (let r = 0; r < m; r += 1) {
    const base = r * n;
    for (let i = 0; i < n; i += 1) {
      let sum = out[base + i];
      for (let k = 0; k < i; k += 1) sum -= lower[i * n + k] * out[base + k];
      out[base + i] = sum / lower[i * n + i];
    }
    for (let i = n - 1; i >= 0; i -= 1) {
      const value = out[base + i] / lower[i * n + i];
      out[base + i] = value;
      for (let k = 0; k < i; k += 1) out[base + k] -= lower[i * n + k] * value;
    }
  }
  return out;
}
