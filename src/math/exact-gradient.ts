/**
 * Margins and gradients in float64 over float32 rows: what a fit is judged by, since float32 products carry rounding of
 * about 1e-7 of their largest term into the gradient.
 */
import type { Gemm64 } from '../types.ts';
import type { RowLoss } from './row-loss.ts';
import type { RowBlocks } from './row-blocks.ts';

export interface ExactPoint {
  readonly loss: RowLoss;
  /** [columns] */
  readonly v: Float64Array;
  readonly c: number;
  readonly labels: Uint8Array;
  /** [rows]; rows with 0 do not take part. */
  readonly weights: Float64Array;
}

export interface ExactGradient {
  /** [columns] Σ residual_i · x_i: the loss part, without the penalty. */
  readonly gradient: Float64Array;
  readonly gradientC: number;
  /** Σ weight · loss. */
  readonly loss: number;
  /** [rows] margins. */
  readonly z: Float64Array;
}

export async function exactGradients(
  x: RowBlocks,
  points: readonly ExactPoint[],
  gemm64: Gemm64,
): Promise<readonly ExactGradient[]> {
  const d = x.columns;
  const m = points.length;
  const out = points.map(() => ({
    gradient: new Float64Array(d),
    gradientC: 0,
    loss: 0,
    z: new Float64Array(x.rows),
  }));
  if (m === 0) return out;
  const v = new Float64Array(m * d);
  points.forEach((point, at) => v.set(point.v, at * d));
  let scratch = new Float64Array(0);
  for await (const { start, count, data } of x.blocks()) {
    const rows = Float64Array.from(data);
    const products = await gemm64(v, rows, m, count, d, { transposeB: true });
    if (scratch.length < count) scratch = new Float64Array(count);
    const residuals = new Float64Array(m * count);
    points.forEach((point, at) => {
      const end = start + count;
      const z = out[at].z.subarray(start, end);
      for (let i = 0; i < count; i += 1) z[i] = products[at * count + i] + point.c;
      const residual = residuals.subarray(at * count, (at + 1) * count);
      const weights = point.weights.subarray(start, end);
      out[at].loss += point.loss.exact(
        z,
        point.labels.subarray(start, end),
        weights,
        residual,
        scratch.subarray(0, count),
      );
      for (const r of residual) out[at].gradientC += r;
    });
    const part = await gemm64(residuals, rows, m, d, count);
    out.forEach(({ gradient }, at) => {
      for (let k = 0, from = at * d; k < d; k += 1) gradient[k] += part[from + k];
    });
  }
  return out;
}
