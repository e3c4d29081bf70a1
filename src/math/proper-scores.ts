/**
 * Scores of probabilities. Brier and log loss are proper: best in expectation exactly when the probabilities are true.
 * All arrays are aligned [rows]; probabilities in [0, 1], labels 1 or 0. Means over rows; lower is better.
 */
import type { Undefined } from '../types.ts';
import { midranks } from './ranking.ts';

const NO_ROWS: Undefined = { undefinedBecause: 'no rows' };

/** Mean squared error of the probability: 0 perfect, ¼ for always ½. */
export function brierScore(probabilities: ArrayLike<number>, labels: ArrayLike<number>): number | Undefined {
  return mean(rowBrier(probabilities, labels));
}

/** [rows] (p − y)²: for the bootstrap. */
export function rowBrier(probabilities: ArrayLike<number>, labels: ArrayLike<number>): Float64Array {
  return perRow(probabilities, labels, (p, y) => (p - y) ** 2);
}

/**
 * Mean −log of the probability given to what happened, in nats. A certain mistake (p = 0 or 1 on the wrong side)
 * has no finite loss; nothing is clipped, so the score is then undefined with the row.
 */
export function logLoss(probabilities: ArrayLike<number>, labels: ArrayLike<number>): number | Undefined {
  const rows = rowLogLoss(probabilities, labels);
  const infinite = rows.findIndex((value) => !Number.isFinite(value));
  if (infinite >= 0) {
    return {
      undefinedBecause: `row ${infinite} has probability ${probabilities[infinite]} and label ${labels[infinite]}`,
    };
  }
  return mean(rows);
}

/** [rows] −log p(what happened); Infinity for a certain mistake. */
export function rowLogLoss(probabilities: ArrayLike<number>, labels: ArrayLike<number>): Float64Array {
  return perRow(probabilities, labels, (p, y) => -Math.log(y === 0 ? 1 - p : p));
}

export interface ReliabilityBin {
  readonly n: number;
  readonly meanProbability: number;
  readonly positiveRate: number;
}

/**
 * Equal-mass bins over ascending probability. Rows of equal probability share a bin (that of their mid-rank), so that
 * the bins do not depend on row order; ties can leave bins out, which are then not listed.
 */
export function reliabilityBins(
  probabilities: ArrayLike<number>,
  labels: ArrayLike<number>,
  bins = 10,
): readonly ReliabilityBin[] {
  const ranks = midranks(probabilities);
  const n = new Float64Array(bins);
  const probability = new Float64Array(bins);
  const positives = new Float64Array(bins);
  for (let row = 0; row < ranks.length; row += 1) {
    const bin = Math.min(bins - 1, Math.floor(((ranks[row] - 0.5) * bins) / ranks.length));
    n[bin] += 1;
    probability[bin] += probabilities[row];
    positives[bin] += labels[row];
  }
  return Array.from(n, (count, bin) => ({
    n: count,
    meanProbability: probability[bin] / count,
    positiveRate: positives[bin] / count,
  })).filter((bin) => bin.n > 0);
}

/**
 * Expected calibration error: mean over rows of |mean probability − positive rate| of their equal-mass bin. Biased up
 * in small samples (a calibrated forecaster does not score 0), so it is compared, not tested against 0.
 */
export function expectedCalibrationError(
  probabilities: ArrayLike<number>,
  labels: ArrayLike<number>,
  bins = 10,
): number | Undefined {
  if (probabilities.length === 0) return NO_ROWS;
  let sum = 0;
  for (const bin of reliabilityBins(probabilities, labels, bins)) {
    sum += bin.n * Math.abs(bin.meanProbability - bin.positiveRate);
  }
  return sum / probabilities.length;
}

function perRow(
  probabilities: ArrayLike<number>,
  labels: ArrayLike<number>,
  score: (p: number, y: number) => number,
): Float64Array {
  if (labels.length !== probabilities.length) {
    throw new TypeError(`${labels.length} labels for ${probabilities.length} probabilities`);
  }
  return Float64Array.from(probabilities, (p, row) => {
    if (!(p >= 0 && p <= 1)) throw new TypeError(`row ${row}: ${p} is not a probability`);
    return score(p, labels[row]);
  });
}

function mean(values: Float64Array): number | Undefined {
  if (values.length === 0) return NO_ROWS;
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
