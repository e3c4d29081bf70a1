/**
 * The rows' side of one penalised linear fit: margins of the current point and of the step under way. A line search
 * moves along margins only, so trying a step length costs one pass over the rows and no product with the matrix.
 */
import { logisticPass } from './logistic-loss.ts';

export interface Margins {
  readonly loss: RowLoss;
  /** [rows] 0 / 1. */
  readonly labels: Uint8Array;
  /** [rows] ≥ 0; rows with 0 are skipped. */
  readonly weights: Float64Array;
  /** [rows] margin of the current point. */
  readonly z: Float64Array;
  /** [rows] margin of the step found so far. */
  readonly step: Float64Array;
  /** [rows] margin of the inner solver's search direction. */
  readonly direction: Float32Array;
  /** [rows] weight · d loss / dz. */
  readonly residual: Float32Array;
  /** [rows] weight · d² loss / dz². */
  readonly curvature: Float32Array;
}

/** A convex loss of one row's margin and label. */
export interface RowLoss {
  /** Σ weight · loss at z + t·step. */
  valueAt(margins: Margins, t: number): number;
  /** Fills residual and curvature from z. */
  refresh(margins: Margins): PointSums;
  /** The same in float64: fills `residual`, answers Σ weight · loss. All arrays aligned; `scratch` is overwritten. */
  exact(
    z: Float64Array,
    labels: Uint8Array,
    weights: Float64Array,
    residual: Float64Array,
    scratch: Float64Array,
  ): number;
}

/** Sums over rows at a point. */
export interface PointSums {
  readonly residual: number;
  readonly curvature: number;
}

export function openMargins(loss: RowLoss, labels: Uint8Array, weights: Float64Array, start: number): Margins {
  const rows = weights.length;
  return {
    loss,
    labels,
    weights,
    z: new Float64Array(rows).fill(start),
    step: new Float64Array(rows),
    direction: new Float32Array(rows),
    residual: new Float32Array(rows),
    curvature: new Float32Array(rows),
  };
}

/** Moves z by t·step, forgets the step, and fills residual and curvature of the new point. */
export function moveBy(margins: Margins, t: number): PointSums {
  const { z, step } = margins;
  for (let i = 0; i < z.length; i += 1) z[i] += t * step[i];
  step.fill(0);
  return margins.loss.refresh(margins);
}

/** The loss of logistic-loss.ts. */
export const logisticRows: RowLoss = {
  // One exponential a row. Logarithms of soft rows are taken of products (each factor is in [1, 2]), those of saturated
  // rows by their series, so the sum keeps its last digits at either end.
  valueAt({ labels, weights, z, step }, t) {
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
  },
  refresh({ labels, weights, z, residual, curvature }) {
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
  },
  exact: logisticPass,
};

/** ½ · (z − target)² with target 1 for positives, −1 for negatives: ridge regression, and so LDA's direction. */
export const squaredRows: RowLoss = {
  valueAt({ labels, weights, z, step }, t) {
    let sum = 0;
    for (let i = 0; i < z.length; i += 1) sum += weights[i] * (z[i] + t * step[i] - (labels[i] === 0 ? -1 : 1)) ** 2;
    return sum / 2;
  },
  refresh({ labels, weights, z, residual, curvature }) {
    let residualSum = 0;
    let curvatureSum = 0;
    for (let i = 0; i < z.length; i += 1) {
      residual[i] = weights[i] * (z[i] - (labels[i] === 0 ? -1 : 1));
      curvature[i] = weights[i];
      residualSum += residual[i];
      curvatureSum += weights[i];
    }
    return { residual: residualSum, curvature: curvatureSum };
  },
  exact(z, labels, weights, residual) {
    let sum = 0;
    for (let i = 0; i < z.length; i += 1) {
      const error = z[i] - (labels[i] === 0 ? -1 : 1);
      residual[i] = weights[i] * error;
      sum += weights[i] * error * error;
    }
    return sum / 2;
  },
};
