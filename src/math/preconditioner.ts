/**
 * Approximate inverse Hessians for `solveLinearBatch`: (h·XᵀX + strength·diag(shape))⁻¹, one factor for all problems
 * whose ratio strength / h is alike.
 */
import type { Gemm } from '../types.ts';
import { inverseCholesky } from './cholesky.ts';

export interface PreconditionerItem {
  /** h: mean over all rows of the matrix of the problem's curvature weights. */
  readonly curvature: number;
  /** 1/C. */
  readonly strength: number;
}

/**
 * @param residuals [items × columns] @param items what each row belongs to
 * @returns [items × columns]: the approximate inverse Hessian of each item times its row
 */
export type Preconditioner = (residuals: Float32Array, items: readonly PreconditionerItem[]) => Promise<Float32Array>;

/** Ratios within this factor share one factorisation. */
const GRID = 4;

/**
 * Dense factors of the Gram matrix, made when first needed, at most `cacheBytes` of them kept.
 * @param gram [d × d] XᵀX of the shared matrix
 * @param shape [d] relative penalty of each column
 */
export function gramPreconditioner(
  gram: Float32Array,
  shape: Float64Array,
  gemm: Gemm,
  cacheBytes = 160e6,
): Preconditioner {
  const d = shape.length;
  let largest = 0;
  for (let k = 0; k < d; k += 1) largest = Math.max(largest, gram[k * d + k]);
  const factors = new Map<number, Float32Array>();
  const limit = Math.max(1, Math.floor(cacheBytes / (4 * d * d)));

  const factorOf = async (grid: number): Promise<Float32Array> => {
    const known = factors.get(grid);
    if (known !== undefined) return known;
    const ratio = GRID ** grid;
    // float32 cannot hold much less than 1e-6 of the largest direction; a higher floor only costs inner steps.
    for (let floor = 0; ; floor = Math.max(largest * 1e-6, 1e-30, floor * 16)) {
      const a = gram.slice();
      for (let k = 0; k < d; k += 1) a[k * d + k] += Math.max(floor, ratio * shape[k]);
      const w = await inverseCholesky(a, d, gemm);
      if (w === null && floor < largest) continue;
      if (w === null) throw new TypeError('the Gram matrix is not positive semidefinite: does a row hold NaN?');
      if (factors.size >= limit) factors.delete(factors.keys().next().value ?? grid);
      factors.set(grid, w);
      return w;
    }
  };

  return async (residuals, items) => {
    const out = new Float32Array(residuals.length);
    const groups = new Map<number, number[]>();
    items.forEach(({ curvature, strength }, at) => {
      const grid = Math.round(Math.log(strength / curvature) / Math.log(GRID));
      const members = groups.get(grid);
      if (members === undefined) groups.set(grid, [at]);
      else members.push(at);
    });
    for (const [grid, members] of groups) {
      const w = await factorOf(grid);
      const part = new Float32Array(members.length * d);
      members.forEach((at, i) => part.set(residuals.subarray(at * d, (at + 1) * d), i * d));
      const half = await gemm(part, w, members.length, d, d, { transposeB: true });
      const solved = await gemm(half, w, members.length, d, d);
      members.forEach((at, i) => {
        const scale = 1 / items[at].curvature;
        for (let k = 0; k < d; k += 1) out[at * d + k] = solved[i * d + k] * scale;
      });
    }
    return out;
  };
}

/** The diagonal of the Hessian only: for matrices too wide to factor. @param squares, shape [d] diagonal of XᵀX */
export function diagonalPreconditioner(squares: Float64Array, shape: Float64Array): Preconditioner {
  const d = shape.length;
  return (residuals, items) => {
    const out = new Float32Array(residuals.length);
    items.forEach(({ curvature, strength }, at) => {
      for (let k = 0; k < d; k += 1) {
        out[at * d + k] = residuals[at * d + k] / (curvature * squares[k] + strength * shape[k]);
      }
    });
    return Promise.resolve(out);
  };
}
