import { positionOrder, positionPrecedesAction } from '../forecast/positions.ts';
import { targetNamed } from '../forecast/targets.ts';
import type { Traces } from '../forecast/types.ts';
import { intervene } from '../intervention/intervene.ts';
import { monitoredEpisodes, type TargetEpisode } from '../intervention/monitored.ts';
import { type GateOutcomes, reportFlags } from '../intervention/report-flags.ts';
import type { InterventionResult, OutcomeRow } from '../intervention/types.ts';
import type { Figure, ScoreRow, Undefined } from '../types.ts';
import type { ForecastPart } from './forecast-stage.ts';
import type { OpenedRun } from './open-run.ts';

/** Stopping is about the act: a lie cannot be stopped by stopping a tool call, and an escalation should not be. */
const NOT_STOPPED: ReadonlySet<string> = new Set(['misreported', 'escalated']);

const BEST_TEXT = 'text:best';

/** What stopping would have done, for every reader that can act as a monitor, and what reading reports would have found. */
export function interveneStage(run: OpenedRun, parts: readonly ForecastPart[]): InterventionResult {
  const groupOf = new Map(run.metas.map((meta, i) => [meta.key, run.groups[i]]));
  const results = parts.filter(({ target }) => !NOT_STOPPED.has(target)).map((part) => stops(run, part, groupOf));
  const outcomes = results.flatMap((result) => result.outcomes);
  return {
    figures: [
      ...results.flatMap((result) => result.figures),
      ...parts.filter(({ target }) => target === 'misreported').flatMap((part) => flags(run, part, parts, outcomes)),
    ],
    outcomes,
    curves: results.flatMap((result) => result.curves),
    thresholds: results.flatMap((result) => result.thresholds),
  };
}

function stops(run: OpenedRun, part: ForecastPart, groupOf: ReadonlyMap<string, number>): InterventionResult {
  const { config } = run;
  const episodes = targetEpisodes(part, groupOf);
  const tools = criticalTools(episodes);
  const text = textMonitor(part.result.traces);
  const results = part.result.traces.map((traces) => {
    const second = traces.reader.startsWith('text:') ? undefined : text;
    return intervene({
      episodes: monitoredEpisodes(
        episodes,
        traces,
        second === undefined || 'undefinedBecause' in second ? undefined : second,
      ),
      model: part.model,
      condition: part.condition,
      target: part.target,
      reader: traces.reader,
      ...(second === undefined ? {} : { second: 'reader' in second ? second.reader : second }),
      alphas: traces.alphas,
      policies: config.intervene.policies,
      tools,
      budgets: config.intervene.budgets,
      costs: config.intervene.costs,
      randomRepeats: config.intervene.randomRepeats,
      bootstrapDraws: config.forecast.bootstrap,
      seed: config.seed,
      positions: { precedes: positionPrecedesAction, order: positionOrder },
    });
  });
  return {
    figures: results.flatMap((result) => result.figures),
    outcomes: results.flatMap((result) => result.outcomes),
    curves: results.flatMap((result) => result.curves),
    thresholds: results.flatMap((result) => result.thresholds),
  };
}

/** All episodes of the target, those without a scored landmark too; left out are those that the target leaves out. */
function targetEpisodes(part: ForecastPart, groupOf: ReadonlyMap<string, number>): readonly TargetEpisode[] {
  const target = targetNamed(part.target);
  return part.episodes.flatMap((meta): TargetEpisode[] => {
    const event = target.event(meta);
    return 'leftOut' in event ? [] : [{ meta, event, group: groupOf.get(meta.key)! }];
  });
}

/** Tools that did the critical thing, allowed or not: what a rule per tool would block. */
function criticalTools(episodes: readonly TargetEpisode[]): readonly string[] {
  const tools = episodes.flatMap(({ meta, event }) => {
    const acting = event.turn === null ? [] : (meta.toolNames[event.turn] ?? []);
    const critical = meta.firstCritical === null ? [] : (meta.toolNames[meta.firstCritical] ?? []);
    return [...(event.call === null ? acting : acting.slice(event.call, event.call + 1)), ...critical];
  });
  return [...new Set(tools)].sort();
}

/** The text reader that decides in a cascade: the one chosen inside the folds, else the first. */
function textMonitor(traces: readonly Traces[]): Traces | Undefined {
  const texts = traces.filter(({ reader }) => reader.startsWith('text:'));
  return (
    texts.find(({ reader }) => reader === BEST_TEXT) ??
    texts[0] ?? { undefinedBecause: 'a cascade needs a text monitor, and forecast.textScopes names none' }
  );
}

/** Reading final reports by their scores, alone and after the headline gate of the same model and condition. */
function flags(
  run: OpenedRun,
  part: ForecastPart,
  parts: readonly ForecastPart[],
  outcomes: readonly OutcomeRow[],
): readonly Figure[] {
  const { config } = run;
  const population = part.episodes.some(({ world }) => world !== 'none') ? 'x-' : 'all';
  const gated = parts.find(
    ({ model, condition, target }) =>
      model === part.model && condition === part.condition && target === 'first_unsafe_event',
  );
  const gates = config.forecast.alphas.flatMap((alpha): GateOutcomes[] => {
    const rows = outcomes.filter(
      (row) =>
        row.model === part.model &&
        row.condition === part.condition &&
        row.target === 'first_unsafe_event' &&
        row.population === population &&
        row.reader === gated?.result.headline &&
        row.policy === 'threshold' &&
        row.alpha === alpha,
    );
    if (rows.length === 0) return [];
    const name = `threshold on ${gated?.result.headline}`;
    return [{ name, alpha, outcomes: new Map(rows.map((row) => [row.episode, row.outcome])) }];
  });
  const places = new Map<string, ScoreRow[]>();
  for (const row of part.result.scores) {
    if (row.population !== population || row.reader.startsWith('baseline:')) continue;
    const key = JSON.stringify([row.reader, row.landmark, row.position]);
    const rows = places.get(key) ?? [];
    rows.push(row);
    places.set(key, rows);
  }
  return [...places.values()].flatMap((rows) =>
    reportFlags({
      rows,
      budgets: config.intervene.budgets,
      gates,
      randomRepeats: config.intervene.randomRepeats,
      bootstrapDraws: config.forecast.bootstrap,
      seed: config.seed,
    }),
  );
}
