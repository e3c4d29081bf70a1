/**
 * Cluster bootstrap (EVALUATION.md 8): whole groups are drawn with replacement, the statistic is recomputed on what was
 * drawn, and the percentile interval of those values is the interval of the figure. All statistics of one comparison
 * read the same draws, which is what makes their differences paired.
 *
 * A draw is a count per group, so a statistic needs the data once, in a form that takes multiplicities: one pass over
 * sorted rows for the concordance, one over groups for ratios of sums. Draws on which a statistic does not exist (no
 * pair, empty denominator) are NaN inside these arrays only; the interval drops and counts them.
 */
import type { Rng, Undefined, Value } from '../types.ts';
import { distinctCodes } from './order.ts';
import { quantileSorted } from './quantiles.ts';
import type { RankedStructure } from './ranking.ts';
import { weightedConcordance } from './ranking.ts';

/** Least draws for a percentile interval of record; a value made with fewer says so. */
export const DEFAULT_DRAWS = 2000;
/** Larger share of draws without a value makes the interval undefined. */
export const MAX_DROPPED_SHARE = 0.05;
/** Fewer groups with a positive (or with a negative) make a figure undefined. */
export const MIN_GROUPS_PER_CLASS = 5;

export interface ClusterDraws {
  readonly draws: number;
  readonly clusters: number;
  /** [draws × clusters]: how often each cluster was drawn. Every draw sums to `clusters`. */
  readonly counts: Uint16Array;
}

/** Draws clusters 0 … clusters − 1 with replacement. Draw once, hand to every statistic on the same groups. */
export function drawClusters(clusters: number, draws: number, rng: Rng): ClusterDraws {
  const counts = new Uint16Array(draws * clusters);
  for (let draw = 0; draw < draws; draw += 1) {
    const base = draw * clusters;
    for (let i = 0; i < clusters; i += 1) counts[base + rng.below(clusters)] += 1;
  }
  return { draws, clusters, counts };
}

export interface Interval {
  readonly lower: number;
  readonly upper: number;
  /** Draws on which the statistic does not exist. */
  readonly dropped: number;
}

/** Percentile interval of bootstrap values; NaN = the statistic does not exist on that draw. */
export function percentileInterval(values: Float64Array, level = 0.95): Interval | Undefined {
  const kept = values.filter((value) => !Number.isNaN(value)).sort();
  const dropped = values.length - kept.length;
  if (kept.length === 0 || dropped > MAX_DROPPED_SHARE * values.length) {
    return { undefinedBecause: `${dropped} of ${values.length} bootstrap draws have no value (at most 5 % may)` };
  }
  return { lower: quantileSorted(kept, (1 - level) / 2), upper: quantileSorted(kept, (1 + level) / 2), dropped };
}

/**
 * Concordance share on every draw.
 * @param clusters [rows] cluster of each row, 0 … draws.clusters − 1
 * @returns [draws], NaN where a draw has no pair
 */
export function bootstrapConcordance(
  ranked: RankedStructure,
  clusters: ArrayLike<number>,
  { draws, clusters: count, counts }: ClusterDraws,
): Float64Array {
  checkClusters(clusters, ranked.rows, count);
  const { negatives, positives, strata } = splitByClass(ranked, clusters);
  const below = new Int32Array(negatives.length + 1);
  const values = new Float64Array(draws);
  // No branch inside the two inner loops: tie runs and classes in random order would be mispredicted draws × rows times.
  for (let draw = 0; draw < draws; draw += 1) {
    const base = draw * count;
    for (let j = 0; j < negatives.length; j += 1) below[j + 1] = below[j] + counts[base + negatives[j]];
    let twiceWins = 0;
    let pairs = 0;
    for (const { from, to, first, last } of strata) {
      const lowest = below[first];
      let weight = 0;
      for (let i = from; i < to; i += 1) {
        const m = counts[base + positives.cluster[i]];
        weight += m;
        twiceWins += m * (below[positives.lower[i]] + below[positives.upper[i]] - 2 * lowest);
      }
      pairs += weight * (below[last] - lowest);
    }
    values[draw] = pairs > 0 ? twiceWins / (2 * pairs) : Number.NaN;
  }
  return values;
}

interface ClassSplit {
  /** Cluster of each negative, by ascending (stratum, score). */
  readonly negatives: Int32Array;
  /** Per positive: its cluster, and how many negatives of this list lie before its tie run, and up to its end. */
  readonly positives: { readonly cluster: Int32Array; readonly lower: Int32Array; readonly upper: Int32Array };
  /** Positives from … to and negatives first … last of each stratum. */
  readonly strata: readonly {
    readonly from: number;
    readonly to: number;
    readonly first: number;
    readonly last: number;
  }[];
}

function splitByClass({ rows, order, positive, step }: RankedStructure, clusters: ArrayLike<number>): ClassSplit {
  let positiveCount = 0;
  for (let place = 0; place < rows; place += 1) positiveCount += positive[place];
  const negatives = new Int32Array(rows - positiveCount);
  const cluster = new Int32Array(positiveCount);
  const lower = new Int32Array(positiveCount);
  const upper = new Int32Array(positiveCount);
  const strata: { from: number; to: number; first: number; last: number }[] = [];
  let p = 0;
  let n = 0;
  for (let start = 0; start < rows;) {
    let end = start + 1;
    while (end < rows && step[end] === 0) end += 1;
    if (step[start] === 2) strata.push({ from: p, to: p, first: n, last: n });
    const before = n;
    const firstPositive = p;
    for (let place = start; place < end; place += 1) {
      if (positive[place] === 1) cluster[p++] = clusters[order[place]];
      else negatives[n++] = clusters[order[place]];
    }
    lower.fill(before, firstPositive, p);
    upper.fill(n, firstPositive, p);
    const stratum = strata[strata.length - 1];
    stratum.to = p;
    stratum.last = n;
    start = end;
  }
  return { negatives, positives: { cluster, lower, upper }, strata };
}

/**
 * A ratio of sums over rows (mean, rate, accuracy, Brier score …) on every draw: Σ numerator / Σ denominator.
 * @param numerator, denominator [rows]; absent denominator = 1 per row
 * @returns [draws], NaN where the denominator is 0
 */
export function bootstrapRatio(
  numerator: ArrayLike<number>,
  denominator: ArrayLike<number> | null,
  clusters: ArrayLike<number>,
  { draws, clusters: count, counts }: ClusterDraws,
): Float64Array {
  checkClusters(clusters, numerator.length, count);
  const above = new Float64Array(count);
  const under = new Float64Array(count);
  for (let row = 0; row < numerator.length; row += 1) {
    above[clusters[row]] += numerator[row];
    under[clusters[row]] += denominator === null ? 1 : denominator[row];
  }
  return bootstrapStatistic({ draws, clusters: count, counts }, (multiplicity) => {
    let top = 0;
    let bottom = 0;
    for (let c = 0; c < count; c += 1) {
      top += multiplicity[c] * above[c];
      bottom += multiplicity[c] * under[c];
    }
    return bottom === 0 ? Number.NaN : top / bottom;
  });
}

/** Any statistic of the cluster multiplicities. @param statistic may answer NaN for "does not exist on this draw" */
export function bootstrapStatistic(
  { draws, clusters, counts }: ClusterDraws,
  statistic: (multiplicity: Uint16Array) => number,
): Float64Array {
  const values = new Float64Array(draws);
  for (let draw = 0; draw < draws; draw += 1) {
    values[draw] = statistic(counts.subarray(draw * clusters, (draw + 1) * clusters));
  }
  return values;
}

/** Draw by draw a − b: the paired difference of two statistics on the same draws. */
export function pairedDifference(a: Float64Array, b: Float64Array): Float64Array {
  if (a.length !== b.length) throw new TypeError(`paired draws differ in number: ${a.length} and ${b.length}`);
  return a.map((value, draw) => value - b[draw]);
}

/** What a figure rests on: rows, positives, clusters drawn. */
export interface Basis {
  readonly n: number;
  readonly positives: number | null;
  readonly clusters: number;
}

/**
 * The figure of a statistic and its bootstrap values. The interval's reason makes the whole figure undefined; draws below
 * the contract and draws without a value are named in it.
 */
export function intervalValue(estimate: number | Undefined, values: Float64Array, basis: Basis, level = 0.95): Value {
  if (typeof estimate !== 'number') return estimate;
  const interval = percentileInterval(values, level);
  if ('undefinedBecause' in interval) return interval;
  const { lower, upper, dropped } = interval;
  return {
    estimate,
    lower,
    upper,
    ...basis,
    ...(values.length < DEFAULT_DRAWS ? { draws: values.length } : {}),
    ...(dropped > 0 ? { dropped } : {}),
  };
}

export interface ConcordanceInput {
  readonly ranked: RankedStructure;
  /** [rows] 0 / 1. */
  readonly labels: ArrayLike<number>;
  /** [rows], 0 … draws.clusters − 1. */
  readonly clusters: ArrayLike<number>;
}

/** Why too few groups hold a class, or null. @param clusters, labels [rows] */
export function tooFewGroups(clusters: ArrayLike<number>, labels: ArrayLike<number>): Undefined | null {
  const withPositive = new Set<number>();
  const withNegative = new Set<number>();
  for (let row = 0; row < clusters.length; row += 1) {
    (labels[row] === 0 ? withNegative : withPositive).add(clusters[row]);
  }
  for (const [name, { size }] of [
    ['positive', withPositive],
    ['negative', withNegative],
  ] as const) {
    if (size < MIN_GROUPS_PER_CLASS) {
      return { undefinedBecause: `${size} groups have a ${name} row (at least ${MIN_GROUPS_PER_CLASS} are needed)` };
    }
  }
  return null;
}

/** Concordance share with its cluster-bootstrap interval, or why it is undefined. */
export function estimateConcordance({ ranked, labels, clusters }: ConcordanceInput, draws: ClusterDraws): Value {
  const few = tooFewGroups(clusters, labels);
  if (few !== null) return few;
  const { wins, pairs } = weightedConcordance(ranked);
  if (pairs === 0) return { undefinedBecause: 'no stratum holds both a positive and a negative row' };
  return intervalValue(wins / pairs, bootstrapConcordance(ranked, clusters, draws), basisOf(labels, clusters));
}

/** Difference a − b of two concordances on the same rows, with its paired interval. */
export function estimateConcordanceDifference(
  a: RankedStructure,
  b: RankedStructure,
  labels: ArrayLike<number>,
  clusters: ArrayLike<number>,
  draws: ClusterDraws,
): Value {
  const few = tooFewGroups(clusters, labels);
  if (few !== null) return few;
  const totalA = weightedConcordance(a);
  const totalB = weightedConcordance(b);
  if (totalA.pairs === 0 || totalB.pairs === 0) {
    return { undefinedBecause: 'no stratum holds both a positive and a negative row' };
  }
  const values = pairedDifference(bootstrapConcordance(a, clusters, draws), bootstrapConcordance(b, clusters, draws));
  return intervalValue(totalA.wins / totalA.pairs - totalB.wins / totalB.pairs, values, basisOf(labels, clusters));
}

/** What a figure of labelled rows rests on. @param labels, clusters [rows] */
export function basisOf(labels: ArrayLike<number>, clusters: ArrayLike<number>): Basis {
  let positives = 0;
  for (let row = 0; row < labels.length; row += 1) positives += labels[row] === 0 ? 0 : 1;
  return { n: labels.length, positives, clusters: distinctCodes(clusters).count };
}

function checkClusters(clusters: ArrayLike<number>, rows: number, count: number): void {
  if (clusters.length !== rows) throw new TypeError(`${clusters.length} clusters for ${rows} rows`);
  for (let row = 0; row < rows; row += 1) {
    if (!(clusters[row] >= 0 && clusters[row] < count)) {
      throw new TypeError(
        `cluster ${clusters[row]} of row ${row} is not in 0 … ${count - 1}; code them with distinctCodes`,
      );
    }
  }
}
