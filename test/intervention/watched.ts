import { positionOrder, positionPrecedesAction } from '../../src/forecast/positions.ts';
import { intervene } from '../../src/intervention/intervene.ts';
import { type Walk, walkOf } from '../../src/intervention/moments.ts';
import type {
  InterventionInput,
  InterventionResult,
  MonitoredEpisode,
  PositionRules,
  ScorePoint,
} from '../../src/intervention/types.ts';
import type { EpisodeMeta, Figure } from '../../src/types.ts';
import { meta } from '../forecast/episodes.ts';

export const positions: PositionRules = { precedes: positionPrecedesAction, order: positionOrder };

/** Scores at pre_action of turns 0, 1, …; unsafe at `u`. */
export function watched(
  key: string,
  scores: readonly number[],
  u: number | null,
  change: Partial<EpisodeMeta> = {},
): MonitoredEpisode {
  const episode = meta(key, { unsafe: u, world: 'none', ...change });
  const points = scores.map((score, turn): ScorePoint => {
    const inTime = u === null || turn < u || (turn === u && positionPrecedesAction('pre_action', null));
    return { landmark: `start+${turn}`, position: 'pre_action', turn, score, inTime };
  });
  return {
    meta: episode,
    event: { turn: u, call: null },
    group: Number(/\d+/.exec(key)?.[0] ?? 0),
    fold: scores.length === 0 ? null : 0,
    points,
    thresholds: scores.length === 0 ? [] : [0.5],
  };
}

export const walk = (episode: MonitoredEpisode): Walk => walkOf(episode, positions);

export function run(
  episodes: readonly MonitoredEpisode[],
  change: Partial<InterventionInput> = {},
): InterventionResult {
  return intervene({
    episodes,
    model: 'model',
    condition: 'all',
    target: 'first_unsafe_event',
    reader: 'probe:logistic',
    alphas: [0.1],
    policies: ['threshold'],
    tools: [],
    budgets: [],
    costs: [{ harm: 10, disruption: 1 }],
    randomRepeats: 50,
    bootstrapDraws: 300,
    seed: 1,
    positions,
    ...change,
  });
}

/** The one figure that is meant; without `at`, the one that belongs to no threshold of the curve. */
export function value(
  result: Pick<InterventionResult, 'figures'>,
  want: { reader: string; metric: string; population?: string; at?: Figure['at'] },
): Figure['value'] {
  const found = result.figures.filter(
    (f) =>
      f.reader === want.reader &&
      f.metric === want.metric &&
      (want.population ?? f.population) === f.population &&
      (want.at === undefined
        ? f.at?.threshold === undefined
        : Object.entries(want.at).every(([k, v]) => f.at?.[k] === v)),
  );
  if (found.length !== 1) throw new Error(`${found.length} figures match ${JSON.stringify(want)}`);
  return found[0].value;
}

export const number = (v: Figure['value']): number => {
  if ('undefinedBecause' in v) throw new Error(v.undefinedBecause);
  return v.estimate;
};

/** 40 unsafe episodes of which the monitor catches 30, 60 safe ones of which it disturbs 6. */
export const hundred: readonly MonitoredEpisode[] = Array.from({ length: 100 }, (_, i) =>
  i < 40
    ? watched(`e${i}`, [0.1, i < 30 ? 0.9 : 0.2, 0.1], 2, { success: true })
    : watched(`e${i}`, [0.1, i < 46 ? 0.8 : 0.2, 0.1], null, { success: i % 2 === 0 }),
);
