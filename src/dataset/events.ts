import type { Mapping } from '../config/mapping-fields.ts';
import { isJsonArray, isJsonNumber, isJsonObject, JsonError, parseJson } from '../lib/json.ts';
import type { ChatMessage, JsonObject, JsonValue, ToolCall, ToolResult, Turn } from '../types.ts';
import { asBoolean, asInteger, FieldProblem, isMissing, quote, show } from './cell.ts';

/** Warnings are counted by kind and shown once each; the row goes on. */
export type Warn = (kind: string, detail: string) => void;

/** events_json of one episode, from text or from a nested column. @throws FieldProblem */
export function parseEvents(
  value: JsonValue | undefined,
  field: string,
  mapping: Mapping,
  warn: Warn,
): readonly JsonObject[] {
  let events = value;
  if (isMissing(events)) throw new FieldProblem(field, 'JSON text', show(events));
  for (let depth = 0; typeof events === 'string' && depth < 2; depth += 1) {
    if (events === '') throw new FieldProblem(field, 'JSON text', 'an empty string');
    try {
      events = parseJson(events, { strict: mapping.nanLiteral !== 'missing' });
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      throw new FieldProblem(field, 'JSON', `${error.message}: ${quote((value as string).slice(0, 40))}`);
    }
    if (depth === 0 && typeof events === 'string') warn('json_twice', `${field}: JSON encoded twice, decoded twice`);
  }
  if (isJsonArray(value)) warn('nested_events', `${field}: a nested column or array where the card has JSON text`);
  if (!isJsonArray(events)) throw new FieldProblem(field, 'a list of events', show(events));
  if (events.length === 0) throw new FieldProblem(field, 'at least one event', '0 events');
  return events.map((event, index) => {
    if (!isJsonObject(event)) throw new FieldProblem(field, 'objects', `${show(event)} as event ${index}`);
    return event;
  });
}

/** The first of the mapping's keys that the event has. */
function get(event: JsonObject, keys: readonly string[]): JsonValue | undefined {
  for (const key of keys) if (event.has(key)) return event.get(key);
  return undefined;
}

function text(field: string, value: JsonValue | undefined, step: number): string | null {
  if (isMissing(value)) return null;
  if (typeof value === 'string') return value;
  throw new FieldProblem(
    field,
    'text',
    `${show(value)} in step ${step} (content parts with images cannot be replayed)`,
  );
}

function messages(field: string, value: JsonValue | undefined, step: number): ChatMessage[] {
  if (isMissing(value)) return [];
  const items = isJsonArray(value as JsonValue) ? (value as readonly JsonValue[]) : [value as JsonValue];
  return items.map((item) => {
    if (typeof item === 'string') return { role: 'user', content: item };
    if (isJsonObject(item)) return { role: String(item.get('role') ?? 'user'), content: item.get('content') ?? null };
    throw new FieldProblem(field, 'messages', `${show(item)} in step ${step}`);
  });
}

/** Python's json.dumps is what harnesses put into prompts for results that are no text; we keep compact lexemes. */
function resultText(value: JsonValue, warn: Warn, field: string): string {
  if (typeof value === 'string') return value;
  warn('result_not_text', `${field}: a tool result that is no text; its JSON stands in for it`);
  const dump = (item: JsonValue): string => {
    if (item === null || typeof item === 'boolean') return String(item);
    if (typeof item === 'string') return JSON.stringify(item);
    if (isJsonNumber(item)) return item.lexeme;
    if (isJsonArray(item)) return `[${item.map(dump).join(', ')}]`;
    return `{${Array.from(item as JsonObject, ([key, inner]) => `${JSON.stringify(key)}: ${dump(inner)}`).join(', ')}}`;
  };
  return dump(value);
}

function call(
  field: string,
  name: string,
  args: JsonValue | undefined,
  raw: JsonValue | undefined,
  id: JsonValue | undefined,
  step: number,
  warn: Warn,
): ToolCall {
  let parsed: JsonValue = isMissing(args) ? new Map() : (args as JsonValue);
  let argumentsText = typeof raw === 'string' ? raw : undefined;
  if (typeof parsed === 'string') {
    argumentsText ??= parsed;
    if (parsed === '') parsed = new Map();
    else {
      try {
        parsed = parseJson(parsed);
        warn('arguments_text', `${field}: tool arguments logged as JSON text`);
      } catch (error) {
        if (!(error instanceof JsonError)) throw error;
        throw new FieldProblem(
          field,
          'tool arguments as an object',
          `broken JSON text in step ${step} (${error.message})`,
        );
      }
    }
  }
  return {
    name,
    arguments: isJsonObject(parsed) ? parsed : null,
    ...(argumentsText === undefined ? {} : { argumentsText }),
    ...(typeof id === 'string' ? { id } : {}),
  };
}

function calls(
  event: JsonObject,
  mapping: Mapping,
  step: number,
  warn: Warn,
): { calls: ToolCall[]; results: ToolResult[] } {
  const field = 'events_json';
  const keys = mapping.events;
  const many = get(event, keys.calls);
  const entries: {
    name: JsonValue | undefined;
    args: JsonValue | undefined;
    raw: JsonValue | undefined;
    id: JsonValue | undefined;
    result: JsonValue | undefined;
  }[] = [];
  if (!isMissing(many)) {
    if (!isJsonArray(many as JsonValue))
      throw new FieldProblem(field, 'a list of calls', `${show(many)} in step ${step}`);
    for (const item of many as readonly JsonValue[]) {
      if (!isJsonObject(item)) throw new FieldProblem(field, 'calls as objects', `${show(item)} in step ${step}`);
      const inner = item.get('function');
      const from = isJsonObject(inner) ? inner : item;
      entries.push({
        name: from.get('name') ?? get(from, keys.tool_name),
        args: from.get('arguments') ?? get(from, keys.tool_args),
        raw: get(from, keys.tool_args_text),
        id: item.get('id') ?? get(item, keys.tool_call_id),
        result: get(item, keys.tool_result),
      });
    }
  } else {
    entries.push({
      name: get(event, keys.tool_name),
      args: get(event, keys.tool_args),
      raw: get(event, keys.tool_args_text),
      id: get(event, keys.tool_call_id),
      result: get(event, keys.tool_result),
    });
  }
  const out: { calls: ToolCall[]; results: ToolResult[] } = { calls: [], results: [] };
  for (const entry of entries) {
    const name = text(`${field} tool_name`, entry.name, step);
    const hasResult = !isMissing(entry.result) && entry.result !== '';
    if (name === null || name === '') {
      if (hasResult) throw new FieldProblem(field, 'a tool_name', `a tool_result without a call in step ${step}`);
      continue;
    }
    out.calls.push(call(field, name, entry.args, entry.raw, entry.id, step, warn));
    if (!isMissing(entry.result))
      out.results.push({ call: out.calls.length - 1, text: resultText(entry.result as JsonValue, warn, field) });
  }
  return out;
}

function recordedPositions(event: JsonObject, mapping: Mapping, step: number, limit: number): Record<string, number> {
  const field = 'events_json';
  const value = get(event, mapping.events.positions);
  const out: Record<string, number> = {};
  if (isMissing(value)) return out;
  const entries: [string, JsonValue][] = isJsonObject(value)
    ? [...value]
    : isJsonArray(value)
      ? value.map((item, index) => [mapping.positions.names[index] ?? String(index), item])
      : (() => {
          throw new FieldProblem(field, 'token positions as a list or object', `${show(value)} in step ${step}`);
        })();
  let last = -1;
  for (const [name, item] of entries) {
    if (isMissing(item)) continue;
    const number = isJsonNumber(item) ? Number(item.lexeme) : Number.NaN;
    if (!Number.isSafeInteger(number) || number < 0)
      throw new FieldProblem(field, 'token positions as whole numbers >= 0', `${name} = ${show(item)} in step ${step}`);
    if (number > limit)
      throw new FieldProblem(field, 'token positions inside the transcript', `${name} = ${number} in step ${step}`);
    if (number < last)
      throw new FieldProblem(field, 'rising token positions', `${name} = ${number} after ${last} in step ${step}`);
    last = number;
    out[name] = number;
  }
  return out;
}

function ids(field: string, value: JsonValue | undefined): readonly number[] | null {
  if (isMissing(value)) return null;
  if (!isJsonArray(value as JsonValue)) throw new FieldProblem(field, 'a list of token ids', show(value));
  return (value as readonly JsonValue[]).map((item) => {
    const id = asInteger(field, item);
    if (id === null || id < 0) throw new FieldProblem(field, 'token ids >= 0', show(item));
    return id;
  });
}

// oxlint-disable-next-line no-control-regex -- what a chat template would read as structure
const CONTROL_TOKENS =
  /<\|(?:im_start|im_end|start|end|channel|message|call|eot_id|endoftext)\|>|<(?:start|end)_of_turn>/;

/** Turns in order, with the messages after the last one. @throws FieldProblem for the first thing that cannot be used */
export function toTurns(
  events: readonly JsonObject[],
  mapping: Mapping,
  warn: Warn,
): { readonly turns: readonly Turn[]; readonly after: readonly ChatMessage[] } {
  const field = 'events_json';
  const keys = mapping.events;
  // A token is at least one byte of text somewhere; prompts from other tables are well below a million tokens.
  const limit = 1_000_000 + events.reduce((sum, event) => sum + approximateLength(event), 0);
  const turns = events.map((event, index): Turn => {
    const logged = asInteger(`${field} step`, get(event, keys.step));
    if (logged !== null && logged !== index + mapping.stepsFrom) {
      throw new FieldProblem(field, `step ${index + mapping.stepsFrom}`, `step ${logged} as event ${index}`);
    }
    const reasoning = text(`${field} reasoning`, get(event, keys.reasoning), index) ?? '';
    const content = text(`${field} content`, get(event, keys.content), index);
    for (const part of [reasoning, content ?? '']) {
      if (!part.isWellFormed())
        warn('lone_surrogate', `${field}: a lone surrogate in step ${index}; it is read as U+FFFD by every tokenizer`);
      if (CONTROL_TOKENS.test(part))
        warn('control_tokens_in_text', `${field}: text that reads like control tokens in step ${index}`);
    }
    const flag = (key: 'unsafe_action' | 'critical' | 'escalation'): boolean => {
      const value = get(event, keys[key]);
      const read = asBoolean(`${field} ${key}`, value, mapping);
      return read ?? false;
    };
    const violations = get(event, keys.violations);
    const unsafeCall = isJsonNumber(get(event, ['unsafe_call'])) ? asInteger(field, get(event, ['unsafe_call'])) : null;
    return {
      index,
      before: messages(field, get(event, keys.before), index),
      reasoning,
      content,
      ...calls(event, mapping, index, warn),
      unsafe: flag('unsafe_action'),
      unsafeCall,
      critical: flag('critical'),
      escalation: flag('escalation'),
      violations: isJsonArray(violations)
        ? violations.map((item) => (typeof item === 'string' ? item : show(item)))
        : [],
      recordedPositions: recordedPositions(event, mapping, index, limit),
      promptIds: ids(`${field} prompt_ids`, get(event, keys.prompt_ids)),
      generatedIds: ids(`${field} generated_ids`, get(event, keys.generated_ids)),
      completionText: text(`${field} completion_text`, get(event, keys.completion_text), index),
      promptTokens: asInteger(`${field} prompt_tokens`, get(event, keys.prompt_tokens)),
      completionTokens: asInteger(`${field} completion_tokens`, get(event, keys.completion_tokens)),
    };
  });
  if (turns.every((turn) => turn.reasoning === '' && (turn.content ?? '') === ''))
    warn('no_text', `${field}: no reasoning and no content in any step`);
  return { turns, after: messages(field, get(events.at(-1)!, keys.after), turns.length) };
}

function approximateLength(value: JsonValue): number {
  if (typeof value === 'string') return value.length * 3;
  if (isJsonArray(value)) return value.reduce<number>((sum, item) => sum + approximateLength(item), 2);
  if (isJsonObject(value)) {
    let sum = 2;
    for (const [key, item] of value) sum += key.length + approximateLength(item);
    return sum;
  }
  return 5;
}
