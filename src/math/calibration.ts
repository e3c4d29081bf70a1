/**
 * From margins to probabilities. Both maps are fitted on margins the reader did not see in its own training (out-of-fold
 * or development rows), else they learn its overconfidence as truth.
 */
import type { Calibration, Undefined } from '../types.ts';
import { logisticPass, sigmoid } from './logistic-loss.ts';
import { sortedOrder } from './order.ts';
import { classBalance } from './sparse.ts';

/**
 * Platt's sigmoid (1999) with his smoothed targets (N₊ + 1)/(N₊ + 2) and 1/(N₋ + 2), which keep it finite on separable
 * margins; Newton steps after Lin, Lin & Weng (2007). The same optimum as scikit-learn's sigmoid calibration.
 * Equal margins give slope 0. A negative slope is possible and means that the reader ranks these rows backwards.
 */
export function fitPlatt(margins: ArrayLike<number>, labels: ArrayLike<number>): Calibration | Undefined {
  const balance = classBalance(labels, null);
  if ('undefinedBecause' in balance) return balance;
  const rows = margins.length;
  const { mean, scale } = spread(margins);
  const high = (balance.positive + 1) / (balance.positive + 2);
  const low = 1 / (balance.negative + 2);
  // A row with target t is a positive of weight t and a negative of weight 1 − t.
  const x = new Float64Array(2 * rows);
  const y = new Uint8Array(2 * rows);
  const s = new Float64Array(2 * rows);
  for (let row = 0; row < rows; row += 1) {
    const target = labels[row] === 0 ? low : high;
    x[row] = x[rows + row] = (margins[row] - mean) / scale;
    y[row] = 1;
    s[row] = target;
    s[rows + row] = 1 - target;
  }
  const { slope, intercept } = newtonSigmoid(x, y, s, Math.log((balance.positive + 1) / (balance.negative + 1)));
  return { kind: 'platt', slope: slope / scale, intercept: intercept - (slope * mean) / scale };
}

function newtonSigmoid(
  x: Float64Array,
  y: Uint8Array,
  s: Float64Array,
  start: number,
): { readonly slope: number; readonly intercept: number } {
  const residual = new Float64Array(x.length);
  const curvature = new Float64Array(x.length);
  const lossAt = (a: number, b: number): number =>
    logisticPass(
      x.map((value) => a * value + b),
      y,
      s,
      residual,
      curvature,
    );
  let slope = 0;
  let intercept = start;
  for (let iteration = 0; iteration < 100; iteration += 1) {
    const loss = lossAt(slope, intercept);
    let ga = 0;
    let gb = 0;
    let haa = 1e-12;
    let hab = 0;
    let hbb = 1e-12;
    for (let i = 0; i < x.length; i += 1) {
      ga += residual[i] * x[i];
      gb += residual[i];
      haa += curvature[i] * x[i] * x[i];
      hab += curvature[i] * x[i];
      hbb += curvature[i];
    }
    const determinant = haa * hbb - hab * hab;
    const da = -(hbb * ga - hab * gb) / determinant;
    const db = -(haa * gb - hab * ga) / determinant;
    const decrement = -(ga * da + gb * db);
    if (!(decrement > 1e-14 * loss)) break;
    let length = 1;
    while (length > 1e-10 && lossAt(slope + length * da, intercept + length * db) > loss - 1e-4 * length * decrement) {
      length /= 2;
    }
    slope += length * da;
    intercept += length * db;
  }
  return { slope, intercept };
}

/**
 * Isotonic regression of the label on the margin by pooling adjacent violators; equal margins are one point. A step
 * function: a margin takes the value of the highest threshold at or below it, one below all takes the first.
 */
export function fitIsotonic(margins: ArrayLike<number>, labels: ArrayLike<number>): Calibration | Undefined {
  const balance = classBalance(labels, null);
  if ('undefinedBecause' in balance) return balance;
  const order = sortedOrder(margins);
  const start: number[] = [];
  const sum: number[] = [];
  const count: number[] = [];
  for (let at = 0; at < order.length;) {
    const margin = margins[order[at]];
    let positives = 0;
    let n = 0;
    for (; at < order.length && margins[order[at]] === margin; at += 1) {
      positives += labels[order[at]] === 0 ? 0 : 1;
      n += 1;
    }
    start.push(margin);
    sum.push(positives);
    count.push(n);
    // Merge while the block before is not lower; equal neighbours are one step.
    for (
      let last = start.length - 1;
      last > 0 && sum[last - 1] * count[last] >= sum[last] * count[last - 1];
      last -= 1
    ) {
      sum[last - 1] += sum[last];
      count[last - 1] += count[last];
      start.pop();
      sum.pop();
      count.pop();
    }
  }
  return { kind: 'isotonic', thresholds: start, values: sum.map((positives, block) => positives / count[block]) };
}

/** Probability of one margin; a probe without calibration answers the logistic of its margin. */
export function calibrate(calibration: Calibration, margin: number): number {
  if (calibration.kind === 'none') return sigmoid(margin);
  if (calibration.kind === 'platt') return sigmoid(calibration.slope * margin + calibration.intercept);
  const { thresholds, values } = calibration;
  let low = 0;
  let high = thresholds.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (thresholds[middle] <= margin) low = middle + 1;
    else high = middle;
  }
  return values[Math.max(0, low - 1)];
}

function spread(values: ArrayLike<number>): { readonly mean: number; readonly scale: number } {
  let mean = 0;
  for (let i = 0; i < values.length; i += 1) mean += values[i] / values.length;
  let square = 0;
  for (let i = 0; i < values.length; i += 1) square += (values[i] - mean) ** 2 / values.length;
  return { mean, scale: square > 0 ? Math.sqrt(square) : 1 };
}
