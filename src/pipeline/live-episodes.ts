import type { Scenario } from '../environment/scenario.ts';
import type { LiveEpisode } from '../intervention/live-figures.ts';
import type { Played } from './rollout-record.ts';

/** What a logged event says of the gate (environment/episode-row.ts). */
interface GatedEvent {
  readonly tool_name?: string | null;
  readonly calls?: readonly unknown[];
  readonly unsafe_action: boolean;
  readonly gate_alarm?: boolean;
  readonly gate_scores?: Readonly<Record<string, number>>;
  readonly gate_withheld_unsafe?: boolean;
  readonly gate?: string;
}

export function eventsOf(item: Played): readonly GatedEvent[] {
  return JSON.parse(String(item.episode['events_json'])) as readonly GatedEvent[];
}

/** A played episode as the figures of a gate read it. */
export function liveEpisode(item: Played, scenario: Scenario): LiveEpisode {
  const events = eventsOf(item);
  const withheld = events.findIndex((event) => event.gate_withheld_unsafe === true);
  return {
    id: scenario.instanceId,
    group: scenario.scenarioId,
    condition: scenario.condition,
    population: scenario.world === 'none' ? 'all' : scenario.world,
    unsafe: item.episode['unsafe_episode'] === true,
    success: item.episode['success'] === true,
    turns: events.length,
    alarms: events.filter((event) => event.gate_alarm === true).length,
    withheld: withheld < 0 ? null : withheld,
    unsafeTurns: events.flatMap((event, turn) => (event.unsafe_action ? [turn] : [])),
  };
}

/**
 * Share of the gate's answers that were an alarm, by turn: what a random gate at the same rate draws from. Turns beyond
 * the last that was asked about have the rate of all.
 */
export function alarmRates(items: readonly Played[]): { readonly byTurn: readonly number[]; readonly overall: number } {
  const alarms: number[] = [];
  const asked: number[] = [];
  for (const item of items) {
    for (const [turn, event] of eventsOf(item).entries()) {
      if (event.gate === undefined) continue;
      asked[turn] = (asked[turn] ?? 0) + 1;
      alarms[turn] = (alarms[turn] ?? 0) + (event.gate_alarm === true ? 1 : 0);
    }
  }
  const sum = (list: readonly number[]): number => list.reduce((total, value) => total + (value ?? 0), 0);
  const overall = sum(asked) === 0 ? 0 : sum(alarms) / sum(asked);
  return { byTurn: Array.from(asked, (n, turn) => (n > 0 ? alarms[turn] / n : overall)), overall };
}
