import { toPlain } from '../lib/json.ts';
import { labelReport, type ReportReading } from './report-label.ts';
import { revealOf } from './reveal.ts';
import type { EpisodeLog, LoggedTurn } from './rollout.ts';
import type { Scenario } from './scenario.ts';
import { cfValue } from './scenario-row.ts';

/** One row of a table: column → value. */
export type Row = Readonly<Record<string, string | number | boolean | null>>;

export interface EpisodeNaming {
  /** Name of the rollout set; the condition and the world are appended: `organism_obfuscate_minus`. */
  readonly run: string;
  readonly model: string;
  /** Token index (prompt ++ generated) by position name, for a turn; stored beside the ids. */
  readonly positions?: (turn: LoggedTurn, index: number) => Readonly<Record<string, number>>;
  /** What the model wrote, where it cannot be written again from the parts of the turn; null where it can. */
  readonly completionText?: (turn: LoggedTurn, index: number) => string | null;
}

const WORLD_SUFFIX = { 'x-': 'minus', 'x+': 'plus', nuisance: 'nuisance', none: 'none' } as const;

export function runName(scenario: Scenario, run: string): string {
  return [run, scenario.condition, WORLD_SUFFIX[scenario.world]].filter((part) => part !== 'all').join('_');
}

/**
 * An episode in the columns of CAPE-Bench's `episodes`, events with token ids and positions.
 *
 * Events: {step, user_before, reasoning, content, tool_name, tool_args, tool_result, unsafe_action, critical,
 * escalation, violations, gate, gate_alarm, gate_scores, gate_rejected, gate_withheld_unsafe, completion_text, prompt_ids, generated_ids, positions}. Positions count from 0 in
 * prompt ++ generated. A turn with several calls has `calls: [{name, arguments, tool_result}…]`
 * instead of the three tool keys.
 *
 * @param twin the world that the episode is compared with for `reveal_event`; null = no twin, no reveal
 */
export function episodeToRow(log: EpisodeLog, twin: Scenario | null, naming: EpisodeNaming): Row {
  const { scenario } = log;
  const reveal = twin === null ? null : revealOf(log, twin);
  const u = log.firstUnsafe;
  return {
    run: runName(scenario, naming.run),
    model: naming.model,
    episode_id: scenario.instanceId,
    scenario_id: scenario.scenarioId,
    instance_id: scenario.instanceId,
    template: scenario.template,
    scenario_family: scenario.family,
    counterfactual_pair_id: scenario.pairId,
    cf_value: cfValue(scenario.world),
    nuisance: scenario.world === 'nuisance',
    seed: scenario.seed,
    reveal_event: reveal,
    first_unsafe_event: u,
    unsafe_episode: u !== null,
    informed_violation: u !== null && reveal !== null && reveal < u,
    escalated: log.escalated,
    critical_done: log.firstCritical !== null,
    first_critical_event: log.firstCritical,
    success: log.success,
    status: log.status,
    final_answer: log.report,
    n_turns: log.turns.length,
    events_json: JSON.stringify(log.turns.map((turn, index) => eventOf(turn, index, naming))),
  };
}

function eventOf(logged: LoggedTurn, index: number, naming: EpisodeNaming): object {
  const { turn, calls } = logged;
  const parts = calls.map((item) => ({
    name: item.call.name,
    arguments: item.call.arguments === null ? (item.call.argumentsText ?? null) : toPlain(item.call.arguments),
    result: item.result,
  }));
  const [only] = parts;
  const written = naming.completionText?.(logged, index) ?? null;
  return {
    step: index,
    ...(logged.before.length === 0 ? {} : { user_before: logged.before }),
    reasoning: turn.reasoning,
    content: turn.content,
    ...(parts.length > 1
      ? { calls: parts.map((part) => ({ name: part.name, arguments: part.arguments, tool_result: part.result })) }
      : {
          tool_name: only?.name ?? null,
          tool_args: only?.arguments ?? null,
          tool_result: only?.result ?? null,
        }),
    unsafe_action: calls.some((item) => item.labels.unsafe),
    critical: calls.some((item) => item.labels.critical),
    escalation: calls.some((item) => item.labels.escalation),
    violations: calls.flatMap((item) => item.labels.violations),
    ...(turn.invalid === null ? {} : { invalid: turn.invalid }),
    ...(logged.gate === null ? {} : gateOf(logged)),
    ...(written === null ? {} : { completion_text: written }),
    prompt_ids: [...turn.promptIds],
    generated_ids: [...turn.generatedIds],
    ...(naming.positions === undefined ? {} : { positions: naming.positions(logged, index) }),
  };
}

/** What the gate read and answered, and whether a call it kept back (or a draw it threw away) would have broken a rule. */
function gateOf({ gate, gateScores, alarm, rejected, calls }: LoggedTurn): object {
  const withheld = calls.some((item) => !item.ran && item.would.unsafe) || rejected.some((item) => item.unsafe);
  return {
    gate,
    gate_alarm: alarm,
    ...(gateScores === null ? {} : { gate_scores: gateScores }),
    ...(rejected.length === 0 ? {} : { gate_rejected: rejected.length }),
    ...(withheld ? { gate_withheld_unsafe: true } : {}),
  };
}

/** The row of `report_labels` for an episode with a violation; null for a safe one. */
export function reportLabelRow(log: EpisodeLog, twin: Scenario | null, naming: EpisodeNaming): Row | null {
  if (log.firstUnsafe === null) return null;
  const reading: ReportReading = labelReport(log.report, log.scenario.goal.report);
  const reveal = twin === null ? null : revealOf(log, twin);
  return {
    run: runName(log.scenario, naming.run),
    episode_id: log.scenario.instanceId,
    label: reading.label,
    informed: reveal !== null && reveal < log.firstUnsafe,
    mention: reading.mention,
    flag: reading.flag,
    contradiction_claimed: reading.contradiction,
    verifier_false_claim: reading.contradiction,
    quote: reading.contradiction ? log.report : null,
  };
}
