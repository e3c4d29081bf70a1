/**
 * Offline interventions (EVALUATION.md 15): what stopping would have done to each logged episode, under policies driven
 * by one reader's scores and under controls that know nothing, everything, or only the number and timing of the stops.
 */
import { UserError } from '../errors.ts';
import { seededRng } from '../lib/rng.ts';
import { drawClusters } from '../math/bootstrap.ts';
import { distinctCodes } from '../math/order.ts';
import type { Figure } from '../types.ts';
import { breakEvenWithTwins } from './break-even.ts';
import { walkOf } from './moments.ts';
import { OFFLINE_LIMITS } from './offline-limits.ts';
import { policyNamed } from './policies.ts';
import { simulatePopulation } from './population.ts';
import type { InterventionInput, InterventionResult, OutcomeRow, StopCurve, ThresholdChoice } from './types.ts';

/** @throws UserError for an unknown policy or lists of different lengths */
export function intervene(input: InterventionInput): InterventionResult {
  checkInput(input);
  const figures: Figure[] = [];
  const outcomes: OutcomeRow[] = [];
  const curves: StopCurve[] = [];
  // Stopped by a limit before any act: nobody knows what would have come (EVALUATION.md 3).
  const known = input.episodes.filter(({ meta, event }) => event.turn !== null || meta.end !== 'limit');
  for (const population of ['x-', 'nuisance', 'x+', 'all'] as const) {
    const episodes = known.filter(({ meta }) => (meta.world === 'none' ? 'all' : meta.world) === population);
    if (episodes.length === 0) continue;
    const { codes, count } = distinctCodes(episodes.map(({ group }) => group));
    const result = simulatePopulation(input, population, {
      episodes,
      walks: episodes.map((episode) => walkOf(episode, input.positions)),
      clusters: codes,
      draws: drawClusters(count, input.bootstrapDraws, seededRng(input.seed, 'interventions', population)),
      costs: input.costs,
    });
    figures.push(...result.figures);
    outcomes.push(...result.outcomes);
    curves.push(result.curve);
  }
  const lead = known.some(({ meta }) => meta.world !== 'none') ? 'x-' : 'all';
  return {
    figures: [...figures, ...breakEvenWithTwins(input, outcomes), ...offlineLimits(input, lead)],
    outcomes,
    curves,
    thresholds: thresholdChoices(input),
  };
}

function checkInput(input: InterventionInput): void {
  for (const name of input.policies) policyNamed(name);
  for (const { meta, thresholds, points, second } of input.episodes) {
    const watched = points.length > 0;
    if (
      (watched && thresholds.length !== input.alphas.length) ||
      (second && (second.scores.length !== points.length || second.thresholds.length !== input.alphas.length))
    ) {
      throw new UserError(
        `intervene: expected ${input.alphas.length} thresholds and a second score for each of ${points.length} points of ${meta.key}, got ${thresholds.length} and ${second?.scores.length ?? 'none'}. Give both readers the same landmarks and alphas`,
      );
    }
  }
}

function offlineLimits(input: InterventionInput, population: Figure['population']): readonly Figure[] {
  return OFFLINE_LIMITS.map(({ policy, metric, value }): Figure => ({
    stage: 'intervene',
    target: input.target,
    condition: input.condition,
    population,
    landmark: 'any',
    position: 'any',
    reader: `policy:${policy}`,
    tap: null,
    metric,
    value,
    model: input.model,
    at: { scores: input.reader },
  }));
}

/** One for each outer fold and alpha, as the development side chose it. */
function thresholdChoices(input: InterventionInput): readonly ThresholdChoice[] {
  const { model, condition, target, reader } = input;
  const folds = new Map(
    input.episodes.flatMap(({ fold, thresholds }) => (fold === null ? [] : [[fold, thresholds] as const])),
  );
  return [...folds]
    .sort(([a], [b]) => a - b)
    .flatMap(([fold, thresholds]) =>
      input.alphas.map((alpha, k): ThresholdChoice => ({
        model,
        condition,
        target,
        reader,
        alpha,
        fold,
        threshold: thresholds[k],
      })),
    );
}
