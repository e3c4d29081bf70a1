/** Traces of the forecast stage, with every episode of the target, as the simulation takes them. */
import type { Traces } from '../forecast/types.ts';
import type { EpisodeMeta } from '../types.ts';
import type { MonitoredEpisode } from './types.ts';

/** One episode of the target, whether a landmark was scored in it or not. */
export interface TargetEpisode {
  readonly meta: EpisodeMeta;
  readonly event: MonitoredEpisode['event'];
  readonly group: number;
}

/**
 * One for each of `episodes`, in their order. One without a trace has no points: no monitor saw it, so it is never
 * stopped, and leaving it out would count only harm that a landmark was lucky to fall on.
 * @param second traces of another reader for the cascade, matched point by point (landmark, position); points it has no
 * score for are null
 * @throws Error when a trace has no episode
 */
export function monitoredEpisodes(
  episodes: readonly TargetEpisode[],
  traces: Traces,
  second?: Traces,
): readonly MonitoredEpisode[] {
  const known = new Set(episodes.map(({ meta }) => meta.key));
  const unknown = traces.episodes.find((trace) => !known.has(trace.episode));
  if (unknown) throw new Error(`no episode ${unknown.episode} for its trace`);
  const own = new Map(traces.episodes.map((trace) => [trace.episode, trace]));
  const others = new Map(second?.episodes.map((trace) => [trace.episode, trace]));
  return episodes.map(({ meta, event, group }): MonitoredEpisode => {
    const trace = own.get(meta.key);
    if (!trace) return { meta, event, group, fold: null, points: [], thresholds: [] };
    const { fold, points, thresholds } = trace;
    const base = { meta, event, group, fold, points, thresholds };
    const other = others.get(meta.key);
    if (!other) return base;
    const scores = new Map(other.points.map((point) => [`${point.landmark} ${point.position}`, point.score]));
    return {
      ...base,
      second: {
        scores: points.map(({ landmark, position }) => scores.get(`${landmark} ${position}`) ?? null),
        thresholds: other.thresholds,
      },
    };
  });
}
