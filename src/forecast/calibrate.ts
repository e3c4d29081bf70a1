/**
 * Margins of different readers become comparable as probabilities (EVALUATION.md 9): one map per outer fold, Platt's or
 * isotonic, fitted on the inner out-of-fold margins of its training side. Scores of different folds are compared only after this.
 */
import { calibrate, fitIsotonic, fitPlatt } from '../math/calibration.ts';
import type { Calibration, Undefined } from '../types.ts';
import type { FoldScores } from './search.ts';
import type { Sides } from './sides.ts';

/**
 * Platt's map of the margins that exist (NaN = no score). A slope below 0 would turn the reader's order round inside its
 * fold and let the calibrator be a second reader; it is set to 0, which says "these margins carry nothing".
 */
export function fitRisingPlatt(margins: ArrayLike<number>, labels: ArrayLike<number>): Calibration | Undefined {
  const kept = Array.from(margins, (_, i) => i).filter((i) => !Number.isNaN(margins[i]));
  const outcome = kept.map((i) => labels[i]);
  const fitted = fitPlatt(
    kept.map((i) => margins[i]),
    outcome,
  );
  if ('undefinedBecause' in fitted || fitted.kind !== 'platt' || fitted.slope >= 0) return fitted;
  const positives = outcome.reduce((a, b) => a + b, 0);
  return { kind: 'platt', slope: 0, intercept: Math.log(positives / (outcome.length - positives)) };
}

export interface CalibratedScores {
  /** As `FoldScores`, in probabilities; NaN where there is no score or no calibration. */
  readonly outer: Float64Array;
  readonly inner: readonly Float64Array[];
  /** Per training side. */
  readonly calibrations: readonly (Calibration | Undefined)[];
}

/** Isotonic regression of the margins that exist: a rising step function, so ties appear that the margins did not have. */
function fitSteps(margins: ArrayLike<number>, labels: ArrayLike<number>): Calibration | Undefined {
  const kept = Array.from(margins, (_, i) => i).filter((i) => !Number.isNaN(margins[i]));
  return fitIsotonic(
    kept.map((i) => margins[i]),
    kept.map((i) => labels[i]),
  );
}

export function calibrateFolds(
  scores: FoldScores,
  sides: Sides,
  kind: 'platt' | 'isotonic' = 'platt',
): CalibratedScores {
  const outer = new Float64Array(scores.outer.length).fill(Number.NaN);
  const calibrations = sides.training.map((side, o) => {
    const calibration = (kind === 'isotonic' ? fitSteps : fitRisingPlatt)(scores.inner[o], side.labels);
    if ('undefinedBecause' in calibration) return calibration;
    for (const row of sides.outer[o].rows) {
      if (!Number.isNaN(scores.outer[row])) outer[row] = calibrate(calibration, scores.outer[row]);
    }
    return calibration;
  });
  const inner = scores.inner.map((margins, o) => {
    const calibration = calibrations[o];
    return margins.map((margin) =>
      Number.isNaN(margin) || 'undefinedBecause' in calibration ? Number.NaN : calibrate(calibration, margin),
    );
  });
  return { outer, inner, calibrations };
}
