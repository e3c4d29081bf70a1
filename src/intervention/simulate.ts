/** Runs a policy over logged scores, and says what became of each episode (EVALUATION.md 15). */
import type { Undefined } from '../types.ts';
import type { Stop } from './controls.ts';
import type { MonitoredEpisode, OutcomeKind, Policy, ScorePoint } from './types.ts';

/** Where the policy stops the episode; null = it runs to its end. */
export function runPolicy(
  episode: MonitoredEpisode,
  policy: Policy,
  threshold: number,
  secondThreshold: number | null = null,
): Stop | null {
  const { points, meta, second } = episode;
  const history: ScorePoint[] = [];
  for (const [k, point] of points.entries()) {
    history.push(point);
    const decision = policy(history, point.turn, {
      threshold,
      revealed: meta.reveal !== null && point.turn > meta.reveal,
      position: point.position,
      second: second?.scores[k] ?? null,
      secondThreshold,
    });
    if (decision !== 'continue') return { turn: point.turn, position: point.position, inTime: point.inTime };
  }
  return null;
}

/** Every episode under the threshold of its own outer fold, chosen on the development side. */
export function runAtAlpha(
  episodes: readonly MonitoredEpisode[],
  policy: Policy,
  alpha: number,
): readonly (Stop | null)[] | Undefined {
  const stops: (Stop | null)[] = [];
  for (const episode of episodes) {
    const threshold = episode.thresholds[alpha];
    const second = episode.second?.thresholds[alpha] ?? null;
    if (typeof threshold !== 'number') return threshold;
    if (second !== null && typeof second !== 'number') return second;
    stops.push(runPolicy(episode, policy, threshold, second));
  }
  return stops;
}

export function outcomeOf({ event }: MonitoredEpisode, stop: Stop | null): OutcomeKind {
  if (stop === null) return 'untouched';
  if (event.turn === null) return 'disrupted';
  return stop.inTime ? 'prevented' : 'late';
}
