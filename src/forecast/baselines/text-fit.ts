/**
 * Logistic regression on TF-IDF rows, by the shorter of two ways to the same optimum: in the space of terms (sparse), or,
 * when the texts are long and few, in the space of the training rows. There the Gram matrix K = X·Xᵀ = L·Lᵀ is factored
 * and the rows of L stand for the texts: an L2-regularised linear reader lies in their span, and the map keeps its norm.
 */
import { type CsrMatrix, csrMargins, fitSparseLogistic, type SparseLogistic } from '../../math/sparse.ts';
import type { Undefined } from '../../types.ts';
import type { PrepareFold } from '../search.ts';
import { type TermCounts, tfidf } from './tfidf.ts';

/** Added to the diagonal of K, whose entries are ≤ 1: near-duplicate texts make it singular. */
const JITTER = 1e-9;

/**
 * @param rowOf text of each landmark row in `counted`; −1 = none
 * @param Cs one candidate each
 */
export function prepareText(counted: TermCounts, rowOf: Int32Array, Cs: readonly number[], minDf: number): PrepareFold {
  return (training, tested) => {
    const x = tfidf(
      counted,
      training.map((row) => rowOf[row]),
      minDf,
    );
    const nonZeros = training.reduce((sum, row) => sum + x.indptr[rowOf[row] + 1] - x.indptr[rowOf[row]], 0);
    if (nonZeros < (training.length * training.length) / 2) return fitInTermSpace(x, rowOf, Cs);
    return fitInRowSpace(x, rowOf, Cs, training, tested);
  };
}

export function fitInTermSpace(x: CsrMatrix, rowOf: Int32Array, Cs: readonly number[]): ReturnType<PrepareFold> {
  return (learn, labels, ask) => {
    let last: SparseLogistic | undefined;
    return Cs.map((C) => {
      const rows = learn.map((row) => rowOf[row]);
      const fitted = fitSparseLogistic({ x, rows, labels, weights: null, C, ...from(last) });
      if ('undefinedBecause' in fitted) return fitted;
      last = fitted;
      return csrMargins(
        x,
        fitted.weights,
        fitted.bias,
        ask.map((row) => rowOf[row]),
      );
    });
  };
}

/** Each fit begins where the one before it, of a neighbouring C, ended. */
const from = (last: SparseLogistic | undefined) => (last === undefined ? {} : { start: last });

/** `training` and `tested` are all rows that will be learnt from or asked for. */
export function fitInRowSpace(
  x: CsrMatrix,
  rowOf: Int32Array,
  Cs: readonly number[],
  training: Int32Array,
  tested: Int32Array,
): ReturnType<PrepareFold> {
  const place = new Map<number, number>();
  for (const row of [...training, ...tested]) if (!place.has(row)) place.set(row, place.size);
  const n = training.length;
  const kernel = gram(
    x,
    Int32Array.from(place.keys(), (row) => rowOf[row]),
    n,
  );
  return (learn, labels, ask) => {
    const at = learn.map((row) => place.get(row)!);
    const lower = cholesky(at.length, (i, j) => kernel[at[i] * n + at[j]] + (i === j ? JITTER : 0));
    const rows = triangleRows(lower, at.length);
    let last: SparseLogistic | undefined;
    return Cs.map((C): Float64Array | Undefined => {
      const fitted = fitSparseLogistic({ x: rows, labels, weights: null, C, ...from(last) });
      if ('undefinedBecause' in fitted) return fitted;
      last = fitted;
      const dual = solveTransposed(lower, at.length, fitted.weights);
      return Float64Array.from(ask, (row) => {
        const base = place.get(row)! * n;
        return dual.reduce((sum, value, j) => sum + value * kernel[base + at[j]], fitted.bias);
      });
    });
  };
}

/** Inner products of all `rows` with the first `n` of them, [rows, n]. */
function gram(x: CsrMatrix, rows: Int32Array, n: number): Float64Array {
  const out = new Float64Array(rows.length * n);
  const dense = new Float64Array(x.columns);
  for (let j = 0; j < n; j += 1) {
    const [from, to] = [x.indptr[rows[j]], x.indptr[rows[j] + 1]];
    for (let k = from; k < to; k += 1) dense[x.indices[k]] = x.values[k];
    for (let i = j; i < rows.length; i += 1) {
      let sum = 0;
      for (let k = x.indptr[rows[i]]; k < x.indptr[rows[i] + 1]; k += 1) sum += x.values[k] * dense[x.indices[k]];
      out[i * n + j] = sum;
      if (i < n) out[j * n + i] = sum;
    }
    for (let k = from; k < to; k += 1) dense[x.indices[k]] = 0;
  }
  return out;
}

/** Lower triangle of A = L·Lᵀ, [n, n] row-major. A pivot lost to rounding is set to the jitter's root. */
function cholesky(n: number, a: (i: number, j: number) => number): Float64Array {
  const l = new Float64Array(n * n);
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j <= i; j += 1) {
      let sum = a(i, j);
      for (let k = 0; k < j; k += 1) sum -= l[i * n + k] * l[j * n + k];
      l[i * n + j] = i === j ? Math.sqrt(Math.max(sum, JITTER)) : sum / l[j * n + j];
    }
  }
  return l;
}

function triangleRows(lower: Float64Array, n: number): CsrMatrix {
  const indptr = Int32Array.from({ length: n + 1 }, (_, i) => (i * (i + 1)) / 2);
  const indices = new Int32Array(indptr[n]);
  const values = new Float64Array(indptr[n]);
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j <= i; j += 1) {
      indices[indptr[i] + j] = j;
      values[indptr[i] + j] = lower[i * n + j];
    }
  }
  return { rows: n, columns: n, indptr, indices, values };
}

/** Lᵀ·α = w. */
function solveTransposed(lower: Float64Array, n: number, w: Float64Array): Float64Array {
  const alpha = Float64Array.from(w);
  for (let i = n - 1; i >= 0; i -= 1) {
    let sum = alpha[i];
    for (let k = i + 1; k < n; k += 1) sum -= lower[k * n + i] * alpha[k];
    alpha[i] = sum / lower[i * n + i];
  }
  return alpha;
}
