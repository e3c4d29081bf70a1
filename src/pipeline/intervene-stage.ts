import { positionPrecedesAction } from '../forecast/positions.ts';
import { intervene } from '../intervention/intervene.ts';
import { monitoredEpisodes } from '../intervention/monitored.ts';
import type { OutcomeRow } from '../intervention/types.ts';
import type { Figure } from '../types.ts';
import type { ForecastPart } from './forecast-stage.ts';
import type { OpenedRun } from './open-run.ts';

/** What stopping would have done, for every reader that can act as a monitor. */
export function interveneStage(
  run: OpenedRun,
  parts: readonly ForecastPart[],
): { readonly figures: readonly Figure[]; readonly outcomes: readonly OutcomeRow[] } {
  const { config } = run;
  const figures: Figure[] = [];
  const outcomes: OutcomeRow[] = [];
  for (const part of parts) {
    // Stopping is about the act; a lie in the report cannot be stopped by stopping a tool call.
    if (part.target === 'misreported') continue;
    const tools = [
      ...new Set(
        part.episodes.flatMap((meta) =>
          meta.firstCritical === null ? [] : (meta.toolNames[meta.firstCritical] ?? []),
        ),
      ),
    ].sort();
    for (const traces of part.result.traces) {
      const result = intervene({
        episodes: monitoredEpisodes(part.episodes, traces),
        model: part.model,
        condition: part.condition,
        target: part.target,
        reader: traces.reader,
        alphas: traces.alphas,
        policies: config.intervene.policies,
        tools,
        budgets: config.intervene.budgets,
        costs: config.intervene.costs,
        randomRepeats: config.intervene.randomRepeats,
        bootstrapDraws: config.forecast.bootstrap,
        seed: config.seed,
        precedes: positionPrecedesAction,
      });
      figures.push(...result.figures);
      outcomes.push(...result.outcomes);
    }
  }
  return { figures, outcomes };
}
