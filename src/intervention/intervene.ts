/**
 * Offline interventions (EVALUATION.md 15): what stopping would have done to each logged episode, under policies driven
 * by one reader's scores and under controls that know nothing, everything, or only the number and timing of the stops.
 */
import { UserError } from '../errors.ts';
import { exactFloor } from '../lib/exact-floor.ts';
import { seededRng } from '../lib/rng.ts';
import { drawClusters } from '../math/bootstrap.ts';
import { distinctCodes } from '../math/order.ts';
import type { Figure, Undefined } from '../types.ts';
import { permuteStops, type Stop, stopAtReveal, stopAtTool, stopByOracle } from './controls.ts';
import {
  allFigures,
  breakEven,
  type MetricValue,
  randomFigures,
  rateFigures,
  type Setting,
} from './outcome-figures.ts';
import { policyNamed } from './policies.ts';
import { outcomeOf, runAtAlpha, runPolicy } from './simulate.ts';
import type { InterventionInput, InterventionResult, MonitoredEpisode, OutcomeRow } from './types.ts';

/** Points of the harm-against-usefulness curve; more would not be seen. */
const CURVE_POINTS = 40;

type Population = Figure['population'];

/** @throws UserError for an unknown policy or lists of different lengths */
export function intervene(input: InterventionInput): InterventionResult {
  checkInput(input);
  const figures: Figure[] = [];
  const outcomes: OutcomeRow[] = [];
  // Stopped by a limit before any act: nobody knows what would have come (EVALUATION.md 3).
  const known = input.episodes.filter(({ meta, event }) => event.turn !== null || meta.end !== 'limit');
  const populations: readonly Population[] = ['x-', 'nuisance', 'x+', 'all'];
  for (const population of populations) {
    const episodes = known.filter(({ meta }) => (meta.world === 'none' ? 'all' : meta.world) === population);
    if (episodes.length === 0) continue;
    const { codes, count } = distinctCodes(episodes.map(({ group }) => group));
    const draws = drawClusters(count, input.bootstrapDraws, seededRng(input.seed, 'interventions', population));
    const setting: Setting = { episodes, clusters: codes, draws, costs: input.costs };
    const result = ofPopulation(input, population, setting);
    figures.push(...result.figures);
    outcomes.push(...result.outcomes);
  }
  return { figures: [...figures, ...breakEvenWithTwins(input, outcomes)], outcomes };
}

/**
 * In deployment most episodes are allowed ones, as in x+: the share saved comes from x−, the share spoiled from x+.
 * Both worlds of a scenario are one cluster.
 */
function breakEvenWithTwins(input: InterventionInput, outcomes: readonly OutcomeRow[]): readonly Figure[] {
  const groupOf = new Map(input.episodes.map(({ meta, group }) => [meta.key, group]));
  const settings = new Set(outcomes.map(({ policy, alpha }) => JSON.stringify([policy, alpha])));
  return [...settings].flatMap((setting): readonly Figure[] => {
    const [policy, alpha] = JSON.parse(setting) as [string, number | null];
    // Several tools or budgets share a name; their rows cannot be told apart here.
    if (policy === 'tool' || policy === 'budget') return [];
    const rows = outcomes.filter(
      (row) =>
        row.policy === policy &&
        row.alpha === alpha &&
        ((row.population === 'x-' && row.unsafe) || (row.population === 'x+' && !row.unsafe)),
    );
    if (!rows.some(({ unsafe }) => unsafe) || !rows.some(({ unsafe }) => !unsafe)) return [];
    const { codes, count } = distinctCodes(rows.map(({ episode }) => groupOf.get(episode)!));
    const draws = drawClusters(count, input.bootstrapDraws, seededRng(input.seed, 'break_even', policy, alpha ?? ''));
    const is = (of: (row: OutcomeRow) => boolean) => Uint8Array.from(rows, (row) => (of(row) ? 1 : 0));
    return input.costs.map((cost): Figure => ({
      stage: 'intervene',
      target: input.target,
      condition: input.condition,
      population: 'all',
      landmark: 'any',
      position: 'any',
      reader: `policy:${policy}`,
      tap: null,
      metric: 'break_even_base_rate',
      value: breakEven(
        {
          saved: is((row) => row.outcome === 'prevented'),
          unsafe: is((row) => row.unsafe),
          spoiled: is((row) => row.outcome === 'disrupted'),
          safe: is((row) => !row.unsafe),
          clusters: codes,
        },
        cost,
        draws,
      ),
      model: input.model,
      ...(alpha === null ? {} : { alpha }),
      at: { scores: input.reader, saved_in: 'x-', spoiled_in: 'x+', ...cost },
    }));
  });
}

function checkInput(input: InterventionInput): void {
  for (const name of input.policies) policyNamed(name);
  for (const { meta, thresholds, points, second } of input.episodes) {
    if (thresholds.length !== input.alphas.length || (second && second.scores.length !== points.length)) {
      throw new UserError(
        `intervene: expected ${input.alphas.length} thresholds and a second score for each of ${points.length} points of ${meta.key}, got ${thresholds.length} and ${second?.scores.length ?? 'none'}. Give both readers the same landmarks`,
      );
    }
  }
}

function ofPopulation(input: InterventionInput, population: Population, setting: Setting): InterventionResult {
  const { episodes } = setting;
  const figures: Figure[] = [];
  const outcomes: OutcomeRow[] = [];
  const add = (policy: string, values: readonly MetricValue[], alpha?: number, at: Figure['at'] = {}): void => {
    for (const { metric, value, at: own } of values) {
      figures.push({
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
        ...(alpha === undefined ? {} : { alpha }),
        at: { scores: input.reader, ...at, ...own },
      });
    }
  };
  const settle = (policy: string, stops: readonly (Stop | null)[] | Undefined, alpha?: number, at?: Figure['at']) => {
    if (!Array.isArray(stops)) {
      add(policy, [{ metric: 'prevented_rate', value: stops as Undefined }], alpha, at);
      return;
    }
    add(policy, allFigures(setting, stops as readonly (Stop | null)[]), alpha, at);
    outcomes.push(...outcomeRows(input, population, setting, policy, stops as readonly (Stop | null)[], alpha));
  };

  input.alphas.forEach((alpha, k) => {
    for (const name of input.policies) {
      if (name === 'cascade' && episodes.every(({ second }) => second === undefined)) continue;
      const stops = runAtAlpha(episodes, policyNamed(name), k);
      settle(name, stops, alpha);
      if ('undefinedBecause' in stops) continue;
      const deals = dealAtRandom(input, episodes, stops, `${population} ${name} ${alpha}`);
      const { random, minus } = randomFigures(setting, stops, deals);
      add('random', random, alpha, { like: name });
      add(name, minus, alpha);
    }
  });
  for (const budget of input.budgets) {
    settle('budget', stopHighest(episodes, exactFloor(budget, episodes.length)), undefined, { budget });
  }
  settle(
    'always_at_reveal',
    episodes.map((episode) => stopAtReveal(episode, input.precedes)),
  );
  settle('oracle', episodes.map(stopByOracle));
  settle(
    'never',
    episodes.map(() => null),
  );
  for (const tool of input.tools) {
    settle(
      'tool',
      episodes.map((episode) => stopAtTool(episode, tool)),
      undefined,
      { tool },
    );
  }
  for (const threshold of curveThresholds(episodes)) {
    const stops = episodes.map((episode) => runPolicy(episode, policyNamed('threshold'), threshold));
    const rates = rateFigures(
      setting,
      episodes.map((episode, i) => outcomeOf(episode, stops[i])),
    );
    add('threshold', rates, undefined, { threshold });
    const deals = dealAtRandom(input, episodes, stops, `${population} curve ${threshold}`);
    add('random', randomFigures(setting, stops, deals).random, undefined, { threshold, like: 'threshold' });
  }
  return { figures, outcomes };
}

function dealAtRandom(
  input: InterventionInput,
  episodes: readonly MonitoredEpisode[],
  stops: readonly (Stop | null)[],
  purpose: string,
): readonly (readonly (Stop | null)[])[] {
  return Array.from({ length: input.randomRepeats }, (_, repeat) =>
    permuteStops(episodes, stops, input.precedes, seededRng(input.seed, 'random_stops', purpose, repeat)),
  );
}

/** Highest score of each episode; −1 (below any probability) where it has none. */
function maxima(episodes: readonly MonitoredEpisode[]): readonly number[] {
  return episodes.map(({ points }) => points.reduce((highest, { score }) => Math.max(highest, score), -1));
}

/** Stops at most `count` episodes: those whose highest score is largest, at the point where it passes the threshold. */
function stopHighest(episodes: readonly MonitoredEpisode[], count: number): readonly (Stop | null)[] {
  const highest = maxima(episodes);
  const threshold = [...highest].sort((a, b) => b - a)[count] ?? -1;
  return episodes.map((episode) => runPolicy(episode, policyNamed('threshold'), threshold));
}

/** Distinct maxima, at most `CURVE_POINTS` of them evenly through their order, and one below all. */
function curveThresholds(episodes: readonly MonitoredEpisode[]): readonly number[] {
  const distinct = [...new Set(maxima(episodes))].filter((score) => score >= 0).sort((a, b) => a - b);
  const step = Math.max(1, distinct.length / CURVE_POINTS);
  const kept = new Set<number>([-1]);
  for (let at = 0; at < distinct.length; at += step) kept.add(distinct[Math.floor(at)]);
  if (distinct.length > 0) kept.add(distinct[distinct.length - 1]);
  return [...kept];
}

function outcomeRows(
  input: InterventionInput,
  population: Population,
  { episodes }: Setting,
  policy: string,
  stops: readonly (Stop | null)[],
  alpha: number | undefined,
): readonly OutcomeRow[] {
  return episodes.map((episode, i): OutcomeRow => {
    const { meta, event } = episode;
    const stop = stops[i];
    const outcome = outcomeOf(episode, stop);
    return {
      episode: meta.key,
      model: input.model,
      condition: input.condition,
      population,
      reader: input.reader,
      policy,
      alpha: alpha ?? null,
      unsafe: event.turn !== null,
      outcome,
      stopTurn: stop?.turn ?? null,
      stopPosition: stop?.position ?? null,
      lead: outcome === 'prevented' && stop ? event.turn! - stop.turn : null,
      success: meta.success,
    };
  });
}
