/**
 * The random control (EVALUATION.md 15): number and timing of a policy's stops are kept, but not which episodes they hit.
 */
import { shuffle } from '../lib/rng.ts';
import type { Rng } from '../types.ts';
import { type Stop, stopAt } from './simulate.ts';
import type { MonitoredEpisode, PositionRules } from './types.ts';

/**
 * The same stops dealt to other episodes of the same template. A stop that falls past the end of the episode it is
 * dealt to is no stop, so the control never stops more often.
 */
export function permuteStops(
  episodes: readonly MonitoredEpisode[],
  stops: readonly (Stop | null)[],
  positions: PositionRules,
  rng: Rng,
): readonly (Stop | null)[] {
  const templates = new Map<string, number[]>();
  episodes.forEach(({ meta }, i) => {
    const template = meta.template ?? '';
    const members = templates.get(template) ?? [];
    members.push(i);
    templates.set(template, members);
  });
  const dealt: (Stop | null)[] = episodes.map(() => null);
  for (const members of templates.values()) {
    const order = shuffle([...members], rng);
    members.forEach((to, k) => {
      const stop = stops[order[k]];
      if (stop) dealt[to] = stopAt(episodes[to], stop.turn, stop.position, positions);
    });
  }
  return dealt;
}
