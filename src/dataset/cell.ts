import { isJsonArray, isJsonNumber, isJsonObject } from '../lib/json.ts';
import type { JsonValue } from '../types.ts';

/** A problem with one field of one row: what makes the row unusable, in one line. */
export class FieldProblem extends Error {
  readonly field: string;
  constructor(field: string, expected: string, got: string) {
    super(`${field}: expected ${expected}, got ${got}`);
    this.name = 'FieldProblem';
    this.field = field;
  }
}

/** A value as a message shows it: short, no control characters (logs are hostile). */
export function show(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing (missing)';
  if (value === null) return 'null';
  if (typeof value === 'boolean') return String(value);
  if (isJsonNumber(value)) return value.lexeme.slice(0, 60);
  if (typeof value === 'string') return value === '' ? 'an empty string' : `the string ${quote(value)}`;
  if (isJsonArray(value)) return 'a list';
  return isJsonObject(value) ? 'an object' : 'a value';
}

export function quote(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 57)}…` : text;
  return JSON.stringify(short).replace(
    // oxlint-disable-next-line no-control-regex -- escape sequences and text direction marks must not reach a terminal
    /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const isNaNLexeme = (value: JsonValue | undefined): boolean => isJsonNumber(value) && value.lexeme === 'NaN';

/** Missing: absent, null, or NaN (a pandas export of a nullable column). */
export function isMissing(value: JsonValue | undefined): value is null | undefined {
  return value === undefined || value === null || isNaNLexeme(value);
}

/** A whole number, or null where it is missing. 3.0 is 3 (float columns); beyond 2^53 is refused. */
export function asInteger(
  field: string,
  value: JsonValue | undefined,
  text: 'accept' | 'refuse' = 'refuse',
): number | null {
  if (isMissing(value)) return null;
  if (isJsonNumber(value)) {
    const number = Number(value.lexeme);
    if (Number.isSafeInteger(number)) return number;
  }
  if (typeof value === 'string' && text === 'accept') {
    if (value === '') return null;
    if (/^-?\d+(\.0+)?$/.test(value) && Number.isSafeInteger(Number(value))) return Number(value);
  }
  throw new FieldProblem(field, 'a whole number or null', show(value));
}

/** An integer as text, exact beyond 2^53. */
export function asSeed(field: string, value: JsonValue | undefined): string | null {
  if (isMissing(value)) return null;
  if (typeof value === 'string') return value;
  if (isJsonNumber(value)) {
    const { lexeme } = value;
    if (/^-?\d+$/.test(lexeme)) return lexeme;
    if (Number.isSafeInteger(Number(lexeme))) return String(Number(lexeme));
  }
  throw new FieldProblem(field, 'a finite integer', show(value));
}

export interface Words {
  readonly trueWords: readonly string[];
  readonly falseWords: readonly string[];
}

export function asBoolean(field: string, value: JsonValue | undefined, words: Words): boolean | null {
  if (isMissing(value)) return null;
  if (typeof value === 'boolean') return value;
  if (isJsonNumber(value)) {
    const number = Number(value.lexeme);
    if (number === 0 || number === 1) return number === 1;
    throw new FieldProblem(field, 'true or false (0 or 1)', show(value));
  }
  if (typeof value === 'string') {
    if (words.trueWords.includes(value)) return true;
    if (words.falseWords.includes(value)) return false;
  }
  throw new FieldProblem(
    field,
    'true or false',
    `${show(value)}. Words that mean true and false go into the mapping (trueWords, falseWords)`,
  );
}

export function asText(field: string, value: JsonValue | undefined): string | null {
  if (isMissing(value)) return null;
  if (typeof value === 'string') return value;
  if (isJsonNumber(value)) return value.lexeme;
  throw new FieldProblem(field, 'text', show(value));
}
