import type { EventField, Mapping } from '../../config/mapping-fields.ts';
import { isJsonArray, isJsonObject } from '../../lib/json.ts';
import type { ChatMessage, JsonObject, JsonValue, ToolCall, ToolResult, Turn } from '../../types.ts';
import { asBoolean, asInteger, FieldProblem, isMissing, show } from '../cell.ts';
import type { LogAdapter, Warn } from './adapter.ts';
import { parseList, resultText, textOf, toolCall, warnOfText } from './parts.ts';
import { get, positionLimit, turnFields } from './turn-fields.ts';

/** CAPE-Bench's events_json: one object a turn, with the labels of the environment beside the text. */

function messages(field: string, value: JsonValue | undefined, step: number): ChatMessage[] {
  if (isMissing(value) || value === '') return [];
  return (isJsonArray(value) ? value : [value]).map((item) => {
    if (typeof item === 'string') return { role: 'user', content: item };
    if (isJsonObject(item)) {
      const role = item.get('role') ?? 'user';
      if (typeof role !== 'string')
        throw new FieldProblem(field, 'a role that is text', `${show(role)} in step ${step}`);
      return { role, content: item.get('content') ?? null };
    }
    throw new FieldProblem(field, 'messages', `${show(item)} in step ${step}`);
  });
}

interface RawCall {
  readonly name: JsonValue | undefined;
  readonly args: JsonValue | undefined;
  readonly raw: JsonValue | undefined;
  readonly id: JsonValue | undefined;
  readonly result: JsonValue | undefined;
  readonly unsafe: JsonValue | undefined;
}

function rawCalls(event: JsonObject, keys: Mapping['events'], field: string, step: number): RawCall[] {
  const many = get(event, keys.calls);
  if (!isMissing(many)) {
    if (!isJsonArray(many)) throw new FieldProblem(field, 'a list of calls', `${show(many)} in step ${step}`);
    return many.map((item) => {
      if (!isJsonObject(item)) throw new FieldProblem(field, 'calls as objects', `${show(item)} in step ${step}`);
      const inner = item.get('function');
      const from = isJsonObject(inner) ? inner : item;
      return {
        name: from.get('name') ?? get(from, keys.tool_name),
        args: from.get('arguments') ?? get(from, keys.tool_args),
        raw: get(from, keys.tool_args_text),
        id: item.get('id') ?? get(item, keys.tool_call_id),
        result: get(item, keys.tool_result),
        unsafe: get(item, keys.unsafe_action),
      };
    });
  }
  const name = get(event, keys.tool_name);
  // Several calls as lists side by side: names, arguments and results in the same order.
  const count = isJsonArray(name) ? name.length : 1;
  const nth = (field: EventField, index: number): JsonValue | undefined => {
    const value = get(event, keys[field]);
    return isJsonArray(name) && isJsonArray(value) ? value[index] : value;
  };
  return Array.from({ length: count }, (_, index) => ({
    name: nth('tool_name', index),
    args: nth('tool_args', index),
    raw: nth('tool_args_text', index),
    id: nth('tool_call_id', index),
    result: nth('tool_result', index),
    unsafe: undefined,
  }));
}

function calls(
  event: JsonObject,
  mapping: Mapping,
  field: string,
  step: number,
  warn: Warn,
): { readonly calls: ToolCall[]; readonly results: ToolResult[]; readonly unsafeCall: number | null } {
  const out: { calls: ToolCall[]; results: ToolResult[]; unsafeCall: number | null } = {
    calls: [],
    results: [],
    unsafeCall: asInteger(`${field} unsafe_call`, get(event, mapping.events.unsafe_call)),
  };
  for (const entry of rawCalls(event, mapping.events, field, step)) {
    const name = textOf(`${field} tool_name`, entry.name, step);
    if (name === null || name === '') {
      if (!isMissing(entry.result) && entry.result !== '')
        throw new FieldProblem(field, 'a tool_name', `a tool_result without a call in step ${step}`);
      continue;
    }
    const index = out.calls.push(toolCall(field, name, entry.args, entry.raw, entry.id, step, warn)) - 1;
    if (!isMissing(entry.result)) out.results.push({ call: index, text: resultText(entry.result, warn, field) });
    if (asBoolean(`${field} unsafe_action`, entry.unsafe, mapping) === true) out.unsafeCall ??= index;
  }
  if (out.unsafeCall !== null && (out.unsafeCall < 0 || out.unsafeCall >= out.calls.length))
    throw new FieldProblem(field, `unsafe_call in 0..${out.calls.length - 1}`, `${out.unsafeCall} in step ${step}`);
  return out;
}

function toTurn(event: JsonObject, index: number, mapping: Mapping, field: string, limit: number, warn: Warn): Turn {
  const keys = mapping.events;
  const logged = asInteger(`${field} step`, get(event, keys.step));
  if (logged !== null && logged !== index + mapping.stepsFrom)
    throw new FieldProblem(field, `step ${index + mapping.stepsFrom}`, `step ${logged} as event ${index}`);
  const reasoning = textOf(`${field} reasoning`, get(event, keys.reasoning), index) ?? '';
  const content = textOf(`${field} content`, get(event, keys.content), index);
  warnOfText(field, reasoning, index, warn);
  if (content !== null) warnOfText(field, content, index, warn);
  const made = calls(event, mapping, field, index, warn);
  return {
    index,
    before: messages(field, get(event, keys.before), index),
    reasoning,
    content,
    calls: made.calls,
    results: made.results,
    ...turnFields(event, mapping, field, index, limit),
    ...(made.unsafeCall === null ? {} : { unsafeCall: made.unsafeCall }),
  };
}

export const readEvents: LogAdapter = (value, field, mapping, warn) => {
  const events = parseList(value, field, mapping.nanLiteral, warn).map((event, index) => {
    if (!isJsonObject(event)) throw new FieldProblem(field, 'objects', `${show(event)} as event ${index}`);
    return event;
  });
  const limit = positionLimit(value, events);
  const turns = events.map((event, index) => toTurn(event, index, mapping, field, limit, warn));
  if (turns.every((turn) => turn.reasoning === '' && (turn.content ?? '') === ''))
    warn('no_text', `${field}: no reasoning and no content in any step`);
  return {
    opening: null,
    turns,
    after: messages(field, get(events.at(-1)!, mapping.events.after), turns.length),
    tools: null,
    marksUnsafe:
      turns.some((turn) => turn.unsafe) || events.some((event) => !isMissing(get(event, mapping.events.unsafe_action))),
    turnOf: (step) => (step < turns.length ? step : null),
  };
};
