/** ROC and precision–recall curves and the figures read off them. A point per distinct score, so ties make no stairs. */
import type { Undefined } from '../types.ts';
import { sortedOrder } from './order.ts';

/** One point per distinct score, from "alarm on nothing" (threshold Infinity) to "alarm on everything". */
export interface ThresholdCounts {
  /** Alarm = score ≥ threshold. [points] */
  readonly thresholds: Float64Array;
  readonly truePositives: Float64Array;
  readonly falsePositives: Float64Array;
  readonly positives: number;
  readonly negatives: number;
}

/** @param weights [rows] ≥ 0, absent = 1 @throws TypeError on NaN scores or lengths that differ */
export function thresholdCounts(
  scores: ArrayLike<number>,
  labels: ArrayLike<number>,
  weights?: ArrayLike<number>,
): ThresholdCounts {
  if (labels.length !== scores.length) throw new TypeError(`${labels.length} labels for ${scores.length} scores`);
  const order = sortedOrder(scores).reverse();
  const thresholds = [Infinity];
  const truePositives = [0];
  const falsePositives = [0];
  let tp = 0;
  let fp = 0;
  for (let place = 0; place < order.length; place += 1) {
    const row = order[place];
    const weight = weights === undefined ? 1 : weights[row];
    if (labels[row] === 0) fp += weight;
    else tp += weight;
    const last = place + 1 === order.length || scores[order[place + 1]] !== scores[row];
    if (!last) continue;
    thresholds.push(scores[row]);
    truePositives.push(tp);
    falsePositives.push(fp);
  }
  return {
    thresholds: Float64Array.from(thresholds),
    truePositives: Float64Array.from(truePositives),
    falsePositives: Float64Array.from(falsePositives),
    positives: tp,
    negatives: fp,
  };
}

export interface CurvePoints {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly thresholds: Float64Array;
}

/** x = false-positive rate, y = true-positive rate, from (0, 0) to (1, 1). */
export function rocCurve(counts: ThresholdCounts): CurvePoints | Undefined {
  const { positives, negatives, truePositives, falsePositives, thresholds } = counts;
  if (positives === 0 || negatives === 0) return oneClass(counts);
  return { x: falsePositives.map((v) => v / negatives), y: truePositives.map((v) => v / positives), thresholds };
}

/** x = recall, y = precision; starts at recall 0 with the precision of the highest score. */
export function precisionRecallCurve(counts: ThresholdCounts): CurvePoints | Undefined {
  const { positives, truePositives, falsePositives, thresholds } = counts;
  if (positives === 0) return oneClass(counts);
  const y = truePositives.map((tp, i) => tp / (tp + falsePositives[i]));
  y[0] = y.length > 1 ? y[1] : 1;
  return { x: truePositives.map((tp) => tp / positives), y, thresholds };
}

/** Average precision Σ (recall step · precision), as scikit-learn's: no interpolation between points. Base rate = chance. */
export function averagePrecision(counts: ThresholdCounts): number | Undefined {
  const { positives, truePositives, falsePositives } = counts;
  if (positives === 0) return oneClass(counts);
  let sum = 0;
  for (let i = 1; i < truePositives.length; i += 1) {
    const alarms = truePositives[i] + falsePositives[i];
    if (alarms > 0) sum += ((truePositives[i] - truePositives[i - 1]) / positives) * (truePositives[i] / alarms);
  }
  return sum;
}

/**
 * Area under the ROC curve up to a false-positive rate, straight lines between its points.
 * `area` is the plain area in [0, maxFpr]; `standardized` maps chance to ½ and perfect to 1 (McClish 1989), which is
 * what scikit-learn's roc_auc_score(max_fpr=…) answers.
 */
export function partialAuroc(
  counts: ThresholdCounts,
  maxFpr: number,
): { readonly area: number; readonly standardized: number } | Undefined {
  if (!(maxFpr > 0 && maxFpr <= 1)) throw new TypeError(`maxFpr must be in (0, 1], got ${maxFpr}`);
  const curve = rocCurve(counts);
  if ('undefinedBecause' in curve) return curve;
  const { x, y } = curve;
  let area = 0;
  for (let i = 1; i < x.length && x[i - 1] < maxFpr; i += 1) {
    const right = Math.min(x[i], maxFpr);
    const share = x[i] === x[i - 1] ? 0 : (right - x[i - 1]) / (x[i] - x[i - 1]);
    area += ((right - x[i - 1]) * (2 * y[i - 1] + share * (y[i] - y[i - 1]))) / 2;
  }
  const chance = (maxFpr * maxFpr) / 2;
  return { area, standardized: (1 + (area - chance) / (maxFpr - chance)) / 2 };
}

/** Highest true-positive rate at a false-positive rate of at most `maxFpr`, and the threshold (alarm = score ≥ it). */
export function recallAtFpr(
  counts: ThresholdCounts,
  maxFpr: number,
): { readonly recall: number; readonly fpr: number; readonly threshold: number } | Undefined {
  const curve = rocCurve(counts);
  if ('undefinedBecause' in curve) return curve;
  let best = 0;
  while (best + 1 < curve.x.length && curve.x[best + 1] <= maxFpr) best += 1;
  return { recall: curve.y[best], fpr: curve.x[best], threshold: curve.thresholds[best] };
}

function oneClass({ positives, negatives }: ThresholdCounts): Undefined {
  return { undefinedBecause: `${positives} positives and ${negatives} negatives: both are needed` };
}
