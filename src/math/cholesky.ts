/**
 * Cholesky factors. Large ones are built from matrix products handed in (recursive halving), with the inverse of the
 * triangle at the same time, so that applying it is products too. All matrices row-major.
 */
import type { Gemm } from '../types.ts';

/** Order up to which the recursion is done in double precision by loops. */
const BASE = 64;

/**
 * W = L⁻¹ with L·Lᵀ = A (float32, lower triangle, zeros above), so that A⁻¹·r = Wᵀ·(W·r).
 * @param a [n × n] symmetric, both triangles; not changed
 * @returns null where A is not positive definite in this precision
 */
export async function inverseCholesky(a: Float32Array, n: number, gemm: Gemm): Promise<Float32Array | null> {
  if (n <= BASE) return inverseCholeskySmall(a, n);
  const top = Math.ceil(n / 2);
  const rest = n - top;
  const w11 = await inverseCholesky(block(a, n, 0, 0, top, top), top, gemm);
  if (w11 === null) return null;
  const a21 = block(a, n, top, 0, rest, top);
  const l21 = await gemm(a21, w11, rest, top, top, { transposeB: true });
  const schur = block(a, n, top, top, rest, rest);
  const product = await gemm(l21, l21, rest, rest, top, { transposeB: true });
  for (let i = 0; i < schur.length; i += 1) schur[i] -= product[i];
  const w22 = await inverseCholesky(schur, rest, gemm);
  if (w22 === null) return null;
  const w21 = await gemm(w22, await gemm(l21, w11, rest, top, top), rest, top, rest);
  const w = new Float32Array(n * n);
  for (let i = 0; i < top; i += 1) w.set(w11.subarray(i * top, (i + 1) * top), i * n);
  for (let i = 0; i < rest; i += 1) {
    const at = (top + i) * n;
    for (let j = 0; j < top; j += 1) w[at + j] = -w21[i * top + j];
    w.set(w22.subarray(i * rest, (i + 1) * rest), at + top);
  }
  return w;
}

function block(a: Float32Array, n: number, row: number, column: number, rows: number, columns: number): Float32Array {
  const out = new Float32Array(rows * columns);
  for (let i = 0; i < rows; i += 1) {
    const from = (row + i) * n + column;
    out.set(a.subarray(from, from + columns), i * columns);
  }
  return out;
}

function inverseCholeskySmall(a: Float32Array, n: number): Float32Array | null {
  const l = Float64Array.from(a);
  if (!choleskyInPlace(l, n)) return null;
  const w = new Float32Array(n * n);
  const column = new Float64Array(n);
  for (let j = 0; j < n; j += 1) {
    for (let i = j; i < n; i += 1) {
      let sum = i === j ? 1 : 0;
      for (let k = j; k < i; k += 1) sum -= l[i * n + k] * column[k];
      column[i] = sum / l[i * n + i];
      w[i * n + j] = column[i];
    }
  }
  return w;
}

/** Overwrites the lower triangle of A by L; the upper is left alone. @returns false where a pivot is not positive */
export function choleskyInPlace(a: Float64Array, n: number): boolean {
  for (let j = 0; j < n; j += 1) {
    for (let i = j; i < n; i += 1) {
      let sum = a[i * n + j];
      for (let k = 0; k < j; k += 1) sum -= a[i * n + k] * a[j * n + k];
      if (i === j) {
        if (!(sum > 0)) return false;
        a[j * n + j] = Math.sqrt(sum);
      } else a[i * n + j] = sum / a[j * n + j];
    }
  }
  return true;
}

/** Solves L·Lᵀ·x = b in place, L from `choleskyInPlace`. */
export function choleskySolve(l: Float64Array, n: number, b: Float64Array): void {
  for (let i = 0; i < n; i += 1) {
    let sum = b[i];
    for (let k = 0; k < i; k += 1) sum -= l[i * n + k] * b[k];
    b[i] = sum / l[i * n + i];
  }
  for (let i = n - 1; i >= 0; i -= 1) {
    let sum = b[i];
    for (let k = i + 1; k < n; k += 1) sum -= l[k * n + i] * b[k];
    b[i] = sum / l[i * n + i];
  }
}

/**
 * Cholesky with complete pivoting of a positive semidefinite matrix, stopped when what is left is rounding: the rows
 * `pivots` span all rows, and K[i, j] = Σ_r factor[i, r]·factor[j, r] up to `tolerance` · the largest diagonal.
 * @param k [n × n], overwritten
 */
export function pivotedCholesky(
  k: Float64Array,
  n: number,
  tolerance = 1e-10,
): { readonly rank: number; readonly pivots: Int32Array; /** [n × rank] */ readonly factor: Float64Array } {
  const remaining = Float64Array.from({ length: n }, (_, i) => k[i * n + i]);
  const stop = tolerance * remaining.reduce((a, b) => Math.max(a, b), 0);
  const pivots: number[] = [];
  const columns: Float64Array[] = [];
  for (;;) {
    let pivot = -1;
    let largest = stop;
    for (let i = 0; i < n; i += 1) {
      if (remaining[i] > largest) {
        largest = remaining[i];
        pivot = i;
      }
    }
    if (pivot < 0 || pivots.length === n) break;
    const column = k.slice(pivot * n, (pivot + 1) * n);
    for (const earlier of columns) {
      const factor = earlier[pivot];
      for (let i = 0; i < n; i += 1) column[i] -= factor * earlier[i];
    }
    const root = Math.sqrt(largest);
    for (let i = 0; i < n; i += 1) column[i] /= root;
    for (const done of pivots) column[done] = 0;
    column[pivot] = root;
    for (let i = 0; i < n; i += 1) remaining[i] -= column[i] * column[i];
    remaining[pivot] = 0;
    pivots.push(pivot);
    columns.push(column);
  }
  const rank = pivots.length;
  const factor = new Float64Array(n * rank);
  columns.forEach((column, r) => {
    for (let i = 0; i < n; i += 1) factor[i * rank + r] = column[i];
  });
  return { rank, pivots: Int32Array.from(pivots), factor };
}
