import { isJsonObject } from '../../../lib/json.ts';
import type { JsonValue, ToolCall } from '../../../types.ts';
import { closeAt, foundCall, skipSpace, tryJson, writeParts } from '../call-formats.ts';
import { type Family, thinkBlock } from '../family-type.ts';
import { jsonValueEnd } from '../json-scan.ts';
import { dumpsPython } from '../python-json.ts';
import { type CallFormat, readTurn, type TurnFormat, writeTurn } from '../turn-format.ts';
import { thinkLines } from './think.ts';

const OPEN = '```tool_code\n';
const NAME = /\s*(?<name>[A-Za-z_][\w.-]*)\s*\(/dy;

/** `key=value, …` as a text protocol without a fixed format has them. */
export function keywordArguments(call: ToolCall): string {
  return isJsonObject(call.arguments)
    ? Array.from(call.arguments, ([key, value]) => `${key}=${dumpsPython(value)}`).join(', ')
    : (call.argumentsText ?? '');
}

/** Index of the parenthesis that closes the call, quotes and brackets heeded; -1 where it does not end. */
function callEnd(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"' || char === "'") {
      for (at += 1; at < text.length && text[at] !== char; at += 1) if (text[at] === '\\') at += 1;
    } else if ('([{'.includes(char)) depth += 1;
    else if (')]}'.includes(char)) {
      if (depth === 0) return at;
      depth -= 1;
    }
  }
  return -1;
}

/** One JSON object, or `key=value` with JSON values; null for anything else. */
function readArguments(text: string): JsonValue {
  const trimmed = text.trim();
  if (trimmed === '') return new Map();
  if (trimmed.startsWith('{')) {
    const whole = tryJson(trimmed);
    return 'value' in whole && isJsonObject(whole.value) ? whole.value : null;
  }
  const values = new Map<string, JsonValue>();
  const key = /\s*(\w+)\s*=\s*/y;
  for (let at = 0; at < trimmed.length;) {
    key.lastIndex = at;
    const match = key.exec(trimmed);
    if (match === null) return null;
    const end = jsonValueEnd(trimmed, key.lastIndex);
    const value = end < 0 ? { problem: '' } : tryJson(trimmed.slice(key.lastIndex, end));
    if (!('value' in value)) return null;
    values.set(match[1], value.value);
    at = skipSpace(trimmed, end);
    if (at < trimmed.length && trimmed[at] !== ',') return null;
    at += 1;
  }
  return values;
}

const call: CallFormat = {
  open: OPEN,
  write: (writer, item) =>
    writeParts(writer, item, {
      open: OPEN,
      beforeName: '',
      beforeArgs: '(',
      args: keywordArguments(item),
      afterArgs: ')\n',
      close: '```',
    }),
  read(text, at) {
    NAME.lastIndex = at + OPEN.length;
    const head = NAME.exec(text);
    const name = head?.indices?.groups?.['name'];
    if (head === null || name === undefined) return 'a tool call without a name';
    const start = head.index + head[0].length;
    const end = callEnd(text, start);
    const close = end < 0 ? null : closeAt(text, end + 1, '```');
    if (close === null) return 'a tool call without its closing fence';
    const argsText = text.slice(start, end);
    return foundCall(
      { call: { start: at, end: close.end }, name: { start: name[0], end: name[1] }, args: { start, end }, close },
      text.slice(name[0], name[1]),
      readArguments(argsText),
      argsText,
    );
  },
};

/** Text that only mentions a closing tag is no reasoning. */
const think = { ...thinkLines(false), needsOpening: true };
const format: TurnFormat = { think, calls: { ...call, afterContent: '\n', between: '\n' } };

/**
 * Content, then fenced ```tool_code blocks: the text protocol of models without a tool format (Gemma 3, SmolLM2, Llama 3).
 * Logs of such models often hold the calls only in the content: there they are found in it.
 */
export function toolCodeFamily(name: string, reasoningField: string | null): Family {
  return {
    name,
    reasoningField,
    rendersCalls: true,
    historyBlock: thinkBlock(think),
    write(turn, context) {
      const written = writeTurn(format, turn, context);
      if (turn.calls.length > 0 || !(turn.content ?? '').includes(OPEN)) return written;
      const { emission, invalid } = readTurn(format, written.text, context);
      return invalid === null ? { ...written, content: emission.content, calls: emission.calls } : written;
    },
    read: (text, context) => readTurn(format, text, context),
  };
}
