import type { Mapping } from '../../config/mapping-fields.ts';
import { isJsonArray, isJsonNumber, isJsonObject } from '../../lib/json.ts';
import type { JsonObject, JsonValue, Turn } from '../../types.ts';
import { asBoolean, asInteger, FieldProblem, isMissing, show } from '../cell.ts';
import { textOf } from './parts.ts';
import { recordedPositions } from './recorded-positions.ts';

/** The first of the mapping's keys that the event has. */
export function get(event: JsonObject, keys: readonly string[]): JsonValue | undefined {
  for (const key of keys) {
    const value = event.get(key);
    if (value !== undefined) return value;
  }
  return undefined;
}

function ids(field: string, value: JsonValue | undefined): readonly number[] | null {
  if (isMissing(value)) return null;
  if (!isJsonArray(value)) throw new FieldProblem(field, 'a list of token ids', show(value));
  return value.map((item) => {
    const id = asInteger(field, item);
    if (id === null || id < 0) throw new FieldProblem(field, 'token ids >= 0', show(item));
    return id;
  });
}

function texts(value: JsonValue | undefined): readonly string[] {
  if (isMissing(value) || value === '') return [];
  return (isJsonArray(value) ? value : [value]).map((item) => (typeof item === 'string' ? item : show(item)));
}

type TurnFields = Pick<
  Turn,
  | 'unsafe'
  | 'unsafeCall'
  | 'critical'
  | 'escalation'
  | 'violations'
  | 'recordedPositions'
  | 'promptIds'
  | 'promptText'
  | 'generatedIds'
  | 'completionText'
  | 'promptTokens'
  | 'completionTokens'
>;

/** What stands beside the text of a turn in every format: labels, recorded positions, ids, counts. @throws FieldProblem */
export function turnFields(
  event: JsonObject,
  mapping: Mapping,
  field: string,
  index: number,
  limit: number,
): TurnFields {
  const keys = mapping.events;
  const flag = (key: 'unsafe_action' | 'critical' | 'escalation'): boolean =>
    asBoolean(`${field} ${key}`, get(event, keys[key]), mapping) ?? false;
  const usage = event.get('usage');
  const counted = (key: 'prompt_tokens' | 'completion_tokens'): number | null =>
    asInteger(`${field} ${key}`, get(event, keys[key]) ?? (isJsonObject(usage) ? get(usage, keys[key]) : undefined));
  const unsafeCall = asInteger(`${field} unsafe_call`, get(event, keys.unsafe_call));
  return {
    unsafe: flag('unsafe_action') || unsafeCall !== null,
    unsafeCall,
    critical: flag('critical'),
    escalation: flag('escalation'),
    violations: texts(get(event, keys.violations)),
    recordedPositions: recordedPositions(event, get(event, keys.positions), mapping.positions, field, index, limit),
    promptIds: ids(`${field} prompt_ids`, get(event, keys.prompt_ids)),
    promptText: textOf(`${field} prompt_text`, get(event, keys.prompt_text), index),
    generatedIds: ids(`${field} generated_ids`, get(event, keys.generated_ids)),
    completionText: textOf(`${field} completion_text`, get(event, keys.completion_text), index),
    promptTokens: counted('prompt_tokens'),
    completionTokens: counted('completion_tokens'),
  };
}

/** Bytes of all texts in a value, at most. */
function approximateLength(value: JsonValue): number {
  if (typeof value === 'string') return value.length * 3;
  if (isJsonArray(value)) return value.reduce<number>((sum, item) => sum + approximateLength(item), 2);
  if (isJsonObject(value)) {
    let sum = 2;
    for (const [key, item] of value) sum += key.length + approximateLength(item);
    return sum;
  }
  return isJsonNumber(value) ? value.lexeme.length : 5;
}

/** Prompts hold text of other tables too; they are well below this many tokens. */
const OTHER_TOKENS = 1_000_000;

/** More tokens than the episode can have: a token is at least one byte of text somewhere. */
export function positionLimit(raw: JsonValue | undefined, parsed: readonly JsonValue[]): number {
  return OTHER_TOKENS + (typeof raw === 'string' ? raw.length * 3 : approximateLength(parsed));
}
