/**
 * Families of linear readers: functions of one type in a table, so that a new one is one function and one line. All
 * standardise on the training rows of each problem, and answer score(x) = weights · ((x − mean)/scale) + bias, higher for
 * label 1.
 */
import { matrixBlocks, type RowBlocks } from '../math/row-blocks.ts';
import { classBalance } from '../math/sparse.ts';
import { columnMoments } from '../math/standardize.ts';
import type { FeatureMatrix, Gemm, Gemm64, Undefined } from '../types.ts';
import { type FittedReader, fitLinearBatch } from './fit-linear.ts';
import { groupByRows, type TrainingRows } from './row-sets.ts';

export interface EstimatorProblem extends TrainingRows {
  /** Inverse regularisation strength; null for an estimator's own default. */
  readonly C: number | null;
}

export interface EstimatorTools {
  readonly gemm: Gemm;
  readonly gemm64?: Gemm64;
  /** Relative objective gap of iterative fits. */
  readonly tolerance?: number;
}

export type Estimator = (
  x: FeatureMatrix | RowBlocks,
  problems: readonly EstimatorProblem[],
  tools: EstimatorTools,
) => Promise<readonly (FittedReader | Undefined)[]>;

/** L2-regularised logistic regression; C null = 1, scikit-learn's default. */
const logistic: Estimator = (x, problems, tools) =>
  fitLinearBatch({ x, problems: problems.map((problem) => ({ ...problem, C: problem.C ?? 1 })), ...tools });

/** Least squares on labels ±1 with penalty ‖w‖²/(2C); C null = 1. */
const ridge: Estimator = (x, problems, tools) =>
  fitLinearBatch({
    x,
    problems: problems.map((problem) => ({ ...problem, C: problem.C ?? 1, loss: 'squared' as const })),
    ...tools,
  });

/**
 * Mass-mean direction: mean of the positives minus mean of the negatives, the bias half way between them
 * (Marks & Tegmark 2023, arXiv 2310.06824, without their whitening). Margins have no unit.
 */
const meanDifference: Estimator = async (features, problems) => {
  const x = 'data' in features ? matrixBlocks(features) : features;
  const out: (FittedReader | Undefined)[] = [];
  for (const set of groupByRows(x.rows, problems)) {
    const fitted = set.problems.filter((index) => {
      const balance = classBalance(problems[index].labels, problems[index].weights);
      if ('undefinedBecause' in balance) out[index] = balance;
      return !('undefinedBecause' in balance);
    });
    if (fitted.length === 0) continue;
    const positives = fitted.map((index) => {
      const labels = set.labelsOf(problems[index]);
      return set.weights.map((weight, row) => (labels[row] === 0 ? 0 : weight));
    });
    const [moments, ...high] = await columnMoments(x, [set.weights, ...positives]);
    fitted.forEach((index, at) => {
      const total = positives[at].reduce((sum, weight) => sum + weight, 0);
      // Around the mean of all rows: p·high + (1 − p)·low = 0.
      const share = total / set.total;
      const weights = new Float64Array(x.columns);
      let bias = 0;
      for (let k = 0; k < weights.length; k += 1) {
        const above = (high[at].mean[k] - moments.mean[k]) / moments.scale[k];
        const below = (-above * share) / (1 - share);
        weights[k] = above - below;
        bias -= (weights[k] * (above + below)) / 2;
      }
      out[index] = { ...moments, weights, bias, convergence: null };
    });
  }
  return out;
};

/** Shrinkage of the whitened mean difference where no C is given: share of the identity relative to the rows' weight. */
const WHITENING = 0.1;

/**
 * Mass-mean direction after whitening by the pooled within-class covariance of the standardised features, shrunk by
 * 1/(C·n) of the identity (C null: {@link WHITENING}): linear discriminant analysis with equal priors, so the margin is
 * its log-odds. It is ridge regression on ±1 up to a factor (Sherman–Morrison), which is how it is computed.
 */
const whitenedMeanDifference: Estimator = async (x, problems, tools) => {
  const totals = problems.map(({ labels, weights }) => classBalance(labels, weights));
  const strengths = problems.map(({ C }, at) => {
    const total = totals[at];
    if ('undefinedBecause' in total) return 1;
    return C ?? 1 / (WHITENING * (total.positive + total.negative));
  });
  const fits = await fitLinearBatch({
    x,
    problems: problems.map((problem, at) => ({ ...problem, C: strengths[at], loss: 'squared' as const })),
    ...tools,
    // The direction is wanted to six digits, and its error is the root of the objective's.
    tolerance: 1e-12,
  });
  const differences = await meanDifference(x, problems, tools);
  return fits.map((fit, at) => {
    const total = totals[at];
    const difference = differences[at];
    if ('undefinedBecause' in fit) return fit;
    if ('undefinedBecause' in total) return total;
    if ('undefinedBecause' in difference) return difference;
    const n = total.positive + total.negative;
    const k = (total.positive * total.negative) / n;
    // w = 2k·A⁻¹Δ / (1 + k·ΔᵀA⁻¹Δ) with A the scatter within classes plus penalty, Δ the difference of means.
    let margin = 0;
    let middle = 0;
    const share = total.positive / n;
    for (let j = 0; j < fit.weights.length; j += 1) {
      const delta = difference.weights[j];
      margin += fit.weights[j] * delta;
      middle += fit.weights[j] * delta * (0.5 - share);
    }
    const factor = (n * (2 / (2 - margin))) / (2 * k);
    return { ...fit, weights: fit.weights.map((w) => w * factor), bias: -middle * factor };
  });
};

export const estimators: Readonly<Record<string, Estimator>> = {
  logistic,
  ridge,
  mean_difference: meanDifference,
  mean_difference_whitened: whitenedMeanDifference,
};
