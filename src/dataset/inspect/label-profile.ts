import { isJsonNumber } from '../../lib/json.ts';
import type { EpisodeField } from '../../config/mapping-fields.ts';
import type { JsonValue } from '../../types.ts';
import { isPlain } from './event-profile.ts';

/** What the label columns say together with the logs: the evidence for how a mapping has to read them. */
export interface LabelProfile {
  episodes: number;
  unsafe: number;
  /** Episodes by the column's value, unsafe ones apart. */
  readonly byColumn: ReadonlyMap<EpisodeField, Map<string, { episodes: number; unsafe: number }>>;
  /** first_unsafe_event against the first unsafe_action of the events. */
  readonly steps: {
    compared: number;
    /** They agree if steps count from 0, or from 1. */
    fromZero: number;
    fromOne: number;
    /** Labels outside the log if steps count from 0. */
    outside: number;
    /** If they count messages, and the step is a message of the assistant. */
    assistantMessage: number;
  };
  /** −1 in each event column. */
  readonly minusOne: Map<string, number>;
  /** Pairs with one and with several values of cf_value. */
  readonly pairs: Map<string, number>;
  readonly keys: Set<string>;
  duplicates: number;
  /** Ids that stand twice in one run. */
  readonly duplicateIds: string[];
}

const COUNTED = ['model', 'run', 'cf_value', 'template', 'scenario_family', 'status', 'nuisance', 'set'] as const;
const EVENT_COLUMNS = ['reveal_event', 'first_unsafe_event', 'first_critical_event'] as const;
const MAX_COUNTED = 500;
/** Ids and pairs are kept to find duplicates and twins; past this many they are no longer looked for. */
const MAX_IDS = 2_000_000;

export function createLabelProfile(): LabelProfile {
  return {
    episodes: 0,
    unsafe: 0,
    byColumn: new Map(COUNTED.map((column) => [column, new Map()])),
    steps: { compared: 0, fromZero: 0, fromOne: 0, outside: 0, assistantMessage: 0 },
    minusOne: new Map(),
    pairs: new Map(),
    keys: new Set(),
    duplicates: 0,
    duplicateIds: [],
  };
}

const text = (value: JsonValue | undefined): string | null =>
  typeof value === 'string'
    ? value
    : typeof value === 'boolean'
      ? String(value)
      : isJsonNumber(value)
        ? value.lexeme
        : null;

function integer(value: JsonValue | undefined): number | null {
  const written = text(value);
  const number = written === null || written === '' ? Number.NaN : Number(written);
  return Number.isSafeInteger(number) ? number : null;
}

const isTrue = (value: unknown): boolean => value === true || value === 1 || value === 'true' || value === 'True';

function addSteps(profile: LabelProfile, u: number, events: readonly unknown[]): void {
  const { steps } = profile;
  if (u >= events.length) steps.outside += 1;
  const at = events[u];
  if (isPlain(at) && at['role'] === 'assistant') steps.assistantMessage += 1;
  const first = events.findIndex((event) => isPlain(event) && isTrue(event['unsafe_action'] ?? event['unsafe']));
  if (first < 0) return;
  steps.compared += 1;
  if (first === u) steps.fromZero += 1;
  if (first === u - 1) steps.fromOne += 1;
}

/** CAPE-Bench's bit for each world of a pair. */
const bit = (value: string): number => (value === 'safe' ? 1 : value === 'unsafe' ? 2 : 4);

export function addLabels(
  profile: LabelProfile,
  value: (field: EpisodeField) => JsonValue | undefined,
  events: readonly unknown[] | null,
): void {
  profile.episodes += 1;
  const u = integer(value('first_unsafe_event'));
  const flag = value('unsafe_episode');
  const unsafe = flag === undefined || flag === null ? u !== null && u >= 0 : isTrue(flag) || text(flag) === '1';
  if (unsafe) profile.unsafe += 1;
  for (const [column, counts] of profile.byColumn) {
    const cell = text(value(column));
    if (cell === null) continue;
    const known = counts.get(cell);
    if (known !== undefined) {
      known.episodes += 1;
      if (unsafe) known.unsafe += 1;
    } else if (counts.size < MAX_COUNTED) counts.set(cell, { episodes: 1, unsafe: unsafe ? 1 : 0 });
  }
  for (const column of EVENT_COLUMNS)
    if (integer(value(column)) === -1) profile.minusOne.set(column, (profile.minusOne.get(column) ?? 0) + 1);
  if (u !== null && u >= 0 && events !== null) addSteps(profile, u, events);
  const pair = text(value('counterfactual_pair_id'));
  const world = text(value('cf_value'));
  if (pair !== null && world !== null && profile.pairs.size < MAX_IDS)
    profile.pairs.set(pair, (profile.pairs.get(pair) ?? 0) | bit(world));
  const id = text(value('episode_id'));
  if (id !== null && profile.keys.size < MAX_IDS) {
    const key = `${text(value('run')) ?? ''}\u0000${id}`;
    if (profile.keys.has(key)) {
      profile.duplicates += 1;
      if (profile.duplicateIds.length < 5) profile.duplicateIds.push(id);
    } else profile.keys.add(key);
  }
}
