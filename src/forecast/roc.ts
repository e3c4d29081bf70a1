/** ROC curve for plots: calibrated scores of all outer folds together (margins of different folds cannot share an axis). */
import { rocCurve, thresholdCounts } from '../math/curves.ts';
import type { Opened } from './auroc-figures.ts';
import type { FigureBase } from './figures.ts';
import type { Reader } from './readers.ts';
import type { Curve } from './types.ts';

export function rocCurveOf(
  opened: Opened,
  reader: Reader,
  probabilities: Float64Array,
  rows: readonly number[],
  base: FigureBase,
): Curve | null {
  const kept = rows.filter((row) => !Number.isNaN(probabilities[row]));
  const counts = thresholdCounts(
    kept.map((row) => probabilities[row]),
    kept.map((row) => (opened.labels[row] === 1 ? 1 : 0)),
  );
  const curve = rocCurve(counts);
  if ('undefinedBecause' in curve) return null;
  return {
    kind: 'roc',
    population: base.population,
    landmark: base.landmark,
    position: reader.position,
    reader: reader.name,
    x: Array.from(curve.x),
    y: Array.from(curve.y),
    n: Array.from(counts.truePositives, (tp, i) => tp + counts.falsePositives[i]),
  };
}
