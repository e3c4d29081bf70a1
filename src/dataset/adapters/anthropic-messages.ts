import { isJsonArray, isJsonObject } from '../../lib/json.ts';
import type { JsonObject, JsonValue, ToolCall } from '../../types.ts';
import { FieldProblem, isMissing, show } from '../cell.ts';
import type { LogAdapter } from './adapter.ts';
import { type MessageContext, type MessageParts, readMessageList, type ReadMessage, unwrap } from './message-list.ts';
import { resultText, textOf, toolCall } from './parts.ts';

/**
 * Anthropic's messages: roles user and assistant, content as text or blocks (text, thinking, tool_use, tool_result).
 * Results come as blocks of the next user message; text beside them is the user speaking.
 */

function blocksOf(message: JsonObject, { field, index }: MessageContext): readonly JsonObject[] {
  const content = message.get('content');
  if (isMissing(content)) return [];
  if (typeof content === 'string')
    return [
      new Map<string, JsonValue>([
        ['type', 'text'],
        ['text', content],
      ]),
    ];
  if (!isJsonArray(content))
    throw new FieldProblem(field, 'content as text or blocks', `${show(content)} in message ${index}`);
  return content.map((block) => {
    if (isJsonObject(block)) return block;
    throw new FieldProblem(field, 'blocks as objects', `${show(block)} in message ${index}`);
  });
}

const textField = (block: JsonObject, key: string, { field, index }: MessageContext): string => {
  const value = block.get(key);
  if (typeof value === 'string') return value;
  throw new FieldProblem(field, `${key} as text`, `${show(value)} in message ${index}`);
};

function assistant(message: JsonObject, context: MessageContext): MessageParts {
  const { field, index, warn } = context;
  const reasoning: string[] = [];
  const content: string[] = [];
  const calls: ToolCall[] = [];
  for (const block of blocksOf(message, context)) {
    const type = block.get('type');
    if (type === 'text') content.push(textField(block, 'text', context));
    else if (type === 'thinking') reasoning.push(textField(block, 'thinking', context));
    else if (type === 'redacted_thinking')
      warn('redacted_thinking', `${field}: reasoning that the provider hid in message ${index}: the replay lacks it`);
    else if (type === 'tool_use')
      calls.push(
        toolCall(field, textField(block, 'name', context), block.get('input'), undefined, block.get('id'), index, warn),
      );
    else throw new FieldProblem(field, 'blocks of text, thinking or tool_use', `${show(type)} in message ${index}`);
  }
  return {
    assistant: {
      reasoning: reasoning.join(''),
      content: content.length === 0 ? null : content.join(''),
      calls,
    },
    results: [],
    message: null,
  };
}

const readMessage: ReadMessage = (message, context): MessageParts => {
  const { field, index, warn } = context;
  const role = message.get('role');
  if (role === 'assistant') return assistant(message, context);
  if (role === 'system')
    return { assistant: null, results: [], message: { role, content: textOf(field, message.get('content'), index) } };
  if (role !== 'user')
    throw new FieldProblem(field, 'a role user, assistant or system', `${show(role)} in message ${index}`);
  const results: MessageParts['results'][number][] = [];
  const said: string[] = [];
  for (const block of blocksOf(message, context)) {
    const type = block.get('type');
    if (type === 'text') said.push(textField(block, 'text', context));
    else if (type === 'tool_result') {
      const content = block.get('content');
      results.push({
        id: textField(block, 'tool_use_id', context),
        name: null,
        text: isMissing(content) ? '' : resultText(content, warn, field),
      });
    } else
      throw new FieldProblem(
        field,
        'content that is text',
        `a block of type ${show(type)} in message ${index} (only text can be replayed)`,
      );
  }
  return { assistant: null, results, message: said.length === 0 ? null : { role: 'user', content: said.join('') } };
};

/** What only Anthropic's own servers read. */
const OWN_KEYS = new Set(['type', 'cache_control']);

/** {name, description, input_schema} → the function form that chat templates know. */
function toolSchema(tool: JsonValue): JsonValue {
  if (!isJsonObject(tool) || !tool.has('input_schema')) return tool;
  const inner = new Map<string, JsonValue>();
  for (const [key, value] of tool)
    if (!OWN_KEYS.has(key)) inner.set(key === 'input_schema' ? 'parameters' : key, value);
  return new Map<string, JsonValue>([
    ['type', 'function'],
    ['function', inner],
  ]);
}

export const readAnthropicMessages: LogAdapter = (value, field, mapping, warn) => {
  const { messages, tools, system } = unwrap(value, field, mapping, warn);
  const content = textOf(`${field} system`, system, 0);
  return {
    ...readMessageList(messages, value, content === null ? [] : [{ role: 'system', content }], readMessage, {
      field,
      mapping,
      warn,
    }),
    tools: isJsonArray(tools) ? tools.map(toolSchema) : null,
  };
};
