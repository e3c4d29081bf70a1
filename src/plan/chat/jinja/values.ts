import { isJsonArray, isJsonNumber, isJsonObject } from '../../../lib/json.ts';
import type { JsonValue } from '../../../types.ts';
import { floatRepr } from '../python-json.ts';

/**
 * Python's values as a chat template sees them. int is a bigint and float a number, so that `1.0` and
 * `9007199254740993` print as they were written; a dict is a Map, which keeps the order of its keys.
 */
export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | readonly Value[]
  | Tuple
  | Dict
  | Undefined
  | Callable
  | Namespace
  | LoopState;
export type Dict = ReadonlyMap<string, Value>;

export class Tuple {
  readonly items: readonly Value[];
  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/** What jinja2 gives for a name or attribute that is not there; `message` is what it says once somebody uses it. */
export class Undefined {
  readonly message: string;
  readonly kind: 'UndefinedError' | 'SecurityError';
  constructor(message: string, kind: Undefined['kind'] = 'UndefinedError') {
    this.message = message;
    this.kind = kind;
  }
}

export interface CallArguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

export class Callable {
  readonly call: (given: CallArguments) => Value;
  constructor(call: (given: CallArguments) => Value) {
    this.call = call;
  }
}

/** `namespace()`: attributes that a loop may set. */
export class Namespace {
  readonly attributes: Map<string, Value>;
  constructor(attributes: Map<string, Value>) {
    this.attributes = attributes;
  }
}

/** `loop` inside a for. */
export class LoopState {
  readonly items: readonly Value[];
  readonly at: number;
  constructor(items: readonly Value[], at: number) {
    this.items = items;
    this.at = at;
  }
}

/** What Python raises while it renders: the row cannot be rendered, `message` is Python's own. */
export class PythonError extends Error {
  readonly kind: string;
  constructor(kind: string, message: string) {
    super(message);
    this.name = 'PythonError';
    this.kind = kind;
  }
}

export const isDict = (value: Value): value is Dict => value instanceof Map;
/** A list or a tuple. */
export const itemsOf = (value: Value): readonly Value[] | null =>
  Array.isArray(value) ? (value as readonly Value[]) : value instanceof Tuple ? value.items : null;
export const isNumeric = (value: Value): value is bigint | number | boolean =>
  typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean';

export function typeName(value: Value): string {
  if (value === null) return 'NoneType';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'number') return 'float';
  if (typeof value === 'string') return 'str';
  if (Array.isArray(value)) return 'list';
  if (value instanceof Tuple) return 'tuple';
  if (value instanceof Undefined) return 'Undefined';
  if (value instanceof Callable) return 'function';
  if (value instanceof Namespace) return 'Namespace';
  if (value instanceof LoopState) return 'LoopContext';
  return 'dict';
}

/** jinja2's object_type_repr. */
function described(value: Value): string {
  return value === null ? 'None' : `${typeName(value)} object`;
}

export function missingAttribute(value: Value, name: string): Undefined {
  return new Undefined(`'${described(value)}' has no attribute ${repr(name)}`);
}

export function missingItem(value: Value, key: Value): Undefined {
  return typeof key === 'string'
    ? missingAttribute(value, key)
    : new Undefined(`${described(value)} has no element ${repr(key)}`);
}

/** @throws PythonError when the value is undefined: what jinja2 does on nearly every use of one */
export function demand(value: Value): void {
  if (value instanceof Undefined) throw new PythonError(value.kind, value.message);
}

const known = new WeakMap<object, Value>();

/** The value that json.loads gives. Containers are converted once: schemas stand in every prompt of a data set. */
export function fromJson(value: JsonValue): Value {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (isJsonNumber(value)) return numberOf(value.lexeme);
  const before = known.get(value);
  if (before !== undefined) return before;
  let out: Value;
  if (isJsonArray(value)) out = value.map(fromJson);
  else if (isJsonObject(value)) out = new Map(Array.from(value, ([key, item]) => [key, fromJson(item)]));
  else throw new TypeError('not a JSON value');
  known.set(value, out);
  return out;
}

function numberOf(lexeme: string): bigint | number {
  return /[.eEN]|Infinity/.test(lexeme) ? Number(lexeme) : BigInt(lexeme);
}

export function truth(value: Value): boolean {
  if (value === null || value instanceof Undefined) return false;
  if (typeof value === 'boolean') return value;
  if (typeof value === 'bigint') return value !== 0n;
  if (typeof value === 'number') return value !== 0;
  if (typeof value === 'string') return value !== '';
  const items = itemsOf(value);
  if (items) return items.length > 0;
  return isDict(value) ? value.size > 0 : true;
}

/** str(value) */
export function str(value: Value): string {
  if (typeof value === 'string') return value;
  return value instanceof Undefined ? '' : repr(value);
}

/** repr(value) */
export function repr(value: Value): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number') return floatRepr(value);
  if (typeof value === 'string') return stringRepr(value);
  if (Array.isArray(value)) return `[${(value as readonly Value[]).map(repr).join(', ')}]`;
  if (value instanceof Tuple)
    return value.items.length === 1 ? `(${repr(value.items[0])},)` : `(${value.items.map(repr).join(', ')})`;
  if (isDict(value)) return `{${Array.from(value, ([key, item]) => `${repr(key)}: ${repr(item)}`).join(', ')}}`;
  if (value instanceof Undefined) return 'Undefined';
  if (value instanceof Namespace) return `<Namespace ${repr(value.attributes)}>`;
  return value instanceof LoopState ? `<LoopContext ${value.at + 1}/${value.items.length}>` : '<function>';
}

function stringRepr(raw: string): string {
  const quote = raw.includes("'") && !raw.includes('"') ? '"' : "'";
  const body = raw
    .replaceAll('\\', '\\\\')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replaceAll('\t', '\\t')
    .replaceAll(quote, `\\${quote}`)
    // What Python does not call printable: controls, separators other than space, unassigned, surrogates.
    .replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (char) => {
      const code = char.codePointAt(0) ?? 0;
      if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`;
      return code <= 0xffff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
    });
  return `${quote}${body}${quote}`;
}

/** Python's ==: containers by value, True == 1 == 1.0, a string is equal to strings only. */
export function equal(a: Value, b: Value): boolean {
  if (isNumeric(a) && isNumeric(b)) {
    const [left, right] = [typeof a === 'boolean' ? BigInt(a) : a, typeof b === 'boolean' ? BigInt(b) : b];
    // oxlint-disable-next-line eqeqeq -- a bigint and a number are only compared by value with ==
    return left == right;
  }
  if (isDict(a) && isDict(b)) {
    if (a.size !== b.size) return false;
    for (const [key, item] of a) {
      const other = b.get(key);
      if (other === undefined || !equal(item, other)) return false;
    }
    return true;
  }
  if ((Array.isArray(a) && Array.isArray(b)) || (a instanceof Tuple && b instanceof Tuple)) {
    const [left, right] = [itemsOf(a) ?? [], itemsOf(b) ?? []];
    return left.length === right.length && left.every((item, index) => equal(item, right[index]));
  }
  return a === b || (a instanceof Undefined && b instanceof Undefined);
}

function compareText(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  for (let at = 0; at < most; at += 1) {
    const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (x === y) continue;
    // Surrogates stand for code points above all others.
    const high = (unit: number): number => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit);
    return high(x) - high(y);
  }
  return a.length - b.length;
}

/** Order of two values. @throws PythonError TypeError as Python does for types without one */
export function compare(a: Value, b: Value, operator = '<'): number {
  demand(a);
  demand(b);
  if (isNumeric(a) && isNumeric(b)) {
    const [left, right] = [typeof a === 'boolean' ? BigInt(a) : a, typeof b === 'boolean' ? BigInt(b) : b];
    return left < right ? -1 : left > right ? 1 : 0;
  }
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  const [left, right] = [itemsOf(a), itemsOf(b)];
  if (left && right && Array.isArray(a) === Array.isArray(b)) {
    for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
      if (!equal(left[at], right[at])) return compare(left[at], right[at], operator);
    }
    return left.length - right.length;
  }
  throw new PythonError(
    'TypeError',
    `'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`,
  );
}

/** What a for loop goes through. @throws PythonError for what Python cannot iterate */
export function iterate(value: Value): readonly Value[] {
  const items = itemsOf(value);
  if (items) return items;
  if (typeof value === 'string') return Array.from(value);
  if (isDict(value)) return [...value.keys()];
  if (value instanceof Undefined) {
    if (value.kind === 'SecurityError') throw new PythonError(value.kind, value.message);
    return [];
  }
  throw new PythonError('TypeError', `'${typeName(value)}' object is not iterable`);
}
