import type { Mapping } from '../../config/mapping-fields.ts';
import { isJsonArray, isJsonObject } from '../../lib/json.ts';
import type { ChatMessage, JsonObject, JsonValue, ToolCall, ToolResult, Turn } from '../../types.ts';
import { FieldProblem, show } from '../cell.ts';
import type { ParsedLog, Warn } from './adapter.ts';
import { parseList, warnOfText } from './parts.ts';
import { positionLimit, turnFields } from './turn-fields.ts';

/** What the message-list formats share: messages are dealt to turns, results to the calls they answer. */

/** A message in the terms of a turn. `results` answer calls of the turn before; `message` enters the next prompt. */
export interface MessageParts {
  readonly assistant: {
    readonly reasoning: string;
    readonly content: string | null;
    readonly calls: readonly ToolCall[];
  } | null;
  readonly results: readonly { readonly id: string | null; readonly name: string | null; readonly text: string }[];
  readonly message: ChatMessage | null;
}

export interface MessageContext {
  readonly field: string;
  readonly index: number;
  readonly mapping: Mapping;
  readonly warn: Warn;
}

/** One message of the format. @throws FieldProblem */
export type ReadMessage = (message: JsonObject, context: MessageContext) => MessageParts;

interface Draft {
  readonly event: JsonObject;
  readonly before: readonly ChatMessage[];
  readonly parts: NonNullable<MessageParts['assistant']>;
  readonly results: ToolResult[];
}

/** The call a result answers: by id, else by name, else the first that has no result yet. */
function answered(
  draft: Draft | undefined,
  result: MessageParts['results'][number],
  { field, index }: MessageContext,
): number {
  const got = result.id ?? result.name;
  const fail = (): never => {
    throw new FieldProblem(
      field,
      'a result of a call of the turn before it',
      `${got === null ? 'a result' : `a result of ${JSON.stringify(got.slice(0, 60))}`} in message ${index} without such a call`,
    );
  };
  if (draft === undefined) return fail();
  const open = draft.parts.calls
    .map((call, at) => ({ call, at }))
    .filter(({ at }) => !draft.results.some((known) => known.call === at));
  const match =
    (result.id === null ? undefined : open.find(({ call }) => call.id === result.id)) ??
    (result.id !== null && draft.parts.calls.some((call) => call.id !== undefined)
      ? undefined
      : (open.find(({ call }) => result.name !== null && call.name === result.name) ??
        (result.name === null ? open[0] : undefined)));
  return match?.at ?? fail();
}

/** Results of calls made at once come back in any order; a log in columns has them in that of the calls. */
function ordered(
  results: readonly ToolResult[],
  { field, mapping, warn }: Omit<MessageContext, 'index'>,
): ToolResult[] {
  const sorted = [...results].sort((a, b) => a.call - b.call);
  if (mapping.resultOrder === 'log' || sorted.every((result, index) => result === results[index])) return [...results];
  warn(
    'results_reordered',
    `${field}: tool results in another order than their calls: replayed in that of the calls (resultOrder: log in the mapping keeps theirs)`,
  );
  return sorted;
}

/** `{messages, tools, system}` or the list of messages itself. */
export function unwrap(
  value: JsonValue | undefined,
  field: string,
  mapping: Mapping,
  warn: Warn,
): {
  readonly messages: readonly JsonValue[];
  readonly tools: JsonValue | undefined;
  readonly system: JsonValue | undefined;
} {
  const text = typeof value === 'string' && value.trimStart().startsWith('{') ? `[${value}]` : value;
  const list = parseList(
    isJsonObject(text) ? [text] : text,
    field,
    mapping.nanLiteral,
    isJsonObject(text) ? () => undefined : warn,
  );
  const [first] = list;
  const messages = isJsonObject(first) ? first.get('messages') : undefined;
  if (list.length === 1 && isJsonObject(first) && isJsonArray(messages)) {
    if (messages.length === 0) throw new FieldProblem(field, 'at least one message', '0 messages');
    return { messages, tools: first.get('tools'), system: first.get('system') };
  }
  return { messages: list, tools: undefined, system: undefined };
}

export function readMessageList(
  messages: readonly JsonValue[],
  raw: JsonValue | undefined,
  first: readonly ChatMessage[],
  read: ReadMessage,
  context: Omit<MessageContext, 'index'>,
): Omit<ParsedLog, 'tools'> {
  const { field, mapping, warn } = context;
  const drafts: Draft[] = [];
  let pending: ChatMessage[] = [...first];
  let opening: readonly ChatMessage[] = [];
  /** Turn of each message; null for those that belong to none. */
  const turnOf: (number | null)[] = [];
  for (const [index, message] of messages.entries()) {
    if (!isJsonObject(message))
      throw new FieldProblem(field, 'messages as objects', `${show(message)} as message ${index}`);
    const here = { ...context, index };
    const parts = read(message, here);
    for (const result of parts.results) {
      const draft = drafts.at(-1);
      const call = answered(draft, result, here);
      draft?.results.push({ call, text: result.text });
    }
    if (parts.message !== null) pending.push(parts.message);
    if (parts.assistant !== null) {
      if (drafts.length === 0) opening = pending;
      drafts.push({ event: message, before: drafts.length === 0 ? [] : pending, parts: parts.assistant, results: [] });
      pending = [];
    }
    turnOf.push(parts.assistant !== null || parts.results.length > 0 ? drafts.length - 1 : null);
  }
  if (drafts.length === 0) throw new FieldProblem(field, 'at least one message of the assistant', 'none');
  const limit = positionLimit(raw, messages);
  const turns = drafts.map((draft, index): Turn => {
    warnOfText(field, draft.parts.reasoning, index, warn);
    if (draft.parts.content !== null) warnOfText(field, draft.parts.content, index, warn);
    return {
      index,
      before: draft.before,
      ...draft.parts,
      results: ordered(draft.results, context),
      ...turnFields(draft.event, mapping, field, index, limit),
    };
  });
  const count = mapping.stepsCount;
  return {
    opening,
    turns,
    after: pending,
    marksUnsafe: turns.some((turn) => turn.unsafe),
    turnOf: (step) => (count === 'messages' ? (turnOf[step] ?? null) : step < turns.length ? step : null),
  };
}
