import { isJsonObject, JsonError, parseJson } from '../../lib/json.ts';
import type { JsonValue, ToolCall } from '../../types.ts';
import type { CallStretches, Stretch, Writer } from './emission.ts';
import { jsonValueEnd, scanObject } from './json-scan.ts';
import { dumpsPython } from './python-json.ts';
import type { CallFormat, FoundCall } from './turn-format.ts';

/** Arguments as json.dumps writes them; a text that is no JSON object as it was logged. */
export const argumentsJson = (call: ToolCall): string =>
  call.arguments === null ? (call.argumentsText ?? 'null') : dumpsPython(call.arguments);

export const skipSpace = (text: string, at: number): number => {
  let k = at;
  while (k < text.length && ' \t\r\n'.includes(text[k])) k += 1;
  return k;
};

/** The value of a JSON text, or a line saying why it is none. */
export function tryJson(text: string): { readonly value: JsonValue } | { readonly problem: string } {
  try {
    return { value: parseJson(text) };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { problem: error.message };
  }
}

function objectOrNull(text: string): JsonValue {
  const read = tryJson(text);
  return 'value' in read && isJsonObject(read.value) ? read.value : null;
}

export function foundCall(stretches: CallStretches, name: string, args: JsonValue, argsText?: string): FoundCall {
  return {
    stretches,
    call: { name, arguments: args, ...(args === null && argsText !== undefined ? { argumentsText: argsText } : {}) },
  };
}

/** The closing marker behind `at`, white space before it allowed; an empty stretch where it is missing. */
export function closeAt(text: string, at: number, close: string): Stretch | null {
  if (close === '') return { start: at, end: at };
  const start = skipSpace(text, at);
  return text.startsWith(close, start) ? { start, end: start + close.length } : null;
}

export interface JsonCallOptions {
  readonly open: string;
  /** From the opening marker to the name's first letter. */
  readonly beforeName: string | ((call: ToolCall, index: number) => string);
  readonly beforeArgs: string;
  /** From the arguments to the closing marker. */
  readonly afterArgs: string | ((call: ToolCall, index: number) => string);
  readonly close: string;
  readonly keys?: { readonly name: string; readonly args: readonly string[] };
}

const DEFAULT_KEYS = { name: 'name', args: ['arguments', 'parameters'] };

/** A call that is one JSON object with a name and arguments, between markers. `open` may itself be the object's brace. */
export function jsonCall(options: JsonCallOptions): CallFormat {
  const { open, close, keys = DEFAULT_KEYS } = options;
  return {
    open,
    write: (writer, call, index) =>
      writeParts(writer, call, {
        open,
        beforeName: textFor(options.beforeName, call, index),
        beforeArgs: options.beforeArgs,
        args: argumentsJson(call),
        afterArgs: textFor(options.afterArgs, call, index),
        close,
      }),
    read(text, at) {
      const brace = open.indexOf('{');
      const start = brace < 0 ? skipSpace(text, at + open.length) : at + brace;
      const scanned = scanObject(text, start);
      const end = scanned === null ? null : closeAt(text, scanned.end, close);
      if (scanned === null || end === null) return jsonProblem(text, start, close);
      const name = scanned.members.get(keys.name);
      const args = keys.args.map((key) => scanned.members.get(key)).find((stretch) => stretch !== undefined);
      const whole = tryJson(text.slice(start, scanned.end));
      if ('problem' in whole) return `a tool call that is no JSON: ${whole.problem}`;
      if (name === undefined || text[name.start] !== '"') return 'a tool call without a name';
      const argsText = args === undefined ? '' : text.slice(args.start, args.end);
      return foundCall(
        {
          call: { start: at, end: end.end },
          name: { start: name.start + 1, end: name.end - 1 },
          args: args ?? { start: scanned.end, end: scanned.end },
          close: end,
        },
        parseJson(text.slice(name.start, name.end)) as string,
        objectOrNull(argsText),
      );
    },
    stray: (text) =>
      close !== '' && text.includes(close)
        ? `a closing ${close.replace(/^<\/|>$/g, '')} tag without an opening one`
        : null,
  };
}

function jsonProblem(text: string, start: number, close: string): string {
  const end = close === '' ? text.length : text.indexOf(close, start);
  if (end < 0) return 'a tool call without its closing tag';
  const read = tryJson(text.slice(start, end).trim());
  return 'problem' in read ? `a tool call that is no JSON: ${read.problem}` : 'a tool call without a name';
}

const textFor = (part: string | ((call: ToolCall, index: number) => string), call: ToolCall, index: number): string =>
  typeof part === 'string' ? part : part(call, index);

export interface CallParts {
  readonly open: string;
  readonly beforeName: string;
  readonly beforeArgs: string;
  readonly args: string;
  readonly afterArgs: string;
  readonly close: string;
}

export function writeParts(writer: Writer, call: ToolCall, parts: CallParts): CallStretches {
  const { start } = writer.add(parts.open);
  writer.add(parts.beforeName);
  const name = writer.add(call.name);
  writer.add(parts.beforeArgs);
  const args = writer.add(parts.args);
  writer.add(parts.afterArgs);
  const close = writer.add(parts.close);
  return { call: { start, end: writer.text.length }, name, args, close };
}

export interface NamedCallOptions {
  readonly open: string;
  readonly beforeName?: string | ((call: ToolCall, index: number) => string);
  readonly beforeArgs: string | ((call: ToolCall, index: number) => string);
  readonly afterArgs?: string;
  readonly close: string;
  /** Reads from the end of `open` to the arguments; group `name`. */
  readonly pattern: RegExp;
}

/** A name, then the arguments as JSON, between markers. */
export function namedCall(options: NamedCallOptions): CallFormat {
  const { open, close } = options;
  const pattern = new RegExp(options.pattern.source, 'dy');
  return {
    open,
    write: (writer, call, index) =>
      writeParts(writer, call, {
        open,
        beforeName: textFor(options.beforeName ?? '', call, index),
        beforeArgs: textFor(options.beforeArgs, call, index),
        args: argumentsJson(call),
        afterArgs: options.afterArgs ?? '',
        close,
      }),
    read(text, at) {
      pattern.lastIndex = at + open.length;
      const match = pattern.exec(text);
      const name = match?.indices?.groups?.['name'];
      if (match === null || name === undefined) return 'a tool call without a name';
      const start = skipSpace(text, match.index + match[0].length);
      const end = jsonValueEnd(text, start);
      if (end < 0) return 'a tool call whose arguments do not end';
      const tail = (options.afterArgs ?? '').trim();
      const behind = skipSpace(text, end);
      const closing = closeAt(text, tail !== '' && text.startsWith(tail, behind) ? behind + tail.length : end, close);
      const stop = closing ?? { start: end, end };
      const argsText = text.slice(start, end);
      return foundCall(
        {
          call: { start: at, end: stop.end },
          name: { start: name[0], end: name[1] },
          args: { start, end },
          close: stop,
        },
        text.slice(name[0], name[1]),
        objectOrNull(argsText),
        argsText,
      );
    },
  };
}
