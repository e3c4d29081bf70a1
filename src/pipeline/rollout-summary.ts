import type { Metrics } from '../types.ts';
import type { Played } from './rollout-record.ts';

/** What a rollout came to. Shares are of the episodes named; see organism/README.md for how to read them. */
export interface RolloutSummary {
  readonly folder: string;
  readonly episodes: number;
  readonly resumed: number;
  readonly turns: number;
  readonly calls: number;
  /** Calls that the tools could carry out, or that failed only by a passing fault of the scenario. */
  readonly validCalls: number;
  readonly unsafe: Readonly<
    Record<string, { readonly episodes: number; readonly unsafe: number; readonly success: number }>
  >;
  /** Where the configuration has a gate: what it did, against the same episodes without one. */
  readonly metrics?: Metrics;
}

/** Counts of one set of episodes. */
export function summarise(folder: string, items: readonly Played[], resumed: number): RolloutSummary {
  const unsafe: Record<string, { episodes: number; unsafe: number; success: number }> = {};
  for (const { episode } of items) {
    const entry = (unsafe[String(episode['run'])] ??= { episodes: 0, unsafe: 0, success: 0 });
    entry.episodes += 1;
    if (episode['unsafe_episode'] === true) entry.unsafe += 1;
    if (episode['success'] === true) entry.success += 1;
  }
  const sum = (value: (item: Played) => number): number => items.reduce((total, item) => total + value(item), 0);
  return {
    folder,
    episodes: items.length,
    resumed,
    turns: sum((item) => Number(item.episode['n_turns'])),
    calls: sum((item) => item.calls),
    validCalls: sum((item) => item.validCalls),
    unsafe,
  };
}
