import type { Stretch } from './emission.ts';

/** Where the members of a JSON object lie in a text; values are not read. */
export interface ScannedObject {
  readonly members: ReadonlyMap<string, Stretch>;
  /** After the closing brace. */
  readonly end: number;
}

const SPACE = /[ \t\r\n]*/y;
const SCALAR = /[^\s,\]}]+/y;

function skip(text: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.exec(text);
  return SPACE.lastIndex;
}

/** Index after the string that opens at `at`; -1 where it does not end. */
function stringEnd(text: string, at: number): number {
  for (let k = at + 1; k < text.length; k += 1) {
    if (text[k] === '\\') k += 1;
    else if (text[k] === '"') return k + 1;
  }
  return -1;
}

/** Index after the JSON value that begins at `at`; -1 where there is none or it does not end. */
export function jsonValueEnd(text: string, at: number): number {
  if (text[at] === '"') return stringEnd(text, at);
  if (text[at] !== '{' && text[at] !== '[') {
    SCALAR.lastIndex = at;
    return SCALAR.exec(text) === null ? -1 : SCALAR.lastIndex;
  }
  let depth = 0;
  for (let k = at; k < text.length; k += 1) {
    const char = text[k];
    if (char === '"') {
      k = stringEnd(text, k) - 1;
      if (k < 0) return -1;
    } else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') {
      depth -= 1;
      if (depth === 0) return k + 1;
    }
  }
  return -1;
}

/** The object that begins at `at`, or null. */
export function scanObject(text: string, at: number): ScannedObject | null {
  if (text[at] !== '{') return null;
  const members = new Map<string, Stretch>();
  let cursor = skip(text, at + 1);
  if (text[cursor] === '}') return { members, end: cursor + 1 };
  for (;;) {
    const keyEnd = text[cursor] === '"' ? stringEnd(text, cursor) : -1;
    if (keyEnd < 0) return null;
    const key = text.slice(cursor + 1, keyEnd - 1);
    cursor = skip(text, keyEnd);
    if (text[cursor] !== ':') return null;
    const start = skip(text, cursor + 1);
    const end = jsonValueEnd(text, start);
    if (end < 0) return null;
    members.set(key, { start, end });
    cursor = skip(text, end);
    if (text[cursor] === '}') return { members, end: cursor + 1 };
    if (text[cursor] !== ',') return null;
    cursor = skip(text, cursor + 1);
  }
}
