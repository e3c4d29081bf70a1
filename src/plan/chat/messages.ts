import type { ChatMessage, Episode, JsonValue, ToolCall, Turn } from '../../types.ts';
import type { ReplaySettings } from '../settings.ts';
import { argumentsJson } from './call-formats.ts';
import { keywordArguments } from './families/tool-code.ts';
import { dumpsPython } from './python-json.ts';

/** What the messages of a template are called. */
export interface MessageStyle {
  readonly toolText: ReplaySettings['toolText'];
  readonly historyReasoning: ReplaySettings['historyReasoning'];
  /** Field the template reads reasoning from: reasoning_content, thinking, reasoning; null = none. */
  readonly reasoningField: string | null;
  /** Arguments as the model wrote them, where the log has that text (harmony prints it as it is). */
  readonly argumentsAsText?: boolean;
}

const map = (entries: readonly (readonly [string, JsonValue | undefined])[]): JsonValue =>
  new Map(entries.filter((entry): entry is readonly [string, JsonValue] => entry[1] !== undefined));

/** One call in the json-tags form (Hermes, Qwen 2.5 / 3). */
const jsonTagsText = (call: ToolCall): string =>
  `<tool_call>\n{"name": "${call.name}", "arguments": ${argumentsJson(call)}}\n</tool_call>`;

/** Schemas as system text, for templates that know no tools (the wording of the Hermes and Qwen templates). */
export function toolPreamble(tools: readonly JsonValue[], toolText: 'json-tags' | 'tool_code'): string {
  if (tools.length === 0) return '';
  const schemas = tools.map(dumpsPython).join('\n');
  if (toolText === 'tool_code') {
    return `\n\nYou can call functions by writing one call in a \`\`\`tool_code block. The result follows in a \`\`\`tool_output block. Functions:\n${schemas}`;
  }
  return [
    '\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>\n',
    schemas,
    '\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>',
  ].join('');
}

/** What stands in the assistant message for the reasoning, content and calls of a turn, in the json-tags form. */
export function turnText(turn: Turn): string {
  const calls = turn.calls.map(jsonTagsText);
  return [...(turn.content === null || turn.content === '' ? [] : [turn.content]), ...calls].join('\n');
}

/** The field by which a message carries its reasoning. One that the template does not read is for `all`, which puts it back. */
function reasoningEntry(turn: Turn, style: MessageStyle): readonly [string, JsonValue | undefined] {
  const { historyReasoning: mode, reasoningField: field } = style;
  const carried = mode === 'all' || (mode === 'template' && field !== null);
  return [field ?? 'reasoning_content', carried && turn.reasoning !== '' ? turn.reasoning : undefined];
}

function nativeAssistant(turn: Turn, style: MessageStyle): JsonValue {
  return map([
    ['role', 'assistant'],
    ['content', turn.content],
    reasoningEntry(turn, style),
    [
      'tool_calls',
      turn.calls.length === 0
        ? undefined
        : turn.calls.map((call, index) =>
            map([
              ['id', call.id ?? `call_${turn.index}_${index}`],
              ['type', 'function'],
              [
                'function',
                map([
                  ['name', call.name],
                  [
                    'arguments',
                    style.argumentsAsText === true
                      ? (call.argumentsText ?? call.arguments)
                      : (call.arguments ?? call.argumentsText ?? null),
                  ],
                ]),
              ],
            ]),
          ),
    ],
  ]);
}

function given(message: ChatMessage): JsonValue {
  return map([
    ['role', message.role],
    ['content', message.content],
    ['name', message.name],
    ['tool_call_id', message.toolCallId],
  ]);
}

/** A system message as text: content parts have no place to put schemas into. */
function textContent(content: JsonValue | undefined): string {
  return typeof content === 'string' ? content : content === null || content === undefined ? '' : dumpsPython(content);
}

/**
 * Messages of the prompt of turn `upTo`: everything before it, as the template's dictionaries.
 * @param upTo the turn about to be generated; turns.length = after the last one
 */
export function promptMessages(episode: Episode, upTo: number, style: MessageStyle): JsonValue[] {
  const out: JsonValue[] = [];
  const asText = style.toolText !== 'native';
  const preamble = style.toolText === 'native' ? '' : toolPreamble(episode.tools, style.toolText);
  const opening = [...episode.opening];
  if (preamble !== '') {
    const system = opening.findIndex((message) => message.role === 'system');
    if (system < 0) opening.unshift({ role: 'system', content: preamble.trimStart() });
    else opening[system] = { ...opening[system], content: `${textContent(opening[system].content)}${preamble}` };
  }
  for (const message of opening) out.push(given(message));
  for (const turn of episode.turns.slice(0, upTo)) {
    for (const message of turn.before) out.push(given(message));
    out.push(
      asText
        ? map([
            ['role', 'assistant'],
            ['content', style.toolText === 'tool_code' ? toolCodeText(turn) : turnText(turn)],
            reasoningEntry(turn, style),
          ])
        : nativeAssistant(turn, style),
    );
    for (const result of turn.results) {
      const call = turn.calls[result.call];
      out.push(
        asText
          ? map([
              ['role', 'user'],
              ['content', resultText(result.text, style.toolText)],
            ])
          : map([
              ['role', 'tool'],
              ['content', result.text],
              ['name', call?.name],
              ['tool_call_id', call?.id ?? `call_${turn.index}_${result.call}`],
            ]),
      );
    }
  }
  const next = upTo < episode.turns.length ? episode.turns[upTo].before : episode.after;
  for (const message of next) out.push(given(message));
  return out;
}

/** `name(key=value, …)` in a fenced block: the text protocol of models without a tool format (Gemma 3). */
function toolCodeText(turn: Turn): string {
  const calls = turn.calls.map((call) => `\`\`\`tool_code\n${call.name}(${keywordArguments(call)})\n\`\`\``);
  return [...(turn.content === null || turn.content === '' ? [] : [turn.content]), ...calls].join('\n');
}

function resultText(text: string, toolText: MessageStyle['toolText']): string {
  return toolText === 'tool_code' ? `\`\`\`tool_output\n${text}\n\`\`\`` : `<tool_response>\n${text}\n</tool_response>`;
}
