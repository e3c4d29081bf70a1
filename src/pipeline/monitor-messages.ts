import { UserError } from '../errors.ts';
import { fromPlain, isJsonObject, JsonError, parseJson } from '../lib/json.ts';
import type { ChatMessage, JsonValue, ToolCall } from '../types.ts';

/** A message as OpenAI-compatible servers and clients write it. */
export interface OpenAiMessage {
  readonly role: string;
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly {
    readonly id?: string;
    readonly function: { readonly name: string; readonly arguments: string | object };
  }[];
  readonly tool_call_id?: string;
  readonly name?: string;
}

/** A call that an agent is about to make, with what the model wrote before it in the same turn. */
export interface ProposedCall {
  readonly name: string;
  /** JSON text as the model wrote it, or an object. */
  readonly arguments: string | object;
  readonly reasoning?: string | null;
  readonly content?: string | null;
}

/** Messages of either kind in the form that replay renders. */
export function chatMessages(messages: readonly (ChatMessage | OpenAiMessage)[]): ChatMessage[] {
  return messages.map((message) => ('tool_calls' in message || isOpenAi(message) ? fromOpenAi(message) : message));
}

const isOpenAi = (message: ChatMessage | OpenAiMessage): message is OpenAiMessage =>
  'tool_calls' in message || 'tool_call_id' in message || 'reasoning_content' in message;

function fromOpenAi(message: OpenAiMessage): ChatMessage {
  const { role, content, reasoning_content: reasoning, tool_calls: calls, tool_call_id: toolCallId, name } = message;
  return {
    role,
    ...(content === undefined ? {} : { content }),
    ...(reasoning === undefined || reasoning === null ? {} : { reasoning }),
    ...(calls === undefined
      ? {}
      : {
          toolCalls: calls.map((call): ToolCall => ({
            ...toolCall(call.function.name, call.function.arguments),
            ...(call.id === undefined ? {} : { id: call.id }),
          })),
        }),
    ...(toolCallId === undefined ? {} : { toolCallId }),
    ...(name === undefined ? {} : { name }),
  };
}

/** Text that is no JSON object is kept as text: such a call is scored as the model wrote it. */
export function toolCall(name: string, args: string | object): ToolCall {
  if (typeof name !== 'string' || name === '')
    throw new UserError(`call: expected the name of a tool, got ${JSON.stringify(name) ?? 'nothing'}. Name it`);
  if (typeof args === 'string') {
    let parsed: JsonValue = null;
    try {
      parsed = parseJson(args);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
    }
    return { name, arguments: isJsonObject(parsed) ? parsed : null, argumentsText: args };
  }
  return { name, arguments: args instanceof Map ? (args as JsonValue) : fromPlain(args) };
}
