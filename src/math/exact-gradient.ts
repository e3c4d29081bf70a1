/**
 * Margins and gradients in float64 by plain loops over float32 rows: what a fit is judged by, since float32 products
 * carry rounding noise of about 1e-7 of their largest term into the gradient. Four problems at a time share each row.
 */
import { logisticPass } from './logistic-loss.ts';
import type { RowBlocks } from './row-blocks.ts';

export interface ExactPoint {
  /** [columns] */
  readonly v: Float64Array;
  readonly c: number;
  readonly labels: ArrayLike<number>;
  /** [rows]; rows with 0 are skipped. */
  readonly weights: Float64Array;
}

export interface ExactGradient {
  /** [columns] Σ residual_i · x_i: the loss part, without the penalty. */
  readonly gradient: Float64Array;
  readonly gradientC: number;
  /** Σ weight · loss. */
  readonly loss: number;
  /** [rows] margins; 0 where the weight is 0. */
  readonly z: Float64Array;
}

const LANES = 4;

export async function exactGradients(x: RowBlocks, points: readonly ExactPoint[]): Promise<readonly ExactGradient[]> {
  const out = points.map(() => ({
    gradient: new Float64Array(x.columns),
    gradientC: 0,
    loss: 0,
    z: new Float64Array(x.rows),
  }));
  if (points.length === 0) return out;
  const zeros = new Float64Array(x.columns);
  const scratch = new Float64Array(x.columns);
  const one = { margin: new Float64Array(1), residual: new Float64Array(1), curvature: new Float64Array(1) };
  const residuals = new Float64Array(LANES);
  for await (const { start, count, data } of x.blocks()) {
    for (let from = 0; from < points.length; from += LANES) {
      const lanes = Math.min(LANES, points.length - from);
      const v = [0, 1, 2, 3].map((l) => (l < lanes ? points[from + l].v : zeros));
      const g = [0, 1, 2, 3].map((l) => (l < lanes ? out[from + l].gradient : scratch));
      const z = new Float64Array(LANES);
      for (let i = 0; i < count; i += 1) {
        dots(data, i * x.columns, x.columns, v[0], v[1], v[2], v[3], z);
        residuals.fill(0);
        for (let l = 0; l < lanes; l += 1) {
          const point = points[from + l];
          const s = point.weights[start + i];
          if (s === 0) continue;
          const result = out[from + l];
          one.margin[0] = z[l] + point.c;
          result.loss += s * logisticPass(one.margin, [point.labels[start + i]], null, one.residual, one.curvature);
          result.z[start + i] = one.margin[0];
          residuals[l] = s * one.residual[0];
          result.gradientC += residuals[l];
        }
        addRow(data, i * x.columns, x.columns, residuals, g[0], g[1], g[2], g[3]);
      }
    }
  }
  return out;
}

function dots(
  x: Float32Array,
  at: number,
  d: number,
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  e: Float64Array,
  out: Float64Array,
): void {
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  for (let k = 0; k < d; k += 1) {
    const value = x[at + k];
    s0 += value * a[k];
    s1 += value * b[k];
    s2 += value * c[k];
    s3 += value * e[k];
  }
  out[0] = s0;
  out[1] = s1;
  out[2] = s2;
  out[3] = s3;
}

function addRow(
  x: Float32Array,
  at: number,
  d: number,
  r: Float64Array,
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  e: Float64Array,
): void {
  const [r0, r1, r2, r3] = r;
  for (let k = 0; k < d; k += 1) {
    const value = x[at + k];
    a[k] += r0 * value;
    b[k] += r1 * value;
    c[k] += r2 * value;
    e[k] += r3 * value;
  }
}
