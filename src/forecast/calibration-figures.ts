/** How far the calibrated probabilities can be believed: Brier score, log loss, reliability bins, expected calibration error. */
import { intervalValue, bootstrapStatistic } from '../math/bootstrap.ts';
import { distinctCodes } from '../math/order.ts';
import { rowBrier, rowLogLoss } from '../math/proper-scores.ts';
import { midranks } from '../math/ranking.ts';
import type { Figure, Value } from '../types.ts';
import type { Opened } from './auroc-figures.ts';
import { type FigureBase, ratioValue } from './figures.ts';
import type { Reader } from './readers.ts';
import type { Curve } from './types.ts';

const BINS = 10;
/** Probabilities are kept this far from 0 and 1 in the log loss, so that one sure mistake does not make it infinite. */
const EDGE = 1e-6;

export interface CalibrationFigures {
  readonly figures: readonly Figure[];
  readonly curve: Curve | null;
}

/** @param probabilities per landmark row @param rows those measured */
export function calibrationFigures(
  opened: Opened,
  reader: Reader,
  probabilities: Float64Array,
  rows: readonly number[],
  base: FigureBase,
): CalibrationFigures {
  const kept = rows.filter((row) => !Number.isNaN(probabilities[row]));
  const figure = (metric: string, value: Value, at?: Figure['at']): Figure => ({
    ...base,
    position: reader.position,
    reader: reader.name,
    tap: reader.tap,
    metric,
    value,
    ...(at ? { at } : {}),
  });
  if (kept.length === 0) {
    const value = { undefinedBecause: 'no calibrated scores' };
    return { figures: ['brier', 'log_loss', 'ece', 'base_rate'].map((metric) => figure(metric, value)), curve: null };
  }
  const p = kept.map((row) => probabilities[row]);
  const y: readonly number[] = kept.map((row) => (opened.labels[row] === 1 ? 1 : 0));
  const { codes: clusters, count } = distinctCodes(kept.map((row) => opened.groups[row]));
  const draws = opened.drawsFor(count);
  const positives = y.reduce((a, b) => a + b, 0);
  const mean = (numerator: ArrayLike<number>): Value => {
    const value = ratioValue({ numerator, clusters }, draws, 'rows');
    return 'undefinedBecause' in value ? value : { ...value, positives };
  };
  const bin = equalCountBins(p);

  const figures: Figure[] = [
    figure('brier', mean(rowBrier(p, y))),
    figure('log_loss', mean(rowLogLoss(p.map(insideEdges), y))),
    figure('base_rate', mean(y)),
    figure('ece', expectedCalibrationError(p, y, bin, clusters, opened.drawsFor(count), positives)),
  ];
  const x: number[] = [];
  const observed: number[] = [];
  const n: number[] = [];
  for (let b = 0; b < BINS; b += 1) {
    const members = kept.map((_, i) => i).filter((i) => bin[i] === b);
    if (members.length === 0) continue;
    const predicted = members.reduce((sum, i) => sum + p[i], 0) / members.length;
    const inBin = ratioValue(
      {
        numerator: y.map((value, i) => (bin[i] === b ? value : 0)),
        denominator: [...bin].map((v) => (v === b ? 1 : 0)),
        clusters,
      },
      draws,
      'rows in this bin',
    );
    figures.push(figure('reliability', inBin, { bin: b, predicted }));
    x.push(predicted);
    observed.push(members.reduce((sum, i) => sum + y[i], 0) / members.length);
    n.push(members.length);
  }
  const { population, landmark } = base;
  return {
    figures,
    curve: {
      kind: 'reliability',
      population,
      landmark,
      position: reader.position,
      reader: reader.name,
      x,
      y: observed,
      n,
    },
  };
}

/** Bins of equal count by rank; equal predictions share the bin of their middle, so row order changes nothing. */
function equalCountBins(p: readonly number[]): Int32Array {
  return Int32Array.from(midranks(p), (rank) => Math.floor(((rank - 0.5) * BINS) / p.length));
}

function insideEdges(p: number): number {
  return Math.min(1 - EDGE, Math.max(EDGE, p));
}

/**
 * Σ over bins of |Σ (p − y)| / n, on the bins of the full data. A sum of absolute values only grows under resampling, so
 * the draws are shifted by their mean excess over the estimate before the interval is taken.
 */
function expectedCalibrationError(
  p: readonly number[],
  y: readonly number[],
  bin: Int32Array,
  clusters: Int32Array,
  draws: ReturnType<Opened['drawsFor']>,
  positives: number,
): Value {
  const gap = new Float64Array(draws.clusters * BINS);
  const size = new Float64Array(draws.clusters);
  p.forEach((value, i) => {
    gap[clusters[i] * BINS + bin[i]] += value - y[i];
    size[clusters[i]] += 1;
  });
  const at = (multiplicity: ArrayLike<number> | null): number => {
    const sums = new Float64Array(BINS);
    let n = 0;
    for (let c = 0; c < draws.clusters; c += 1) {
      const w = multiplicity ? multiplicity[c] : 1;
      if (w === 0) continue;
      n += w * size[c];
      for (let b = 0; b < BINS; b += 1) sums[b] += w * gap[c * BINS + b];
    }
    return sums.reduce((sum, value) => sum + Math.abs(value), 0) / n;
  };
  const estimate = at(null);
  const values = bootstrapStatistic(draws, at);
  const excess = values.reduce((sum, value) => sum + (value - estimate) / values.length, 0);
  return intervalValue(
    estimate,
    values.map((value) => Math.max(0, value - excess)),
    { n: p.length, positives, clusters: draws.clusters },
  );
}
