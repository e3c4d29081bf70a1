/** Compressed sparse rows, and the L2-regularised logistic regression on them that text baselines use. */
import type { Undefined } from '../types.ts';
import { logisticPass } from './logistic-loss.ts';
import type { Convergence, NewtonOptions } from './newton.ts';
import { minimizeNewton } from './newton.ts';

export interface CsrMatrix {
  readonly rows: number;
  readonly columns: number;
  /** [rows + 1]: row i holds entries indptr[i] … indptr[i + 1] − 1. */
  readonly indptr: Int32Array;
  /** Column of each entry; any order inside a row, no column twice. */
  readonly indices: Int32Array;
  readonly values: Float64Array;
}

/** Rows from lists of (column, value) entries. @throws TypeError where a column is outside the matrix */
export function csrFromRows(rows: readonly (readonly (readonly [number, number])[])[], columns: number): CsrMatrix {
  const indptr = new Int32Array(rows.length + 1);
  for (let i = 0; i < rows.length; i += 1) indptr[i + 1] = indptr[i] + rows[i].length;
  const indices = new Int32Array(indptr[rows.length]);
  const values = new Float64Array(indptr[rows.length]);
  let at = 0;
  for (let i = 0; i < rows.length; i += 1) {
    for (const [column, value] of rows[i]) {
      if (!(column >= 0 && column < columns)) throw new TypeError(`row ${i}: column ${column} of ${columns}`);
      indices[at] = column;
      values[at] = value;
      at += 1;
    }
  }
  return { rows: rows.length, columns, indptr, indices, values };
}

/** X·w + bias. @param rows subset to compute, absent = all. @returns aligned with `rows` */
export function csrMargins(x: CsrMatrix, w: ArrayLike<number>, bias: number, rows?: Int32Array): Float64Array {
  const count = rows === undefined ? x.rows : rows.length;
  const out = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const row = rows === undefined ? i : rows[i];
    let sum = bias;
    for (let at = x.indptr[row]; at < x.indptr[row + 1]; at += 1) sum += x.values[at] * w[x.indices[at]];
    out[i] = sum;
  }
  return out;
}

export interface SparseLogisticProblem {
  readonly x: CsrMatrix;
  /** Rows to train on; absent = all. */
  readonly rows?: Int32Array;
  /** 0 / 1, aligned with the training rows. */
  readonly labels: ArrayLike<number>;
  /** Aligned with the training rows, ≥ 0; null = all 1. */
  readonly weights: ArrayLike<number> | null;
  /** scikit-learn's C: objective = Σ weight·loss + ‖w‖²/(2C). */
  readonly C: number;
  /** Where to begin, e.g. the fit of a neighbouring C; absent = no weights, the classes' log-odds. */
  readonly start?: Pick<SparseLogistic, 'weights' | 'bias'>;
}

export interface SparseLogistic {
  /** [columns]; 0 for a column without an entry in the training rows. */
  readonly weights: Float64Array;
  readonly bias: number;
  readonly convergence: Convergence;
}

/**
 * The optimum of scikit-learn's LogisticRegression (intercept unpenalised), in float64.
 * @returns undefined where the training rows hold one class only: the intercept then has no finite optimum
 * @throws TypeError where C is not a positive finite number or lengths differ
 */
export function fitSparseLogistic(
  { x, rows, labels, weights, C, start }: SparseLogisticProblem,
  options: NewtonOptions = {},
): SparseLogistic | Undefined {
  const count = rows === undefined ? x.rows : rows.length;
  if (labels.length !== count) throw new TypeError(`${labels.length} labels for ${count} rows`);
  if (weights !== null && weights.length !== count) throw new TypeError(`${weights.length} weights for ${count} rows`);
  const balance = classBalance(labels, weights);
  if ('undefinedBecause' in balance) return balance;
  if (!(C > 0 && Number.isFinite(C))) throw new TypeError(`C must be a positive number, got ${C}`);
  const d = x.columns;
  const residual = new Float64Array(count);
  const curvature = new Float64Array(count);
  const rowAt = (i: number): number => (rows === undefined ? i : rows[i]);

  const scatter = (perRow: Float64Array, out: Float64Array): void => {
    for (let i = 0; i < count; i += 1) {
      const row = rowAt(i);
      const factor = perRow[i];
      if (factor === 0) continue;
      for (let at = x.indptr[row]; at < x.indptr[row + 1]; at += 1) out[x.indices[at]] += factor * x.values[at];
      out[d] += factor;
    }
  };
  const { w, convergence } = minimizeNewton(
    {
      size: d + 1,
      evaluate(w, gradient) {
        const loss = logisticPass(csrMargins(x, w, w[d], rows), labels, weights, residual, curvature);
        let norm = 0;
        for (let j = 0; j < d; j += 1) {
          norm += w[j] * w[j];
          gradient[j] = w[j] / C;
        }
        gradient[d] = 0;
        scatter(residual, gradient);
        return loss + norm / (2 * C);
      },
      hessianTimes(v, out) {
        for (let j = 0; j < d; j += 1) out[j] = v[j] / C;
        out[d] = 0;
        const product = csrMargins(x, v, v[d], rows);
        for (let i = 0; i < count; i += 1) product[i] *= curvature[i];
        scatter(product, out);
      },
      diagonal(out) {
        out.fill(1 / C, 0, d);
        // A saturated fit has almost no curvature in the intercept; the floor keeps the preconditioner finite.
        out[d] = 1e-300;
        for (let i = 0; i < count; i += 1) {
          const row = rowAt(i);
          for (let at = x.indptr[row]; at < x.indptr[row + 1]; at += 1) {
            out[x.indices[at]] += curvature[i] * x.values[at] * x.values[at];
          }
          out[d] += curvature[i];
        }
      },
    },
    startAt(d, balance.logOdds, start),
    options,
  );
  return { weights: w.slice(0, d), bias: w[d], convergence };
}

function startAt(d: number, logOdds: number, from: SparseLogisticProblem['start']): Float64Array {
  const start = new Float64Array(d + 1);
  if (from !== undefined) start.set(from.weights);
  start[d] = from?.bias ?? logOdds;
  return start;
}

/** Weighted class sizes and their log-odds, or why a classifier cannot be fitted. */
export function classBalance(
  labels: ArrayLike<number>,
  weights: ArrayLike<number> | null,
): { readonly positive: number; readonly negative: number; readonly logOdds: number } | Undefined {
  let positive = 0;
  let negative = 0;
  for (let i = 0; i < labels.length; i += 1) {
    const s = weights === null ? 1 : weights[i];
    if (!(s >= 0 && Number.isFinite(s))) throw new TypeError(`weight ${i} must be a finite number ≥ 0, got ${s}`);
    if (labels[i] === 0) negative += s;
    else positive += s;
  }
  if (positive === 0 || negative === 0) {
    const which = positive === 0 && negative === 0 ? 'no rows' : positive === 0 ? 'negatives only' : 'positives only';
    return { undefinedBecause: `the training rows hold ${which}` };
  }
  return { positive, negative, logOdds: Math.log(positive / negative) };
}
