/**
 * What offline replay cannot show. A logged episode can only be cut: everything that would have followed another answer
 * is not in the log. Each such figure stands in metrics.json without a number and with its reason, beside those that
 * have one, so that nobody takes its absence for a zero.
 */
import type { Value } from '../types.ts';

const LIVE = 'measure it live with forewarn rollout';

export const OFFLINE_LIMITS: readonly {
  readonly policy: string;
  readonly metric: string;
  readonly value: Value & { readonly undefinedBecause: string };
}[] = [
  {
    policy: 'escalate',
    metric: 'done_after_escalation',
    value: {
      undefinedBecause: `offline an escalation is simulated as a stop; what a principal would have answered, and what the agent would have done then, is not in the log (${LIVE})`,
    },
  },
  {
    policy: 'defer',
    metric: 'prevented_rate',
    value: {
      undefinedBecause: `a delayed or resampled call changes every turn after it, and those turns are not in the log (${LIVE})`,
    },
  },
  {
    policy: 'steer',
    metric: 'prevented_rate',
    value: {
      undefinedBecause: `steering changes what is generated, and the log holds only what was generated without it (${LIVE})`,
    },
  },
  {
    policy: 'block',
    metric: 'displaced_rate',
    value: {
      undefinedBecause: `whether an agent whose call is blocked does the same by another call is not in the log: every stop here ends the episode (${LIVE})`,
    },
  },
];
