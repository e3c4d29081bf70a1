import { isJsonArray, isJsonObject } from '../../lib/json.ts';
import type { JsonValue, ToolCall } from '../../types.ts';
import { closeAt, foundCall, tryJson } from './call-formats.ts';
import { dumpsPython } from './python-json.ts';
import { fromJson, str } from './jinja/values.ts';
import type { CallFormat } from './turn-format.ts';

export interface XmlCallOptions {
  readonly open: string;
  readonly beforeName: string;
  readonly afterName: string;
  readonly parameter: { readonly beforeKey: string; readonly afterKey: string; readonly afterValue: string };
  readonly afterArgs: string;
  readonly close: string;
  /** How a value that is no text is written: as JSON, or as Python prints it (True, None) unless it is a list or object. */
  readonly scalars: 'json' | 'python';
}

/** A call that is a name and one element a parameter; texts stand in it as they are. */
export function xmlCall(options: XmlCallOptions): CallFormat {
  const { open, close, parameter } = options;
  // Line ends of the format may be left out or doubled.
  const escaped = (text: string): string =>
    text
      .trim()
      .replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
      .replaceAll('\n', '\\s*');
  const behindName = escaped(options.afterName);
  const name = new RegExp(
    `\\s*${escaped(options.beforeName)}(?<name>[^<>\\n"]+${behindName === '' ? '' : '?'})\\s*${behindName}`,
    'dy',
  );
  const one = new RegExp(
    [
      `\\s*${escaped(parameter.beforeKey)}(?<key>[^<>"]*?)${escaped(parameter.afterKey)}`,
      `${lineEnd(parameter.afterKey.endsWith('\n'))}(?<value>[\\s\\S]*?)${lineEnd(parameter.afterValue.startsWith('\n'))}`,
      escaped(parameter.afterValue),
    ].join(''),
    'dy',
  );
  return {
    open,
    write(writer, call) {
      const { start } = writer.add(open);
      writer.add(options.beforeName);
      const nameAt = writer.add(call.name);
      writer.add(options.afterName);
      const from = writer.text.length;
      for (const [key, value] of parametersOf(call)) {
        writer.add(`${parameter.beforeKey}${key}${parameter.afterKey}`);
        writer.add(valueText(value, options.scalars));
        writer.add(parameter.afterValue);
      }
      const args = { start: from, end: writer.text.length };
      writer.add(options.afterArgs);
      const closeAtEnd = writer.add(close);
      return { call: { start, end: writer.text.length }, name: nameAt, args, close: closeAtEnd };
    },
    read(text, at, tools) {
      name.lastIndex = at + open.length;
      const head = name.exec(text);
      const nameAt = head?.indices?.groups?.['name'];
      if (head === null || nameAt === undefined) return 'a tool call without a name';
      const tool = text.slice(nameAt[0], nameAt[1]);
      const values = new Map<string, JsonValue>();
      const start = head.index + head[0].length;
      let cursor = start;
      for (;;) {
        one.lastIndex = cursor;
        const match = one.exec(text);
        if (match?.groups === undefined) break;
        const key = match.groups['key'].trim();
        values.set(key, valueOf(match.groups['value'], typeOf(tools, tool, key)));
        cursor = one.lastIndex;
      }
      const tail = closeAt(text, cursor, options.afterArgs.trim());
      const end = closeAt(text, tail?.end ?? cursor, close);
      if (end === null) return 'a tool call without its closing tag';
      return foundCall(
        {
          call: { start: at, end: end.end },
          name: { start: nameAt[0], end: nameAt[1] },
          args: { start, end: cursor },
          close: end,
        },
        tool,
        values,
      );
    },
  };
}

/** A line end that belongs to the format and not to the value. */
const lineEnd = (own: boolean): string => (own ? '\\n?' : '');

function parametersOf(call: ToolCall): Iterable<readonly [string, JsonValue]> {
  return isJsonObject(call.arguments) ? call.arguments : [];
}

function valueText(value: JsonValue, scalars: XmlCallOptions['scalars']): string {
  if (typeof value === 'string') return value;
  return scalars === 'json' || isJsonObject(value) || isJsonArray(value) ? dumpsPython(value) : str(fromJson(value));
}

/** The schema's type of a parameter; undefined where there is no schema. */
function typeOf(tools: readonly JsonValue[], tool: string, key: string): JsonValue | undefined {
  for (const item of tools) {
    const described = isJsonObject(item) ? (item.get('function') ?? item) : undefined;
    if (!isJsonObject(described) || described.get('name') !== tool) continue;
    const parameters = described.get('parameters');
    const properties = isJsonObject(parameters) ? parameters.get('properties') : undefined;
    const property = isJsonObject(properties) ? properties.get(key) : undefined;
    return isJsonObject(property) ? property.get('type') : undefined;
  }
  return undefined;
}

const PYTHON_WORDS = new Map<string, JsonValue>([
  ['True', true],
  ['False', false],
  ['None', null],
]);

/** A text that the schema calls a string is one; else what reads as JSON, or as Python prints it, is that value. */
function valueOf(text: string, type: JsonValue | undefined): JsonValue {
  if (type === 'string') return text;
  const word = PYTHON_WORDS.get(text);
  if (word !== undefined) return word;
  const read = tryJson(text);
  return 'value' in read && typeof read.value !== 'string' ? read.value : text;
}
