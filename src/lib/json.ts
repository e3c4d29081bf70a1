import type { JsonNumber, JsonObject, JsonValue } from '../types.ts';

/**
 * A JSON reader that keeps what `JSON.parse` loses: number lexemes, the order of integer-like keys, and Python's
 * `NaN` / `Infinity` literals (as numbers whose lexeme is that word). Lone surrogates stay as they are.
 * Nesting is bounded, since hostile logs nest 100,000 deep and everything downstream recurses.
 */
export const MAX_DEPTH = 200;

export class JsonError extends Error {
  readonly offset: number;
  constructor(message: string, offset: number) {
    super(`${message} at character ${offset}`);
    this.name = 'JsonError';
    this.offset = offset;
  }
}

class LexemeNumber implements JsonNumber {
  readonly lexeme: string;
  constructor(lexeme: string) {
    this.lexeme = lexeme;
  }
}

export function jsonNumber(value: number | bigint | string): JsonNumber {
  return new LexemeNumber(String(value));
}

export function isJsonNumber(value: JsonValue | undefined): value is JsonNumber {
  return value instanceof LexemeNumber;
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return value instanceof Map;
}

export function isJsonArray(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// oxlint-disable-next-line no-control-regex -- JSON forbids exactly these characters inside strings
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const BACKSLASH = 92;
/** Keys and words below this length are looked at character by character. From 13 on a V8 slice keeps the whole text alive. */
const SHORT = 13;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

export interface JsonOptions {
  /** Refuse what JSON forbids or leaves open and Python's reader lets through: NaN, Infinity, 1e400, a key given twice. */
  readonly strict?: boolean;
}

/** @throws JsonError with the character offset */
export function parseJson(text: string, options: JsonOptions = {}): JsonValue {
  const strict = options.strict === true;
  let at = 0;
  let lastKey = '';
  const space = (): void => {
    for (let c = text.charCodeAt(at); c === 32 || c === 10 || c === 13 || c === 9; c = text.charCodeAt(at)) at += 1;
  };
  const word = (literal: string): boolean => {
    if (!text.startsWith(literal, at)) return false;
    at += literal.length;
    return true;
  };
  const string = (): string => {
    let quote = text.indexOf('"', at + 1);
    if (quote >= 0 && quote - at < SHORT) {
      let plain = at + 1;
      for (let c = text.charCodeAt(plain); c !== BACKSLASH && c >= 32 && plain < quote; c = text.charCodeAt(plain))
        plain += 1;
      if (plain === quote) {
        const out = text.slice(at + 1, quote);
        at = quote + 1;
        return out;
      }
    }
    for (; quote >= 0; quote = text.indexOf('"', quote + 1)) {
      let slashes = 0;
      while (text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes += 1;
      if (slashes % 2 === 0) break;
    }
    if (quote >= 0) {
      try {
        // The engine's own reader is three times as fast, and what it returns is a copy.
        const out = JSON.parse(text.slice(at, quote + 1)) as string;
        at = quote + 1;
        return out;
      } catch {
        // Not a string it takes: read on slowly, for the place of the error.
      }
    }
    return slowString();
  };
  const slowString = (): string => {
    at += 1;
    let out = '';
    for (;;) {
      PLAIN.lastIndex = at;
      PLAIN.exec(text);
      out += text.slice(at, PLAIN.lastIndex);
      at = PLAIN.lastIndex;
      const c = text[at];
      if (c === '"') {
        at += 1;
        return out;
      }
      if (c !== '\\')
        throw new JsonError(at < text.length ? 'control character in a string' : 'unterminated string', at);
      const escape = text[at + 1] ?? '';
      if (escape === 'u') {
        const hex = text.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(hex)) throw new JsonError('bad \\u escape', at);
        out += String.fromCharCode(Number.parseInt(hex, 16));
        at += 6;
      } else {
        const plain = ESCAPES[escape];
        if (plain === undefined) throw new JsonError('bad escape', at);
        out += plain;
        at += 2;
      }
    }
  };
  const value = (depth: number): JsonValue => {
    if (depth > MAX_DEPTH) throw new JsonError(`nested deeper than ${MAX_DEPTH}`, at);
    space();
    const c = text[at];
    if (c === '"') return string();
    if (c === '{') return object(depth);
    if (c === '[') return array(depth);
    if (c === '-' || (c !== undefined && c >= '0' && c <= '9')) {
      NUMBER.lastIndex = at;
      const match = NUMBER.exec(text);
      if (match) {
        at = NUMBER.lastIndex;
        if (strict && !Number.isFinite(Number(match[0])))
          throw new JsonError(`the number ${match[0]} (not finite) under ${JSON.stringify(lastKey)}`, at);
        return new LexemeNumber(match[0]);
      }
      if (!strict && word('-Infinity')) return new LexemeNumber('-Infinity');
      throw new JsonError('bad number', at);
    }
    if (word('true')) return true;
    if (word('false')) return false;
    if (word('null')) return null;
    if (!strict && word('NaN')) return new LexemeNumber('NaN');
    if (!strict && word('Infinity')) return new LexemeNumber('Infinity');
    throw new JsonError(c === undefined ? 'unexpected end' : `unexpected ${JSON.stringify(c)}`, at);
  };
  const object = (depth: number): JsonObject => {
    const map = new Map<string, JsonValue>();
    at += 1;
    space();
    if (text[at] === '}') {
      at += 1;
      return map;
    }
    for (;;) {
      space();
      if (text[at] !== '"') throw new JsonError('expected a key', at);
      const key = string();
      lastKey = key;
      space();
      if (text[at] !== ':') throw new JsonError("expected ':'", at);
      at += 1;
      if (strict && map.has(key)) throw new JsonError(`the key ${JSON.stringify(key)} twice`, at);
      map.set(key, value(depth + 1));
      space();
      if (text[at] === ',') at += 1;
      else if (text[at] === '}') {
        at += 1;
        return map;
      } else throw new JsonError("expected ',' or '}'", at);
    }
  };
  const array = (depth: number): JsonValue[] => {
    const list: JsonValue[] = [];
    at += 1;
    space();
    if (text[at] === ']') {
      at += 1;
      return list;
    }
    for (;;) {
      list.push(value(depth + 1));
      space();
      if (text[at] === ',') at += 1;
      else if (text[at] === ']') {
        at += 1;
        return list;
      } else throw new JsonError("expected ',' or ']'", at);
    }
  };
  const result = value(0);
  space();
  if (at < text.length) throw new JsonError('text after the value', at);
  return result;
}

/** Compact JSON text with the number lexemes as they were read. */
export function stringifyJson(value: JsonValue): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (isJsonNumber(value)) return value.lexeme;
  if (isJsonArray(value)) return `[${value.map(stringifyJson).join(',')}]`;
  if (isJsonObject(value)) {
    return `{${Array.from(value, ([key, item]) => `${JSON.stringify(key)}:${stringifyJson(item)}`).join(',')}}`;
  }
  throw new TypeError('not a JSON value');
}

/** A plain JavaScript value (objects with null prototype, numbers as doubles), for code that may lose lexemes. */
export function toPlain(value: JsonValue): unknown {
  if (isJsonNumber(value)) return Number(value.lexeme);
  if (isJsonArray(value)) return value.map(toPlain);
  if (isJsonObject(value)) {
    const out = Object.create(null) as Record<string, unknown>;
    for (const [key, item] of value) out[key] = toPlain(item);
    return out;
  }
  return value;
}

/** The lossless form of a plain JavaScript value. @throws TypeError on functions, symbols and non-finite numbers */
export function fromPlain(value: unknown): JsonValue {
  if (value === null || value === undefined) return null;
  if (typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'bigint') return jsonNumber(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError(`${value} has no JSON form`);
    return jsonNumber(value);
  }
  if (Array.isArray(value)) return value.map(fromPlain);
  if (value instanceof Map) return new Map(Array.from(value, ([key, item]) => [String(key), fromPlain(item)]));
  if (typeof value === 'object') return new Map(Object.entries(value).map(([key, item]) => [key, fromPlain(item)]));
  throw new TypeError(`a ${typeof value} has no JSON form`);
}
