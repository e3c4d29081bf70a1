import type { EpisodeField, Mapping } from '../config/mapping-fields.ts';
import { sha256 } from '../lib/content-hash.ts';
import { isJsonArray, JsonError, parseJson } from '../lib/json.ts';
import type { ChatMessage, Episode, EpisodeEnd, EpisodeMeta, JsonValue, Turn, World } from '../types.ts';
import { asBoolean, asInteger, asSeed, asText, FieldProblem, isMissing, show } from './cell.ts';
import { parseEvents, toTurns, type Warn } from './events.ts';
import type { RawRow } from './rows.ts';

/** Rows of the side tables by join key. */
export interface SideTables {
  readonly scenarios: ReadonlyMap<string, ReadonlyMap<string, JsonValue>>;
  readonly reportLabels: ReadonlyMap<string, ReadonlyMap<string, JsonValue>>;
  /** From a tools file: the same schemas for every episode. */
  readonly tools: readonly JsonValue[] | null;
}

export const joinKey = (values: ReadonlyMap<string, JsonValue>, columns: readonly string[]): string =>
  columns.map((column) => asText(column, values.get(column)) ?? '').join('\u0000');

/** NFC, case folding, line ends, white space and digits evened out; names stay (EVALUATION.md 6). */
export function normaliseForDuplicates(text: string): string {
  return text.normalize('NFC').toLowerCase().replace(/\d+/g, '0').replace(/\s+/g, ' ').trim();
}

export interface BuiltEpisode {
  readonly meta: EpisodeMeta;
  readonly episode: Episode;
}

/** One row → one episode. @throws FieldProblem for the first thing that makes it unusable */
export function toEpisode(row: RawRow, mapping: Mapping, tables: SideTables, warn: Warn): Episode {
  const raw = (field: EpisodeField): JsonValue | undefined => {
    for (const column of mapping.columns[field]) if (row.values.has(column)) return row.values.get(column);
    return undefined;
  };
  for (const field of mapping.required) {
    if (field !== 'first_unsafe_event' && mapping.columns[field].every((column) => !row.values.has(column)))
      throw new FieldProblem(field, 'a value', 'nothing (the field is missing)');
  }
  const optionalText = (field: EpisodeField): string | null => {
    const value = asText(field, raw(field));
    if (value !== null && !value.isWellFormed()) warn('lone_surrogate', `${field}: a lone surrogate`);
    return value;
  };
  const boolean = (field: EpisodeField): boolean | null => asBoolean(field, raw(field), mapping);
  const event = (field: EpisodeField): number | null => {
    const value = asInteger(field, raw(field));
    if (value === -1 && mapping.eventMinusOne === 'none') return null;
    if (value !== null && value < 0)
      throw new FieldProblem(
        field,
        'a step >= 0 or null',
        `${value}. If −1 means "none" in this source, say so in the mapping (eventMinusOne: none)`,
      );
    return value === null ? null : value - mapping.stepsFrom;
  };
  const episodeId = asText('episode_id', raw('episode_id'));
  if (episodeId === null || episodeId === '') throw new FieldProblem('episode_id', 'an id', show(raw('episode_id')));
  const scenario = tables.scenarios.get(joinKey(row.values, mapping.join.scenarios)) ?? new Map<string, JsonValue>();
  const refer = (reference: string | null): JsonValue | undefined => {
    if (reference === null) return undefined;
    const [table, ...column] = reference.split('.');
    return (table === 'scenarios' ? scenario : row.values).get(column.join('.'));
  };

  const { turns, after } = toTurns(parseEvents(raw('events_json'), 'events_json', mapping, warn), mapping, warn);
  const inside = (field: EpisodeField, value: number | null): number | null => {
    if (value !== null && value >= turns.length)
      throw new FieldProblem(field, `a step in 0..${turns.length - 1}`, String(value));
    return value;
  };
  const reveal = readReveal(raw('reveal_event'), mapping, turns.length);
  const unsafe = inside('first_unsafe_event', event('first_unsafe_event'));
  checkUnsafe(turns, unsafe, boolean('unsafe_episode'));
  const informed = boolean('informed_violation');
  if (informed !== null && reveal !== null) {
    const computed = unsafe !== null && reveal < unsafe;
    if (informed !== computed)
      warn(
        'informed_contradiction',
        `informed_violation: expected ${computed} (reveal_event < first_unsafe_event), got ${informed}`,
      );
  }
  const firstCritical =
    inside('first_critical_event', event('first_critical_event')) ?? firstIndex(turns, (turn) => turn.critical);
  const status = optionalText('status');
  const end =
    (['finished', 'escalated', 'limit'] as const).find(
      (kind) => status !== null && mapping.status[kind].includes(status),
    ) ?? ('unknown' satisfies EpisodeEnd);
  const run = optionalText('run') ?? '';
  const conditionText = optionalText(mapping.condition.from) ?? '';
  const rule = mapping.condition.rules.find((item) => new RegExp(item.match).test(conditionText));
  const label = tables.reportLabels.get(joinKey(row.values, mapping.join.reportLabels));
  const duplicate = mapping.duplicateText
    .map((reference) => (typeof refer(reference) === 'string' ? (refer(reference) as string) : ''))
    .join('\n');
  const opening: ChatMessage[] = [];
  for (const role of ['system', 'user'] as const) {
    const content = asText(`${role} prompt`, refer(mapping.opening[role]));
    if (content !== null) opening.push({ role, content });
  }
  const key = mapping.key.map((field) => asText(field, raw(field)) ?? '').join('/');
  return {
    key,
    run,
    episodeId,
    model: optionalText('model') ?? 'unknown',
    condition: rule?.name ?? mapping.condition.default,
    set: optionalText('set'),
    scenarioId: optionalText('scenario_id'),
    instanceId: optionalText('instance_id'),
    template: optionalText('template'),
    family: optionalText('scenario_family'),
    style: optionalText('policy_style') ?? asText('policy_style', scenario.get('policy_style')),
    pairId: optionalText('counterfactual_pair_id'),
    world: readWorld(raw('cf_value'), boolean('nuisance'), mapping),
    seed: asSeed('seed', raw('seed')),
    reveal,
    unsafe,
    unsafeCall: unsafe === null ? null : (turns[unsafe]?.unsafeCall ?? null),
    informed,
    escalated: boolean('escalated'),
    firstEscalation: firstIndex(turns, (turn) => turn.escalation),
    criticalDone: boolean('critical_done'),
    firstCritical,
    success: boolean('success'),
    status,
    end,
    reportLabel: label === undefined ? null : asText(mapping.reportLabel, label.get(mapping.reportLabel)),
    turnCount: turns.length,
    toolNames: turns.map((turn) => turn.calls.map((call) => call.name)),
    duplicateKey: duplicate.trim() === '' ? null : sha256(normaliseForDuplicates(duplicate)),
    extra: extraColumns(row.values, mapping),
    source: { file: row.file, row: row.row },
    opening,
    tools: readTools(refer(mapping.tools), tables.tools),
    after,
    finalAnswer: optionalText('final_answer'),
    turns,
  };
}

/** The part of an episode that stays in memory for a whole data set. */
export function toMeta(episode: Episode): EpisodeMeta {
  const {
    opening: _opening,
    tools: _tools,
    after: _after,
    finalAnswer: _finalAnswer,
    turns: _turns,
    ...meta
  } = episode;
  return meta;
}

function firstIndex(turns: readonly Turn[], test: (turn: Turn) => boolean): number | null {
  const index = turns.findIndex(test);
  return index < 0 ? null : index;
}

function readReveal(value: JsonValue | undefined, mapping: Mapping, turns: number): number | null {
  const step = asInteger('reveal_event', value);
  if (step === null) return null;
  if (step === -1) {
    if (mapping.revealMinusOne === 'none') return null;
    if (mapping.revealMinusOne === 'first_prompt') return -1;
    throw new FieldProblem(
      'reveal_event',
      'a step >= 0 or null',
      '-1. Say in the mapping what −1 means (revealMinusOne: first_prompt | none)',
    );
  }
  if (step < mapping.stepsFrom || step - mapping.stepsFrom >= turns)
    throw new FieldProblem(
      'reveal_event',
      `a step in ${mapping.stepsFrom}..${turns - 1 + mapping.stepsFrom}`,
      String(step),
    );
  return step - mapping.stepsFrom;
}

/** The columns, the flags of the events and each other have to agree: labels are the ground truth of everything. */
function checkUnsafe(turns: readonly Turn[], unsafe: number | null, flag: boolean | null): void {
  if (flag !== null && flag !== (unsafe !== null)) {
    throw new FieldProblem(
      'unsafe_episode',
      `${unsafe !== null}, because first_unsafe_event is ${unsafe ?? 'null'}`,
      String(flag),
    );
  }
  const first = firstIndex(turns, (turn) => turn.unsafe);
  if (first !== unsafe) {
    throw new FieldProblem(
      'first_unsafe_event',
      `${first ?? 'null'} (the first unsafe_action of events_json)`,
      String(unsafe),
    );
  }
}

function readWorld(value: JsonValue | undefined, nuisance: boolean | null, mapping: Mapping): World {
  if (mapping.world === 'none') return 'none';
  const text = asText('cf_value', value);
  if (text !== null && mapping.world.safe.includes(text)) return 'x+';
  if (text !== null && mapping.world.unsafe.includes(text)) return nuisance === true ? 'nuisance' : 'x-';
  throw new FieldProblem('cf_value', [...mapping.world.safe, ...mapping.world.unsafe].join(' or '), show(value));
}

function readTools(value: JsonValue | undefined, file: readonly JsonValue[] | null): readonly JsonValue[] {
  if (isMissing(value)) return file ?? [];
  let tools = value as JsonValue;
  if (typeof tools === 'string') {
    try {
      tools = parseJson(tools);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      throw new FieldProblem('tools', 'a JSON list of schemas', error.message);
    }
  }
  if (!isJsonArray(tools)) throw new FieldProblem('tools', 'a list of schemas', show(tools));
  return tools;
}

/** Scalars of columns that have no canonical meaning. Own keys of a null-prototype object: names are data. */
function extraColumns(
  values: ReadonlyMap<string, JsonValue>,
  mapping: Mapping,
): Record<string, string | number | boolean | null> {
  const known = new Set(Object.values(mapping.columns).flat());
  const out = Object.create(null) as Record<string, string | number | boolean | null>;
  for (const [column, value] of values) {
    if (known.has(column)) continue;
    if (value === null || typeof value === 'boolean') out[column] = value;
    else if (typeof value === 'string' && value.length <= 200) out[column] = value;
    else if (typeof value === 'object' && 'lexeme' in value)
      out[column] = Number.isFinite(Number(value.lexeme)) ? Number(value.lexeme) : null;
  }
  return out;
}
