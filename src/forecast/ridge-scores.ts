/**
 * Ridge regression under thousands of outcomes at once: it is linear in the labels, so everything that depends on the
 * states alone is factored once. With T, S the states of training and held-out rows, standardised by T ([n, d], [m, d]),
 * held-out scores are  y·T·(TᵀT + λI)⁻¹·Sᵀ = y·(TTᵀ + λI)⁻¹·T·Sᵀ;  the smaller of the two systems is solved.
 * y is centred, which stands for the intercept. λ large: the difference of class means.
 */
import type { FeatureMatrix, Gemm } from '../types.ts';

export interface RidgeInput {
  readonly x: FeatureMatrix;
  readonly training: Int32Array;
  readonly held: Int32Array;
  /** [outcomes, training], each row centred. */
  readonly outcomes: Float32Array;
  /** λ = ridge · d · number of training rows / 100, so that one value means the same for every width and size. */
  readonly ridges: readonly number[];
  readonly gemm?: Gemm;
}

/** Per ridge: scores [outcomes, held out], row-major. */
export async function ridgeScores(input: RidgeInput): Promise<readonly Float32Array[]> {
  const { x, training, held, outcomes, ridges, gemm } = input;
  const [n, m, d] = [training.length, held.length, x.columns];
  const { t, s } = standardized(x, training, held);
  const count = outcomes.length / n;
  const scores: Float32Array[] = [];
  const factor = (gram: Float32Array, size: number, ridge: number): Float64Array => {
    const lower = Float64Array.from(gram);
    for (let i = 0; i < size; i += 1) lower[i * size + i] += (ridge * d * n) / 100;
    choleskyInPlace(lower, size);
    return lower;
  };
  if (d < n) {
    const columns = transposed(t, n, d);
    const gram = await product(columns, columns, d, d, n, gemm);
    const moments = await product(outcomes, columns, count, d, n, gemm);
    for (const ridge of ridges) {
      const weights = solveRows(factor(gram, d, ridge), d, moments, count);
      scores.push(await product(weights, s, count, m, d, gemm));
    }
    return scores;
  }
  const gram = await product(t, t, n, n, d, gemm);
  const cross = await product(s, t, m, n, d, gemm);
  for (const ridge of ridges) {
    const smoother = solveRows(factor(gram, n, ridge), n, cross, m);
    scores.push(await product(outcomes, smoother, count, m, n, gemm));
  }
  return scores;
}

/** A·Bᵀ: a [m, k], b [n, k] → [m, n]. */
async function product(
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
    const ai = i * k;
    let j = 0;
    // Four rows of b at a time: each number of a is read once for all of them.
    for (; j + 3 < n; j += 4) {
      const [b0, b1, b2, b3] = [j * k, (j + 1) * k, (j + 2) * k, (j + 3) * k];
      let s0 = 0;
      let s1 = 0;
      let s2 = 0;
      let s3 = 0;
      for (let l = 0; l < k; l += 1) {
        const value = a[ai + l];
        s0 += value * b[b0 + l];
        s1 += value * b[b1 + l];
        s2 += value * b[b2 + l];
        s3 += value * b[b3 + l];
      }
      const at = i * n + j;
      out[at] = s0;
      out[at + 1] = s1;
      out[at + 2] = s2;
      out[at + 3] = s3;
    }
    for (; j < n; j += 1) {
      let sum = 0;
      for (let l = 0; l < k; l += 1) sum += a[ai + l] * b[j * k + l];
      out[i * n + j] = sum;
    }
  }
  return out;
}

function transposed(x: Float32Array, rows: number, columns: number): Float32Array {
  const out = new Float32Array(x.length);
  for (let i = 0; i < rows; i += 1) for (let j = 0; j < columns; j += 1) out[j * rows + i] = x[i * columns + j];
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
function solveRows(lower: Float64Array, n: number, rows: Float32Array, m: number): Float32Array {
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
  return Float32Array.from(out);
}
