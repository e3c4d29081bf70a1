import { isJsonArray, isJsonObject } from '../lib/json.ts';
import type { JsonValue } from '../types.ts';

/** A stretch of one text of a message, UTF-16 units, end-exclusive. */
export interface Mark {
  readonly message: number;
  /** Its content unless said otherwise: another text of it, or the name of its first call. */
  readonly field?: string;
  readonly start: number;
  readonly end: number;
}

/** First private-use planes (15, 16): no template touches their characters and hardly a log holds them. */
const PLANES = [0xf0000, 0x100000];
const PLANE_SIZE = 0xfffe;

/**
 * Where stretches of the messages stand in the rendered prompt: rendered once more with a private-use character just inside
 * each edge. Right also where the template escapes the text (gpt-oss and Llama print results as JSON), and never a search.
 * @param plain the prompt as rendered without marks
 * @returns one stretch of `plain` a mark; null where the template dropped the text, or printed something else because of the marks
 */
export function markedStretches(
  render: (messages: readonly JsonValue[]) => string,
  messages: readonly JsonValue[],
  marks: readonly Mark[],
  plain: string,
): ({ readonly start: number; readonly end: number } | null)[] {
  const nothing = marks.map(() => null);
  const base = PLANES.find((plane) => !holdsPlane(plain, plane));
  if (marks.length === 0 || base === undefined || marks.length * 2 > PLANE_SIZE) return nothing;
  const marked = [...messages];
  const order = marks.map((mark, index) => ({ ...mark, index })).sort((a, b) => b.start - a.start);
  for (const { message, field, start, end, index } of order) {
    const [open, close] = [String.fromCodePoint(base + 2 * index), String.fromCodePoint(base + 2 * index + 1)];
    const around = (text: string): string =>
      `${text.slice(0, start)}${open}${text.slice(start, end)}${close}${text.slice(end)}`;
    const changed = changeText(marked[message], field, around);
    if (changed === null) return nothing;
    marked[message] = changed;
  }
  let rendered: string;
  try {
    rendered = render(marked);
  } catch {
    // The plain prompt rendered: a template that refuses the marked one has no place to show.
    return nothing;
  }
  const found: { start: number | null; end: number | null }[] = marks.map(() => ({ start: null, end: null }));
  const parts: string[] = [];
  let length = 0;
  let from = 0;
  for (let at = 0; at < rendered.length; at += 1) {
    if ((rendered.charCodeAt(at) & 0xfc00) !== 0xd800) continue;
    const index = rendered.codePointAt(at)! - base;
    if (index < 0 || index >= 2 * marks.length) continue;
    parts.push(rendered.slice(from, at));
    length += at - from;
    found[index >> 1][index % 2 === 0 ? 'start' : 'end'] ??= length;
    from = at + 2;
    at += 1;
  }
  parts.push(rendered.slice(from));
  if (parts.join('') !== plain) return nothing;
  return found.map(({ start, end }) => (start === null || end === null ? null : { start, end }));
}

/** Path of the first call's name, for `Mark.field`. */
export const FIRST_CALL = 'tool_calls';

/** The message with one of its texts changed; null where it has none there. */
function changeText(message: JsonValue, field = 'content', change: (text: string) => string): JsonValue | null {
  if (!isJsonObject(message)) return null;
  const value = message.get(field);
  if (typeof value === 'string') return new Map(message).set(field, change(value));
  const [call, ...others] = isJsonArray(value) ? value : [];
  const called = isJsonObject(call) ? call.get('function') : undefined;
  const name = isJsonObject(called) ? called.get('name') : undefined;
  if (!isJsonObject(call) || !isJsonObject(called) || typeof name !== 'string') return null;
  const renamed = new Map(call).set('function', new Map(called).set('name', change(name)));
  return new Map(message).set(field, [renamed, ...others]);
}

function holdsPlane(text: string, plane: number): boolean {
  for (let at = 0; at < text.length; at += 1) {
    if ((text.charCodeAt(at) & 0xfc00) !== 0xd800) continue;
    const code = text.codePointAt(at)!;
    if (code >= plane && code <= plane + PLANE_SIZE) return true;
  }
  return false;
}
