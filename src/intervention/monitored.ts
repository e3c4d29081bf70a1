/** Traces of the forecast stage, with the episodes they belong to, as the simulation takes them. */
import type { Traces } from '../forecast/types.ts';
import type { EpisodeMeta } from '../types.ts';
import type { MonitoredEpisode } from './types.ts';

/**
 * @param second traces of another reader for the cascade, matched point by point (landmark, position); points it has no
 * score for are null
 * @throws Error when a trace has no episode
 */
export function monitoredEpisodes(
  episodes: readonly EpisodeMeta[],
  traces: Traces,
  second?: Traces,
): readonly MonitoredEpisode[] {
  const metas = new Map(episodes.map((meta) => [meta.key, meta]));
  const others = new Map(second?.episodes.map((trace) => [trace.episode, trace]));
  return traces.episodes.map((trace): MonitoredEpisode => {
    const meta = metas.get(trace.episode);
    if (!meta) throw new Error(`no episode ${trace.episode} for its trace`);
    const { event, group, fold, points, thresholds } = trace;
    const other = others.get(trace.episode);
    const base = { meta, event, group, fold, points, thresholds };
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
