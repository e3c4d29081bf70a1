import type { FitProblem, LinearReader } from '../forecast/types.ts';
import { sigmoid, softplus } from '../math/logistic-loss.ts';
import { minimizeNewton, type SmoothFunction } from '../math/newton.ts';
import type { FeatureMatrix, Undefined } from '../types.ts';

/**
 * Linear readers fitted in float64, one problem at a time, on standardised features. Objectives are scikit-learn's:
 * logistic: Σ wᵢ · loss(yᵢ, zᵢ) + ‖w‖² / (2C), intercept unpenalised; every fit reports whether it converged.
 */

interface Standardised {
  /** [rows, columns] */
  readonly z: Float64Array;
  readonly mean: Float64Array;
  readonly scale: Float64Array;
  readonly rows: number;
  readonly columns: number;
}

/** Mean and standard deviation of the training rows only; a constant column keeps scale 1 and so weight 0. */
export function standardise(x: FeatureMatrix, rows: Int32Array): Standardised {
  const { columns, data } = x;
  const mean = new Float64Array(columns);
  const scale = new Float64Array(columns);
  for (const row of rows)
    for (let j = 0, at = row * columns; j < columns; j += 1, at += 1) mean[j] = mean[j] + data[at];
  for (let j = 0; j < columns; j += 1) mean[j] = mean[j] / rows.length;
  for (const row of rows) {
    for (let j = 0, at = row * columns; j < columns; j += 1, at += 1) {
      const centred = data[at] - mean[j];
      scale[j] = scale[j] + centred * centred;
    }
  }
  for (let j = 0; j < columns; j += 1) {
    const deviation = Math.sqrt(scale[j] / rows.length);
    // Rounding of float32 states leaves dust in columns that are really constant.
    scale[j] = deviation > 1e-7 * Math.max(1, Math.abs(mean[j])) ? deviation : 1;
  }
  const z = new Float64Array(rows.length * columns);
  for (const [index, row] of rows.entries()) {
    for (let j = 0; j < columns; j += 1) z[index * columns + j] = (data[row * columns + j] - mean[j]) / scale[j];
  }
  return { z, mean, scale, rows: rows.length, columns };
}

/** out[i] = zᵢ · w + bias; w has columns + 1 entries, the last is the intercept. */
function margins({ z, rows, columns }: Standardised, w: Float64Array, out: Float64Array): void {
  for (let i = 0, at = 0; i < rows; i += 1) {
    let sum = w[columns];
    for (let j = 0; j < columns; j += 1, at += 1) sum += z[at] * w[j];
    out[i] = sum;
  }
}

/** out = Zᵀ v, and the sum of v for the intercept. */
function transposed({ z, rows, columns }: Standardised, v: Float64Array, out: Float64Array): void {
  out.fill(0);
  for (let i = 0, at = 0; i < rows; i += 1) {
    const value = v[i];
    for (let j = 0; j < columns; j += 1, at += 1) out[j] = out[j] + z[at] * value;
    out[columns] = out[columns] + value;
  }
}

function logisticObjective(
  s: Standardised,
  labels: Uint8Array,
  weights: Float64Array | null,
  C: number,
): SmoothFunction {
  const { rows, columns } = s;
  const margin = new Float64Array(rows);
  const residual = new Float64Array(rows);
  const curvature = new Float64Array(rows);
  const product = new Float64Array(rows);
  return {
    size: columns + 1,
    evaluate(w, gradient) {
      margins(s, w, margin);
      let value = 0;
      for (let i = 0; i < rows; i += 1) {
        const weight = weights === null ? 1 : weights[i];
        const m = margin[i];
        const p = sigmoid(m);
        value += weight * (labels[i] === 1 ? softplus(-m) : softplus(m));
        residual[i] = weight * (p - labels[i]);
        curvature[i] = weight * p * (1 - p);
      }
      transposed(s, residual, gradient);
      for (let j = 0; j < columns; j += 1) {
        value += (w[j] * w[j]) / (2 * C);
        gradient[j] = gradient[j] + w[j] / C;
      }
      return value;
    },
    hessianTimes(v, out) {
      margins(s, v, product);
      for (let i = 0; i < rows; i += 1) product[i] = product[i] * curvature[i];
      transposed(s, product, out);
      for (let j = 0; j < columns; j += 1) out[j] = out[j] + v[j] / C;
    },
    diagonal(out) {
      out.fill(0);
      for (let i = 0, at = 0; i < rows; i += 1) {
        for (let j = 0; j < columns; j += 1, at += 1) out[j] = out[j] + curvature[i] * s.z[at] * s.z[at];
        out[columns] = out[columns] + curvature[i];
      }
      for (let j = 0; j < columns; j += 1) out[j] = out[j] + 1 / C;
      // Saturated probabilities leave no curvature in the intercept.
      out[columns] = Math.max(out[columns], 1e-12);
    },
  };
}

type Estimator = (
  s: Standardised,
  problem: FitProblem,
  start: Float64Array | null,
  tolerance: number,
) => { readonly w: Float64Array } | Undefined;

const logistic: Estimator = (s, { labels, weights, C }, start, tolerance) => {
  const objective = logisticObjective(s, labels, weights, C ?? 1);
  const { w, convergence } = minimizeNewton(objective, start ?? new Float64Array(s.columns + 1), { tolerance });
  if (!convergence.converged)
    return {
      undefinedBecause: `the logistic fit did not converge in ${convergence.iterations} steps (relative gap ${convergence.relativeGap.toExponential(1)})`,
    };
  return { w };
};

/** Direction from the mean of the negatives to that of the positives; the bias puts zero half way. */
const meanDifference: Estimator = (s, { labels, weights }) => {
  const { columns, rows, z } = s;
  const sums = [new Float64Array(columns), new Float64Array(columns)] as const;
  const totals = [0, 0];
  for (let i = 0; i < rows; i += 1) {
    const side = labels[i] === 1 ? 1 : 0;
    const weight = weights === null ? 1 : weights[i];
    totals[side] = totals[side] + weight;
    for (let j = 0; j < columns; j += 1) sums[side][j] = sums[side][j] + weight * z[i * columns + j];
  }
  const w = new Float64Array(columns + 1);
  let bias = 0;
  for (let j = 0; j < columns; j += 1) {
    const [low, high] = [sums[0][j] / totals[0], sums[1][j] / totals[1]];
    w[j] = high - low;
    bias -= (w[j] * (high + low)) / 2;
  }
  w[columns] = bias;
  return { w };
};

/** Least squares on ±1 labels with an L2 penalty of 1 / C: the direction of LDA with a shrunken covariance. */
const ridge: Estimator = (s, { labels, weights, C }, start) => {
  const { rows, columns } = s;
  const product = new Float64Array(rows);
  const residual = new Float64Array(rows);
  const objective: SmoothFunction = {
    size: columns + 1,
    evaluate(w, gradient) {
      margins(s, w, product);
      let value = 0;
      for (let i = 0; i < rows; i += 1) {
        const weight = weights === null ? 1 : weights[i];
        const error = product[i] - (labels[i] === 1 ? 1 : -1);
        value += (weight * error * error) / 2;
        residual[i] = weight * error;
      }
      transposed(s, residual, gradient);
      for (let j = 0; j < columns; j += 1) {
        value += (w[j] * w[j]) / (2 * (C ?? 1));
        gradient[j] = gradient[j] + w[j] / (C ?? 1);
      }
      return value;
    },
    hessianTimes(v, out) {
      margins(s, v, product);
      if (weights !== null) for (let i = 0; i < rows; i += 1) product[i] = product[i] * weights[i];
      transposed(s, product, out);
      for (let j = 0; j < columns; j += 1) out[j] = out[j] + v[j] / (C ?? 1);
    },
    diagonal(out) {
      out.fill(rows + 1 / (C ?? 1));
    },
  };
  return { w: minimizeNewton(objective, start ?? new Float64Array(columns + 1)).w };
};

const ESTIMATORS: Readonly<Record<string, Estimator>> = { logistic, mean_difference: meanDifference, ridge };

/** Names that configurations may use. */
export const estimatorNames = Object.keys(ESTIMATORS);

/**
 * Fits every problem of one matrix. Problems that share the `rows` object share its standardisation, and ascending C
 * starts from the last answer.
 * @param tolerance estimated relative gap of the objective at which a fit counts as converged
 */
export function createFitReaders(
  tolerance: number,
): (x: FeatureMatrix, problems: readonly FitProblem[]) => Promise<readonly (LinearReader | Undefined)[]> {
  return async (x, problems) => {
    const out: (LinearReader | Undefined)[] = Array.from(problems, () => ({ undefinedBecause: 'not fitted' }));
    const bySet = new Map<Int32Array, number[]>();
    for (const [index, problem] of problems.entries())
      bySet.set(problem.rows, [...(bySet.get(problem.rows) ?? []), index]);
    for (const [rows, indices] of bySet) {
      const s = standardise(x, rows);
      const starts = new Map<string, Float64Array>();
      indices.sort((a, b) => (problems[a].C ?? 0) - (problems[b].C ?? 0));
      for (const index of indices) {
        const problem = problems[index];
        const positives = problem.labels.reduce((sum, label) => sum + label, 0);
        if (positives === 0 || positives === problem.labels.length) {
          out[index] = { undefinedBecause: 'the training rows hold one class' };
          continue;
        }
        const estimator = ESTIMATORS[problem.estimator];
        if (!estimator) throw new Error(`no estimator ${problem.estimator}`);
        const key = `${problem.estimator} ${problem.labels.join('')}`;
        const fitted = estimator(s, problem, starts.get(key) ?? null, tolerance);
        if ('undefinedBecause' in fitted) {
          out[index] = fitted;
          continue;
        }
        starts.set(key, fitted.w);
        out[index] = {
          mean: s.mean,
          scale: s.scale,
          weights: fitted.w.slice(0, s.columns),
          bias: fitted.w[s.columns],
        };
      }
      // Between matrices of rows, signals and timers get their turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return out;
  };
}
