/**
 * AUROC figures of opened readers (EVALUATION.md 8 and 12): within folds with a cluster interval, pooled beside it,
 * within templates, with censored episodes as negatives, the spread over split seeds, and paired differences.
 */
import {
  basisOf,
  type ClusterDraws,
  bootstrapConcordance,
  drawClusters,
  estimateConcordance,
  estimateConcordanceDifference,
  percentileInterval,
  tooFewGroups,
} from '../math/bootstrap.ts';
import { distinctCodes } from '../math/order.ts';
import { rankRows, weightedConcordance } from '../math/ranking.ts';
import { seededRng } from '../lib/rng.ts';
import type { EpisodeMeta, Figure, Value } from '../types.ts';
import { count, type FigureBase } from './figures.ts';
import type { ForecastRow } from './landmarks.ts';
import type { Reader } from './readers.ts';
import { CENSORED } from './sealed-labels.ts';

/** Random directions that the contract asks for (EVALUATION.md 12); a figure of fewer says so in `at.contract`. */
export const MIN_DIRECTIONS = 20;

/** One landmark after its outer sides were opened. */
export interface Opened {
  readonly rows: readonly ForecastRow[];
  readonly episodes: readonly EpisodeMeta[];
  /** Per row, as in sealed-labels.ts; read from the outer sides. */
  readonly labels: Int8Array;
  /** Per folding, per row. */
  readonly folds: readonly Int32Array[];
  /** Outer folds that were dealt, per folding: a hash may leave one of them empty. */
  readonly foldCounts: readonly number[];
  /** Per row: group of its episode. */
  readonly groups: Int32Array;
  readonly drawsFor: (clusters: number) => ClusterDraws;
}

/** Draws depend on the number of clusters only, so figures on the same rows share them and differences are paired. */
export function drawCache(draws: number, seed: number): Opened['drawsFor'] {
  const cache = new Map<number, ClusterDraws>();
  return (clusters) => {
    const known = cache.get(clusters);
    if (known) return known;
    const made = drawClusters(clusters, draws, seededRng(seed, 'cluster_bootstrap', clusters));
    cache.set(clusters, made);
    return made;
  };
}

/** Rows of one population that a reader is measured on, in row order. */
export function measuredRows(
  opened: Opened,
  reader: Pick<Reader, 'atRisk' | 'scores'>,
  inPopulation: (row: number) => boolean,
  folding = 0,
  censored = false,
): readonly number[] {
  const { outer } = reader.scores[folding];
  return opened.rows.flatMap((_, row) => {
    const label = opened.labels[row];
    const labelled = label === 0 || label === 1 || (censored && label === CENSORED);
    return labelled && reader.atRisk[row] === 1 && !Number.isNaN(outer[row]) && inPopulation(row) ? [row] : [];
  });
}

interface Measured {
  readonly scores: Float64Array;
  readonly labels: Uint8Array;
  readonly strata: Int32Array;
  readonly clusters: Int32Array;
  readonly draws: ClusterDraws;
}

function measure(
  opened: Opened,
  outer: Float64Array,
  rows: readonly number[],
  stratum: (row: number) => number,
): Measured {
  const { codes, count: clusters } = distinctCodes(rows.map((row) => opened.groups[row]));
  return {
    scores: Float64Array.from(rows, (row) => outer[row]),
    labels: Uint8Array.from(rows, (row) => (opened.labels[row] === 1 ? 1 : 0)),
    strata: Int32Array.from(rows, stratum),
    clusters: codes,
    draws: opened.drawsFor(clusters),
  };
}

function concordanceValue({ scores, labels, strata, clusters, draws }: Measured): Value {
  return estimateConcordance({ ranked: rankRows({ scores, labels, strata }), labels, clusters }, draws);
}

export function aurocWithinFold(opened: Opened, reader: Reader, rows: readonly number[], folding = 0): Value {
  const folds = opened.folds[folding];
  return concordanceValue(measure(opened, reader.scores[folding].outer, rows, (row) => folds[row]));
}

/** Template of each row as a number, for strata. */
export function templateCodes(opened: Opened): Int32Array {
  const codes = new Map<string, number>();
  return Int32Array.from(opened.rows, ({ index }) => {
    const template = opened.episodes[index].template ?? '';
    const code = codes.get(template) ?? codes.size;
    codes.set(template, code);
    return code;
  });
}

/**
 * What is said about one reader in one population: the headline number, the pooled one, and for readers that make a
 * claim (`detail`) also the sensitivities.
 */
export function aurocFigures(
  opened: Opened,
  reader: Reader,
  base: FigureBase,
  inPopulation: (row: number) => boolean,
  detail: boolean,
): readonly Figure[] {
  const rows = measuredRows(opened, reader, inPopulation);
  const [{ outer }] = reader.scores;
  const [folds] = opened.folds;
  const templates = templateCodes(opened);
  const foldCount = Math.max(0, ...folds) + 1;
  const figure = (metric: string, value: Value, at?: Figure['at']): Figure => ({
    ...base,
    position: reader.position,
    reader: reader.name,
    tap: reader.tap,
    metric,
    value,
    ...(at ? { at } : {}),
  });
  const within = measure(opened, outer, rows, (row) => folds[row]);
  const figures = [
    figure('auroc_within_fold', concordanceValue(within)),
    figure('auroc_pooled', concordanceValue(measure(opened, outer, rows, () => 0))),
    figure('auroc_split_seed_spread', splitSeedSpread(opened, reader, inPopulation)),
  ];
  if (!detail) return figures;
  const { oneClassStrata, strata } = weightedConcordance(rankRows(within));
  const byTemplate = measure(opened, outer, rows, (row) => templates[row] * foldCount + folds[row]);
  figures.push(
    figure('auroc_within_template', concordanceValue(byTemplate)),
    figure('one_class_folds', count(oneClassStrata, strata), { folds: strata }),
    figure('empty_folds', count(opened.foldCounts[0] - strata, opened.foldCounts[0]), { folds: opened.foldCounts[0] }),
    figure('detectable_difference', detectableDifference(within)),
  );
  const withCensored = measuredRows(opened, reader, inPopulation, 0, true);
  if (withCensored.length > rows.length) {
    const asNegatives = measure(opened, outer, withCensored, (row) => folds[row]);
    figures.push(figure('auroc_within_fold_censored_negative', concordanceValue(asNegatives)));
    const { horizon } = base;
    if (horizon !== undefined) {
      const known = withCensored.filter((row) => opened.labels[row] !== CENSORED || outlived(opened, row, horizon));
      const value = concordanceValue(measure(opened, outer, known, (row) => folds[row]));
      figures.push(figure('auroc_within_fold_known_negative', value));
    }
  }
  return figures;
}

/** Stopped by a limit, but only after the horizon had passed without the event: a known negative. */
function outlived({ rows, episodes }: Opened, row: number, horizon: number): boolean {
  const { index, turn } = rows[row];
  return episodes[index].turnCount >= turn + horizon;
}

/** The headline number again within each family and template (`Figure.group`: `family:<name>`), where there are several. */
export function breakdownFigures(
  opened: Opened,
  reader: Reader,
  base: FigureBase,
  inPopulation: (row: number) => boolean,
): readonly Figure[] {
  const valueOf = (row: number, by: 'family' | 'template'): string | null =>
    opened.episodes[opened.rows[row].index][by];
  return (['family', 'template'] as const).flatMap((by): readonly Figure[] => {
    const names = [...new Set(opened.rows.map((_, row) => valueOf(row, by)))].filter((name) => name !== null).sort();
    if (names.length < 2) return [];
    return names.map((name): Figure => {
      const rows = measuredRows(opened, reader, (row) => valueOf(row, by) === name && inPopulation(row));
      const { position, tap } = reader;
      const value = aurocWithinFold(opened, reader, rows);
      const group = `${by}:${name}`;
      return { ...base, position, reader: reader.name, tap, metric: 'auroc_within_fold', value, group };
    });
  });
}

/** Mean, smallest and largest within-fold AUROC over the split seeds. */
function splitSeedSpread(opened: Opened, reader: Reader, inPopulation: (row: number) => boolean): Value {
  if (reader.scores.length < 3)
    return { undefinedBecause: `${reader.scores.length} split seeds, at least 3 are needed` };
  const values: number[] = [];
  for (const [f, { outer }] of reader.scores.entries()) {
    const rows = measuredRows(opened, reader, inPopulation, f);
    const measured = measure(opened, outer, rows, (row) => opened.folds[f][row]);
    const few = tooFewGroups(measured.clusters, measured.labels);
    if (few !== null) return few;
    const { wins, pairs } = weightedConcordance(rankRows(measured));
    if (pairs === 0) return { undefinedBecause: `split ${f} has no pair of both classes in one fold` };
    values.push(wins / pairs);
  }
  return {
    estimate: values.reduce((a, b) => a + b, 0) / values.length,
    lower: Math.min(...values),
    upper: Math.max(...values),
    n: values.length,
    positives: null,
    clusters: null,
  };
}

/** (z of 97.5 % + z of 80 %) times the bootstrap's standard deviation. */
function detectableDifference(measured: Measured): Value {
  const { labels, clusters, draws, strata, scores } = measured;
  const few = tooFewGroups(clusters, labels);
  if (few !== null) return few;
  const values = bootstrapConcordance(rankRows({ scores, labels, strata }), clusters, draws);
  const interval = percentileInterval(values);
  if ('undefinedBecause' in interval) return interval;
  const kept = values.filter((value) => !Number.isNaN(value));
  const mean = kept.reduce((a, b) => a + b, 0) / kept.length;
  const sd = Math.sqrt(kept.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(1, kept.length - 1));
  return { estimate: 2.8 * sd, lower: null, upper: null, ...basisOf(labels, clusters) };
}

/** Headline minus another reader, over the rows both have scored. */
export function aurocMinus(
  opened: Opened,
  probe: Reader,
  other: Reader,
  base: FigureBase,
  inPopulation: (row: number) => boolean,
): Figure {
  const otherOuter = other.scores[0].outer;
  const rows = measuredRows(
    opened,
    probe,
    (row) => inPopulation(row) && other.atRisk[row] === 1 && !Number.isNaN(otherOuter[row]),
  );
  const [folds] = opened.folds;
  const a = measure(opened, probe.scores[0].outer, rows, (row) => folds[row]);
  const b = measure(opened, otherOuter, rows, (row) => folds[row]);
  const value = estimateConcordanceDifference(rankRows(a), rankRows(b), a.labels, a.clusters, a.draws);
  return {
    ...base,
    position: probe.position,
    reader: probe.name,
    tap: probe.tap,
    metric: 'auroc_minus',
    value,
    at: { minus: other.name },
  };
}

/** Mean over random directions, with the 2.5 and 97.5 % points of the directions. */
export function randomDirectionFigure(
  opened: Opened,
  directions: readonly Reader[],
  base: FigureBase,
  inPopulation: (row: number) => boolean,
): Figure | null {
  const [first] = directions;
  if (!first) return null;
  const rows = measuredRows(opened, first, inPopulation);
  const [folds] = opened.folds;
  const shares = directions.map((reader) =>
    weightedConcordance(rankRows(measure(opened, reader.scores[0].outer, rows, (row) => folds[row]))),
  );
  const measured = concordanceValue(measure(opened, first.scores[0].outer, rows, (row) => folds[row]));
  const interval = percentileInterval(Float64Array.from(shares, ({ wins, pairs }) => wins / pairs));
  const value: Value =
    'undefinedBecause' in measured
      ? measured
      : 'undefinedBecause' in interval
        ? interval
        : {
            ...measured,
            estimate: shares.reduce((sum, { wins, pairs }) => sum + wins / pairs, 0) / shares.length,
            lower: interval.lower,
            upper: interval.upper,
          };
  return {
    ...base,
    position: first.position,
    reader: first.name,
    tap: first.tap,
    metric: 'auroc_within_fold',
    value,
    at: {
      directions: directions.length,
      ...(directions.length < MIN_DIRECTIONS ? { contract: MIN_DIRECTIONS } : {}),
    },
  };
}
