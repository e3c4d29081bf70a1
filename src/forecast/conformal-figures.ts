/** Conformal thresholds on per-episode maxima: what coverage they state, and what the outer sides gave. */
import { conformalThreshold, type ConformalThreshold } from '../math/conformal.ts';
import { distinctCodes } from '../math/order.ts';
import type { Figure, Undefined } from '../types.ts';
import type { Opened } from './auroc-figures.ts';
import { type FigureBase, isUndefined, ratioValue } from './figures.ts';
import { inPopulation } from './landmarks.ts';
import { firstAlarm, isNegative, type MonitorInput } from './monitor.ts';
import type { Traces } from './types.ts';

/** Per alpha, of the negatives of one development side. @param maxima highest score of each */
export function conformalThresholds(
  alphas: readonly number[],
  maxima: Float64Array,
): readonly (ConformalThreshold | Undefined)[] {
  return alphas.map((alpha) => conformalThreshold(alpha, maxima));
}

/**
 * `conformal_coverage` per alpha: share of negative outer episodes without an alarm at the threshold of their fold. `at`
 * holds the smallest coverage that a fold states, and the range of its Beta distribution. The statement takes a new
 * episode for exchangeable with the development ones: episodes of one scenario are not independent, and development
 * scores come from inner readers, the outer ones from a refit, so what was achieved stands beside it.
 * @param maxima per training side, see `developmentMaxima`
 */
export function conformalFigures(
  input: MonitorInput,
  maxima: readonly Float64Array[],
  traces: Traces,
  base: Omit<FigureBase, 'population' | 'landmark'>,
  drawsFor: Opened['drawsFor'],
): readonly Figure[] {
  const byKey = new Map(input.episodes.map((episode, index) => [episode.key, index]));
  const negatives = traces.episodes.flatMap((trace) => {
    const index = byKey.get(trace.episode)!;
    return inPopulation(input.episodes[index], input.trainedOn) && isNegative(input, index) ? [{ trace, index }] : [];
  });
  const thresholds = Array.from({ length: input.folding.folds }, (_, fold) =>
    conformalThresholds(input.alphas, maxima[fold] ?? new Float64Array(0)),
  );
  return input.alphas.map((alpha, k): Figure => {
    const shared = { landmark: 'any', position: 'any', reader: input.reader, tap: null, alpha } as const;
    const figure = { ...base, ...shared, population: input.trainedOn, metric: 'conformal_coverage' };
    const folds = thresholds.map((perAlpha) => perAlpha[k]);
    const missing = folds.find(isUndefined);
    if (missing !== undefined) return { ...figure, value: missing };
    const stated = folds
      .flatMap((fold) => (isUndefined(fold) ? [] : [fold]))
      .sort((a, b) => a.coverage - b.coverage)[0];
    const covered = negatives.map(({ trace }) => {
      const fold = folds[trace.fold];
      return !isUndefined(fold) && firstAlarm(trace.points, fold.threshold) === null ? 1 : 0;
    });
    const { codes, count } = distinctCodes(negatives.map(({ index }) => input.groups[index]));
    return {
      ...figure,
      value: ratioValue({ numerator: covered, clusters: codes }, drawsFor(count), 'negative episodes with a landmark'),
      at: { stated: stated.coverage, stated_lower: stated.lower, stated_upper: stated.upper, n_development: stated.n },
    };
  });
}
