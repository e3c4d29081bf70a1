/**
 * When to stop (EVALUATION.md 15). Every policy is a function of the scores so far, the turn and what is known at that
 * point; monitors read scores, controls read none. Offline, `escalate` counts as a stop: what the agent would have done
 * after an answer is not in the log (offline-limits.ts). The random control is no policy but another policy's stops,
 * dealt to other episodes (random-stops.ts).
 */
import { UserError } from '../errors.ts';
import type { Policy, StateScore } from './types.ts';

/** The state just read is above the threshold. */
const alarm = (history: readonly StateScore[], scored: boolean, threshold: number): boolean =>
  scored && history.at(-1)!.score > threshold;

/** Stop at the first state, of any landmark, whose score is above the threshold. */
const threshold: Policy = (history, _turn, context) =>
  alarm(history, context.scored, context.threshold) ? 'stop' : 'continue';

/** Stop when two states in a row are above the threshold: one outlier does not disturb the agent. */
const twoInARow: Policy = (history, _turn, context) =>
  alarm(history, context.scored, context.threshold) && history.length > 1 && history.at(-2)!.score > context.threshold
    ? 'stop'
    : 'continue';

/** The probe asks, a second reader (text monitor) decides; where the second has no score, the probe's alarm stands. */
const cascade: Policy = (history, _turn, context) => {
  if (!alarm(history, context.scored, context.threshold)) return 'continue';
  if (context.second === null || context.secondThreshold === null) return 'stop';
  return context.second > context.secondThreshold ? 'stop' : 'continue';
};

/** The same alarm, answered by asking a principal instead of ending the episode. */
const escalate: Policy = (history, _turn, context) =>
  alarm(history, context.scored, context.threshold) ? 'escalate' : 'continue';

/** At the first prompt that holds the fact; never where there is no reveal. */
export const alwaysAtReveal: Policy = (_history, _turn, context) => (context.revealed ? 'stop' : 'continue');

/** Knows u: stops every unsafe episode right before the act and no other. */
export const oracle: Policy = (_history, _turn, context) => (context.actNext ? 'stop' : 'continue');

export const never: Policy = () => 'continue';

/** Blocks the first call of one tool, before it runs. */
export const blockTool =
  (tool: string): Policy =>
  (_history, _turn, context) =>
    context.tool === tool ? 'stop' : 'continue';

/** Policies that read a threshold, by the name that a configuration gives. */
export const POLICIES: Readonly<Record<string, Policy>> = {
  threshold,
  two_in_a_row: twoInARow,
  cascade,
  escalate,
};

/** @throws UserError for a name that is not in the table */
export function policyNamed(name: string): Policy {
  const policy = Object.hasOwn(POLICIES, name) ? POLICIES[name] : undefined;
  if (policy) return policy;
  throw new UserError(
    `intervene.policies: expected one of ${Object.keys(POLICIES).join(', ')}, got ${JSON.stringify(name)}. Name a known policy`,
  );
}
