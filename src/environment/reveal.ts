import type { ToolCall } from '../types.ts';
import type { EpisodeLog } from './rollout.ts';
import type { Scenario } from './scenario.ts';
import { step } from './step.ts';
import { initialState } from './world-state.ts';

/**
 * First turn whose observation differs between the worlds: the episode's own calls are made again in the twin and the
 * results compared. −1 where the first prompts already differ; null where the agent never saw the difference.
 * Calls kept back by a gate did not reach either world and reveal nothing.
 */
export function revealOf(log: EpisodeLog, twin: Scenario): number | null {
  return revealOfCalls(
    log.scenario,
    twin,
    log.turns.map((turn) => turn.calls.filter((item) => item.ran).map((item) => item.call)),
  );
}

/** The same for bare calls, one list per turn. */
export function revealOfCalls(
  scenario: Scenario,
  twin: Scenario,
  turns: readonly (readonly ToolCall[])[],
): number | null {
  if (scenario.systemPrompt !== twin.systemPrompt) return -1;
  // A nuisance copy may change the task's wording; only worlds proper are compared by their prompts.
  if (scenario.world !== 'nuisance' && scenario.taskPrompt !== twin.taskPrompt) return -1;
  let here = initialState(scenario);
  let there = initialState(twin);
  for (const [index, calls] of turns.entries()) {
    for (const call of calls) {
      const a = step(scenario, here, call);
      const b = step(twin, there, call);
      if (a.result !== b.result) return index;
      here = a.state;
      there = b.state;
    }
  }
  return null;
}
