import { isJsonArray, isJsonObject } from '../../../lib/json.ts';
import type { JsonValue } from '../../../types.ts';
import { closeAt, foundCall, tryJson, writeParts } from '../call-formats.ts';
import { type FamilyRow, formatFamily } from '../family-type.ts';
import { fromJson, str } from '../jinja/values.ts';
import type { CallFormat, TurnFormat } from '../turn-format.ts';

const QUOTE = '<|"|>';
const OPEN = '<|tool_call>';
const NAME = /\s*call:(?<name>[^{\s]+)\s*(?=\{)/dy;
const KEY = /\s*(?:<\|"\|>)?(?<key>[^:,{}<]+)(?:<\|"\|>)?\s*:\s*/y;

/** Keys in the order of the log: the model writes them in its own, only the template sorts. */
function valueText(value: JsonValue): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return `${QUOTE}${value}${QUOTE}`;
  if (typeof value === 'boolean') return String(value);
  if (isJsonArray(value)) return `[${value.map(valueText).join(',')}]`;
  if (isJsonObject(value)) return `{${Array.from(value, ([key, item]) => `${key}:${valueText(item)}`).join(',')}}`;
  return str(fromJson(value));
}

interface Read {
  readonly value: JsonValue;
  readonly end: number;
}

/** Value that begins at `at`, or null. Nesting is bounded as in JSON. */
function readValue(text: string, at: number, depth = 0): Read | null {
  if (depth > 200) return null;
  if (text.startsWith(QUOTE, at)) {
    const end = text.indexOf(QUOTE, at + QUOTE.length);
    return end < 0 ? null : { value: text.slice(at + QUOTE.length, end), end: end + QUOTE.length };
  }
  if (text[at] === '{') return readObject(text, at, depth);
  if (text[at] === '[') return readList(text, at, depth);
  const word = /[^,\]}]*/y;
  word.lastIndex = at;
  const found = word.exec(text)?.[0] ?? '';
  const parsed = found.trim() === 'None' ? { value: null } : tryJson(found.trim());
  return { value: 'value' in parsed ? parsed.value : found.trim(), end: at + found.length };
}

function readObject(text: string, at: number, depth: number): Read | null {
  const value = new Map<string, JsonValue>();
  let cursor = at + 1;
  while (text[cursor] !== '}') {
    KEY.lastIndex = cursor;
    const key = KEY.exec(text)?.groups?.['key'];
    const item = key === undefined ? null : readValue(text, KEY.lastIndex, depth + 1);
    if (key === undefined || item === null) return null;
    value.set(key, item.value);
    cursor = text[item.end] === ',' ? item.end + 1 : item.end;
    if (cursor >= text.length || (text[item.end] !== ',' && text[cursor] !== '}')) return null;
  }
  return { value, end: cursor + 1 };
}

function readList(text: string, at: number, depth: number): Read | null {
  const value: JsonValue[] = [];
  let cursor = at + 1;
  while (text[cursor] !== ']') {
    const item = readValue(text, cursor, depth + 1);
    if (item === null) return null;
    value.push(item.value);
    cursor = text[item.end] === ',' ? item.end + 1 : item.end;
    if (cursor >= text.length || (text[item.end] !== ',' && text[cursor] !== ']')) return null;
  }
  return { value, end: cursor + 1 };
}

const call: CallFormat = {
  open: OPEN,
  write: (writer, item) =>
    writeParts(writer, item, {
      open: OPEN,
      beforeName: 'call:',
      beforeArgs: '',
      args: isJsonObject(item.arguments) ? valueText(item.arguments) : '{}',
      afterArgs: '',
      close: '<tool_call|>',
    }),
  read(text, at) {
    NAME.lastIndex = at + OPEN.length;
    const head = NAME.exec(text);
    const name = head?.indices?.groups?.['name'];
    if (head === null || name === undefined) return 'a tool call without a name';
    const start = head.index + head[0].length;
    const args = readObject(text, start, 0);
    if (args === null) return 'a tool call whose arguments cannot be read';
    const close = closeAt(text, args.end, '<tool_call|>');
    if (close === null) return 'a tool call without its closing marker';
    return foundCall(
      {
        call: { start: at, end: close.end },
        name: { start: name[0], end: name[1] },
        args: { start, end: args.end },
        close,
      },
      text.slice(name[0], name[1]),
      args.value,
    );
  },
};

/** The model stops where the result has to follow: its call is followed by the marker that opens the response. */
const format: TurnFormat = {
  think: { open: '<|channel>thought\n', beforeClose: '\n', close: '<channel|>', after: '', evenEmpty: false },
  calls: { ...call, afterContent: '', between: '' },
  endOfCalls: '<|tool_response>',
};

/** Gemma 4, all four templates: `<|channel>thought\nR\n<channel|>C<|tool_call>call:X{k:<|"|>v<|"|>}<tool_call|>`. */
export const gemma4: FamilyRow = {
  name: 'gemma4',
  test: (text) => text.includes('<|tool_call>call:') && text.includes('<|channel>thought'),
  family: (text) =>
    formatFamily('gemma4', text.includes("message.get('reasoning')") ? 'reasoning' : 'reasoning_content', format),
};
