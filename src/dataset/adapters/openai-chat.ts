import { isJsonArray, isJsonObject } from '../../lib/json.ts';
import type { ChatMessage, JsonObject, JsonValue, ToolCall } from '../../types.ts';
import { FieldProblem, isMissing, show } from '../cell.ts';
import type { LogAdapter } from './adapter.ts';
import { type MessageContext, type MessageParts, readMessageList, type ReadMessage, unwrap } from './message-list.ts';
import { resultText, textOf, toolCall } from './parts.ts';
import { get } from './turn-fields.ts';

/**
 * OpenAI's chat messages, as its API and most agent frameworks log them: roles system, developer, user, assistant, tool
 * (or the older function), calls in `tool_calls` with arguments as JSON text, results as messages with `tool_call_id`.
 */

const OPENING_ROLES = new Set(['system', 'developer', 'user']);

const optional = (value: JsonValue | undefined): string | null => (typeof value === 'string' ? value : null);

function callsOf(message: JsonObject, { field, index, warn }: MessageContext): ToolCall[] {
  const listed = message.get('tool_calls');
  const old = message.get('function_call');
  const items: readonly JsonValue[] = !isMissing(listed)
    ? isJsonArray(listed)
      ? listed
      : (() => {
          throw new FieldProblem(field, 'tool_calls as a list', `${show(listed)} in message ${index}`);
        })()
    : isMissing(old)
      ? []
      : [old];
  return items.map((item) => {
    const inner = isJsonObject(item) ? (item.get('function') ?? item) : item;
    const name = isJsonObject(inner) ? inner.get('name') : undefined;
    if (!isJsonObject(item) || !isJsonObject(inner) || typeof name !== 'string' || name === '')
      throw new FieldProblem(field, 'a call with a name', `${show(name ?? item)} in message ${index}`);
    return toolCall(field, name, inner.get('arguments'), undefined, item.get('id'), index, warn);
  });
}

/** Content as logged, text parts joined: what the template gets is one text. */
function chatMessage(role: string, message: JsonObject, { field, index }: MessageContext): ChatMessage {
  const name = optional(message.get('name'));
  return {
    role,
    content: textOf(`${field} content`, message.get('content'), index),
    ...(name === null ? {} : { name }),
  };
}

const readMessage: ReadMessage = (message, context): MessageParts => {
  const { field, index, mapping, warn } = context;
  const role = message.get('role');
  if (role === 'assistant') {
    const content = textOf(`${field} content`, message.get('content'), index);
    return {
      assistant: {
        reasoning: textOf(`${field} reasoning`, get(message, mapping.events.reasoning), index) ?? '',
        content: content ?? textOf(field, message.get('refusal'), index),
        calls: callsOf(message, context),
      },
      results: [],
      message: null,
    };
  }
  if (role === 'tool' || role === 'function') {
    const content = message.get('content');
    return {
      assistant: null,
      results: [
        {
          id: optional(message.get('tool_call_id')),
          name: optional(message.get('name')),
          text: isMissing(content) ? '' : resultText(content, warn, field),
        },
      ],
      message: null,
    };
  }
  if (typeof role !== 'string' || !OPENING_ROLES.has(role))
    throw new FieldProblem(
      field,
      'a role system, developer, user, assistant or tool',
      `${show(role)} in message ${index}`,
    );
  return { assistant: null, results: [], message: chatMessage(role, message, context) };
};

export const readOpenAiChat: LogAdapter = (value, field, mapping, warn) => {
  const { messages, tools } = unwrap(value, field, mapping, warn);
  return {
    ...readMessageList(messages, value, [], readMessage, { field, mapping, warn }),
    tools: isJsonArray(tools) ? tools : null,
  };
};
