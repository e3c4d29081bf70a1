import { DataError } from '../errors.ts';
import type { Probe } from '../types.ts';

/** The direction of a probe in the model's own coordinates (its weights are those of standardised states), length 1. [width] */
export function unitDirection({ weights, scale, width }: Probe, tap: number): Float32Array {
  const raw = Float64Array.from({ length: width }, (_, i) => weights[tap * width + i] / scale[tap * width + i]);
  const length = Math.hypot(...raw);
  if (length === 0) throw new DataError('expected a probe with a direction, got weights that are all zero at its tap');
  return Float32Array.from(raw, (value) => value / length);
}

/** Root mean square length of the states the probe was trained on, at one of its taps, from its mean and scale. */
export function meanLength({ mean, scale, width }: Probe, tap: number, folder: string): number {
  let square = 0;
  let standardised = false;
  for (let i = tap * width; i < (tap + 1) * width; i += 1) {
    square += mean[i] ** 2 + scale[i] ** 2;
    if (scale[i] !== 1 || mean[i] !== 0) standardised = true;
  }
  if (standardised) return Math.sqrt(square);
  throw new DataError(
    `${folder}: expected the mean and scale of the states (a probe of standardised states), got none. Steer with a logistic probe`,
  );
}
