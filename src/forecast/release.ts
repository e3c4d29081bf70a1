/** Refits the chosen reader of each landmark and position on every labelled row (EVALUATION.md 7). */
import { splitTap } from '../lib/joined-taps.ts';
import type { Figure, Probe } from '../types.ts';
import type { LandmarkResult } from './evaluate-landmark.ts';
import { landmarkName } from './landmarks.ts';
import { headlineReader, keysOf } from './readers.ts';
import type { ForecastInput, Release } from './types.ts';

/** Per alpha. */
export type ReleaseThresholds = readonly Omit<Probe['thresholds'][number], 'alpha'>[];

/** @param thresholds of the headline monitor on the side that holds every row, per alpha */
export async function releaseProbes(
  input: ForecastInput,
  results: readonly LandmarkResult[],
  thresholds: ReleaseThresholds,
  figures: readonly Figure[],
): Promise<readonly Release[]> {
  const headline = headlineReader(input.estimators);
  const releases: Release[] = [];
  for (const { data, monitors } of results) {
    const [sides] = data.sides;
    const side = sides.training.at(-1)!;
    const spec = input.landmarks.find((s) => landmarkName(s) === data.landmark.landmark)!;
    const joint = monitors.find(({ reader }) => reader.name === headline && reader.position === 'selected');
    const preferred = joint?.reader.scores[0].chosen.at(-1);
    for (const { reader, calibrated } of monitors) {
      if (reader.name !== headline || reader.position === 'selected') continue;
      const chosen = reader.scores[0].chosen.at(-1)!;
      const calibration = calibrated.calibrations.at(-1)!;
      if ('undefinedBecause' in chosen || 'undefinedBecause' in calibration) continue;
      const { tap, position, estimator, C } = chosen.candidate;
      const at = data.landmark.positions.find((p) => p.position === position)!;
      const { keys, matrixRow } = keysOf(data.landmark, position, at.exists);
      const usable = Array.from(side.rows.keys()).filter((k) => at.atRisk[side.rows[k]] === 1);
      const rows = Int32Array.from(usable, (k) => matrixRow[side.rows[k]]);
      const labels = Uint8Array.from(usable, (k) => side.labels[k]);
      const [fitted] = await input.fit(await input.read(tap, keys), [{ rows, labels, weights: null, estimator, C }]);
      if ('undefinedBecause' in fitted) continue;
      const figure = figures.find(
        (f) =>
          f.metric === 'auroc_within_fold' &&
          f.reader === headline &&
          f.tap === 'selected' &&
          f.landmark === data.landmark.landmark &&
          f.position === position,
      );
      releases.push({
        probe: {
          taps: splitTap(tap),
          landmark: { anchor: spec.anchor, offset: spec.offset, position },
          target: input.target.name,
          horizon: input.horizon,
          estimator,
          C,
          width: fitted.weights.length / splitTap(tap).length,
          ...fitted,
          calibration,
          thresholds: input.alphas.map((alpha, k) => ({
            alpha,
            ...(thresholds[k] ?? { threshold: { undefinedBecause: 'no monitor watches at this landmark' } }),
          })),
        },
        trainingRows: rows.length,
        positives: labels.reduce((a, b) => a + b, 0),
        groups: new Set(usable.map((k) => side.groups[k])).size,
        auroc: figure?.value ?? { undefinedBecause: 'no figure of this landmark' },
        preferred: preferred === undefined || ('candidate' in preferred && preferred.candidate.position === position),
      });
    }
  }
  return releases;
}
