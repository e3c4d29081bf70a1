import { calibrate } from '../math/calibration.ts';
import type { FeatureMatrix, Probe } from '../types.ts';

/** Raw margins weights · ((x − mean)/scale) + bias in float64. @param rows absent = all. @returns aligned with `rows` */
export function margins(
  reader: Pick<Probe, 'mean' | 'scale' | 'weights' | 'bias'>,
  x: FeatureMatrix,
  rows?: Int32Array,
): Float64Array {
  const { mean, scale, weights, bias } = reader;
  if (weights.length !== x.columns) {
    throw new TypeError(`the reader has ${weights.length} weights, the features ${x.columns} columns`);
  }
  // Folded once per call: subtracting means row by row would lose nothing but time.
  const direction = weights.map((w, k) => w / scale[k]);
  let offset = bias;
  for (let k = 0; k < direction.length; k += 1) offset -= direction[k] * mean[k];
  const count = rows === undefined ? x.rows : rows.length;
  const out = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const from = (rows === undefined ? i : rows[i]) * x.columns;
    let sum = offset;
    for (let k = 0; k < direction.length; k += 1) sum += direction[k] * x.data[from + k];
    out[i] = sum;
  }
  return out;
}

/** Calibrated probabilities of rows; for a probe without calibration the logistic of its margin. */
export function probabilities(probe: Probe, x: FeatureMatrix, rows?: Int32Array): Float64Array {
  return margins(probe, x, rows).map((margin) => calibrate(probe.calibration, margin));
}
