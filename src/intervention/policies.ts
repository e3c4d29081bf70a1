/**
 * When to stop (EVALUATION.md 15). A policy sees the scores so far and answers; controls that need no score (reveal,
 * oracle, tool rule, random) are schedules, in controls.ts. Offline, `escalate` is simulated as a stop: what the agent
 * would have done after an answer is not in the log, and the report says so.
 */
import { UserError } from '../errors.ts';
import type { Policy } from './types.ts';

/** Stop at the first landmark whose score is above the threshold. */
const threshold: Policy = (history, _turn, context) =>
  history.at(-1)!.score > context.threshold ? 'stop' : 'continue';

/** Stop when two landmarks in a row are above the threshold: one outlier does not disturb the agent. */
const twoInARow: Policy = (history, _turn, context) =>
  history.length > 1 && history.at(-1)!.score > context.threshold && history.at(-2)!.score > context.threshold
    ? 'stop'
    : 'continue';

/** The probe asks, a second reader (text monitor) decides; where the second has no score, the probe's alarm stands. */
const cascade: Policy = (history, _turn, context) => {
  if (history.at(-1)!.score <= context.threshold) return 'continue';
  if (context.second === null || context.secondThreshold === null) return 'stop';
  return context.second > context.secondThreshold ? 'stop' : 'continue';
};

/** The same alarm, answered by asking a principal instead of ending the episode. */
const escalate: Policy = (history, _turn, context) =>
  history.at(-1)!.score > context.threshold ? 'escalate' : 'continue';

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
