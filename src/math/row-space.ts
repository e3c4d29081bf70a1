/**
 * The dual (kernel) form for fewer rows than columns: every L2-penalised linear fit lies in the span of its rows, so it
 * is solved in coordinates of an orthonormal basis of that span, found from the rows × rows Gram matrix.
 */
import { pivotedCholesky } from './cholesky.ts';

export interface RowSpace {
  readonly rank: number;
  /** [rows × rank] coordinates: the same inner products as the rows themselves. */
  readonly coordinates: Float32Array;
  /** Weights in coordinates → weights in columns; norms and margins are kept. [rank] → [columns] */
  readonly expand: (weights: Float64Array) => Float64Array;
}

/** Squared share of a row that may lie outside the basis: below the float32 rounding of the features themselves. */
const TOLERANCE = 1e-13;

/** @param x [rows × columns] */
export function rowSpace(x: Float64Array, rows: number, columns: number): RowSpace {
  const { rank, pivots, factor } = pivotedCholesky(gramOfRows(x, rows, columns), rows, TOLERANCE);
  return {
    rank,
    coordinates: Float32Array.from(factor),
    expand(weights) {
      // Basis = X_Sᵀ·L⁻ᵀ with L the pivot rows of the factor (lower triangular): solve Lᵀ·u = weights, then X_Sᵀ·u.
      const u = Float64Array.from(weights);
      for (let r = rank - 1; r >= 0; r -= 1) {
        for (let later = r + 1; later < rank; later += 1) u[r] -= factor[pivots[later] * rank + r] * u[later];
        u[r] /= factor[pivots[r] * rank + r];
      }
      const out = new Float64Array(columns);
      for (let r = 0; r < rank; r += 1) {
        const from = pivots[r] * columns;
        for (let k = 0; k < columns; k += 1) out[k] += u[r] * x[from + k];
      }
      return out;
    },
  };
}

/** X·Xᵀ in float64; two rows by two at a time. */
export function gramOfRows(x: Float64Array, rows: number, columns: number): Float64Array {
  const gram = new Float64Array(rows * rows);
  for (let i = 0; i < rows; i += 2) {
    const second = Math.min(i + 1, rows - 1);
    for (let j = 0; j <= i; j += 2) {
      const other = Math.min(j + 1, rows - 1);
      let a = 0;
      let b = 0;
      let c = 0;
      let e = 0;
      for (
        let k = 0, p = i * columns, q = second * columns, r = j * columns, t = other * columns;
        k < columns;
        k += 1
      ) {
        a += x[p + k] * x[r + k];
        b += x[p + k] * x[t + k];
        c += x[q + k] * x[r + k];
        e += x[q + k] * x[t + k];
      }
      gram[i * rows + j] = gram[j * rows + i] = a;
      gram[i * rows + other] = gram[other * rows + i] = b;
      gram[second * rows + j] = gram[j * rows + second] = c;
      gram[second * rows + other] = gram[other * rows + second] = e;
    }
  }
  return gram;
}
