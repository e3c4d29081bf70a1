/**
 * The rows' side of one logistic regression: margins of the current point and of the step under way. A line search moves
 * along margins only, so trying a step length costs one pass over the rows and no product with the matrix.
 */

export interface Margins {
  readonly labels: ArrayLike<number>;
  /** [rows] ≥ 0; rows with 0 are skipped. */
  readonly weights: Float64Array;
  /** [rows] margin of the current point. */
  readonly z: Float64Array;
  /** [rows] margin of the step found so far. */
  readonly step: Float64Array;
  /** [rows] margin of the inner solver's search direction. */
  readonly direction: Float32Array;
  /** [rows] weight · (sigmoid(z) − label). */
  readonly residual: Float32Array;
  /** [rows] weight · sigmoid(z) · (1 − sigmoid(z)). */
  readonly curvature: Float32Array;
}

export function openMargins(labels: ArrayLike<number>, weights: Float64Array, start: number): Margins {
  const rows = weights.length;
  return {
    labels,
    weights,
    z: new Float64Array(rows).fill(start),
    step: new Float64Array(rows),
    direction: new Float32Array(rows),
    residual: new Float32Array(rows),
    curvature: new Float32Array(rows),
  };
}

/**
 * Σ weight · loss at z + t·step. One exponential a row; logarithms of soft rows are taken of products (each factor is
 * in [1, 2]), those of saturated rows by their series, so the sum is exact to its last digits at either end.
 */
export function lossAt({ labels, weights, z, step }: Margins, t: number): number {
  let sum = 0;
  let product = 1;
  for (let i = 0; i < z.length; i += 1) {
    const s = weights[i];
    if (s === 0) continue;
    const margin = z[i] + t * step[i];
    const wrong = labels[i] === 0 ? margin : -margin;
    const e = Math.exp(-Math.abs(wrong));
    if (wrong > 0) sum += s * wrong;
    if (e < 1e-3) sum += s * e * (1 - e * (0.5 - e * (1 / 3 - e / 4)));
    else if (s === 1) {
      product *= 1 + e;
      if (product > 1e280) {
        sum += Math.log(product);
        product = 1;
      }
    } else sum += s * Math.log1p(e);
  }
  return sum + Math.log(product);
}

/** Sums over rows at a new point. */
export interface PointSums {
  readonly residual: number;
  readonly curvature: number;
}

/** Moves z by t·step, forgets the step, and fills residual and curvature of the new point. */
export function moveBy(margins: Margins, t: number): PointSums {
  const { z, step } = margins;
  for (let i = 0; i < z.length; i += 1) z[i] += t * step[i];
  step.fill(0);
  return refreshPoint(margins);
}

/** Fills residual and curvature from z. */
export function refreshPoint(margins: Margins): PointSums {
  const { labels, weights, z, residual, curvature } = margins;
  let residualSum = 0;
  let curvatureSum = 0;
  for (let i = 0; i < z.length; i += 1) {
    const s = weights[i];
    if (s === 0) continue;
    const negative = labels[i] === 0;
    const wrong = negative ? z[i] : -z[i];
    const e = Math.exp(-Math.abs(wrong));
    const q = 1 / (1 + e);
    const r = wrong >= 0 ? s * q : s * e * q;
    residual[i] = negative ? r : -r;
    curvature[i] = s * e * q * q;
    residualSum += residual[i];
    curvatureSum += curvature[i];
  }
  return { residual: residualSum, curvature: curvatureSum };
}
