/**
 * Margins of different readers become comparable as probabilities (EVALUATION.md 9): a Platt map per outer fold, fitted
 * on the inner out-of-fold margins of its training side. Scores of different folds are compared only after this.
 */
import { sigmoid } from '../math/logistic-loss.ts';
import { csrFromRows, fitSparseLogistic } from '../math/sparse.ts';
import type { Calibration, Undefined } from '../types.ts';
import type { FoldScores } from './search.ts';
import type { Sides } from './sides.ts';

/** Keeps the slope finite when the margins separate the classes; on standardised margins it is no restraint else. */
const C = 100;

/**
 * A slope below 0 would turn the reader's order round inside its fold and let the calibrator be a second reader; it is
 * set to 0, which says "these margins carry nothing".
 */
export function fitPlatt(margins: ArrayLike<number>, labels: ArrayLike<number>): Calibration | Undefined {
  const kept = Array.from(margins, (_, i) => i).filter((i) => !Number.isNaN(margins[i]));
  const n = kept.length;
  const mean = kept.reduce((sum, i) => sum + margins[i], 0) / Math.max(1, n);
  const variance = kept.reduce((sum, i) => sum + (margins[i] - mean) ** 2, 0) / Math.max(1, n);
  const scale = Math.sqrt(variance);
  // A constant margin has no scale: only the base rate is left.
  const flat = !(scale > 1e-12 * Math.max(1, Math.abs(mean)));
  const x = csrFromRows(
    kept.map((i) => (flat ? [] : [[0, (margins[i] - mean) / scale] as const])),
    1,
  );
  const outcome = kept.map((i) => labels[i]);
  const fitted = fitSparseLogistic({ x, labels: outcome, weights: null, C });
  if ('undefinedBecause' in fitted) return fitted;
  if (flat || fitted.weights[0] < 0) {
    const positives = outcome.reduce((a, b) => a + b, 0);
    return { kind: 'platt', slope: 0, intercept: Math.log(positives / (n - positives)) };
  }
  const slope = fitted.weights[0] / scale;
  return { kind: 'platt', slope, intercept: fitted.bias - slope * mean };
}

export function calibrated(calibration: Calibration, margin: number): number {
  switch (calibration.kind) {
    case 'platt':
      return sigmoid(calibration.slope * margin + calibration.intercept);
    case 'isotonic': {
      const { thresholds, values } = calibration;
      let at = 0;
      while (at + 1 < thresholds.length && thresholds[at + 1] <= margin) at += 1;
      return values[at];
    }
    case 'none':
      return sigmoid(margin);
    default:
      throw new Error('unknown calibration');
  }
}

export interface CalibratedScores {
  /** As `FoldScores`, in probabilities; NaN where there is no score or no calibration. */
  readonly outer: Float64Array;
  readonly inner: readonly Float64Array[];
  /** Per training side. */
  readonly calibrations: readonly (Calibration | Undefined)[];
}

export function calibrateFolds(scores: FoldScores, sides: Sides): CalibratedScores {
  const outer = new Float64Array(scores.outer.length).fill(Number.NaN);
  const calibrations = sides.training.map((side, o) => {
    const calibration = fitPlatt(scores.inner[o], side.labels);
    if ('undefinedBecause' in calibration) return calibration;
    for (const row of sides.outer[o].rows) {
      if (!Number.isNaN(scores.outer[row])) outer[row] = calibrated(calibration, scores.outer[row]);
    }
    return calibration;
  });
  const inner = scores.inner.map((margins, o) => {
    const calibration = calibrations[o];
    return margins.map((margin) =>
      Number.isNaN(margin) || 'undefinedBecause' in calibration ? Number.NaN : calibrated(calibration, margin),
    );
  });
  return { outer, inner, calibrations };
}
