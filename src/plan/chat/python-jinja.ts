import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';
import { isJsonArray, isJsonNumber, isJsonObject } from '../../lib/json.ts';
import type { JsonValue } from '../../types.ts';
import { pythonNumber } from './python-json.ts';

/**
 * Chat templates rendered as Python's jinja2 renders them, as a layer over the public exports of @huggingface/jinja
 * 0.5.11 (pinned: two of its methods are reached at run time). What the stock renderer does differently and logs hit:
 * strip with arguments, `tojson` of floats, long integers and key order, None / True / float text, the clock.
 * The string class is shared by the whole process, so stock rendering cannot be compared after this module is loaded.
 */

interface Runtime {
  readonly type: string;
  readonly value: unknown;
  /** The number as it was written in the log. */
  lexeme?: string;
}
type RuntimeClass = new (value?: unknown) => Runtime;

const classOf = (value: unknown): RuntimeClass => new Environment().set('probe', value).constructor;
const StringValue = classOf('');
const IntegerValue = classOf(1);
const FloatValue = classOf(1.5);
const BooleanValue = classOf(true);
const NullValue = classOf(null);
const ObjectValue = classOf({});
const ArrayValue = classOf([]);
const UndefinedValue = classOf(undefined);
const FunctionValue = classOf(() => null);

/** `instanceof` narrows to never here: the classes are only known at run time. */
const is = (value: Runtime | undefined, kind: RuntimeClass): boolean => value instanceof kind;

/** Our lossless JSON → the interpreter's values, numbers with their lexeme. */
function toRuntime(value: JsonValue): Runtime {
  if (value === null) return new NullValue(null);
  if (typeof value === 'string') return new StringValue(value);
  if (typeof value === 'boolean') return new BooleanValue(value);
  if (isJsonNumber(value)) {
    const number = new (/[.eEN]/.test(value.lexeme) ? FloatValue : IntegerValue)(Number(value.lexeme));
    number.lexeme = value.lexeme;
    return number;
  }
  if (isJsonArray(value)) return new ArrayValue(value.map(toRuntime));
  if (isJsonObject(value)) return new ObjectValue(new Map(Array.from(value, ([key, item]) => [key, toRuntime(item)])));
  throw new TypeError('not a JSON value');
}

function numberText(value: Runtime): string {
  if (value.lexeme !== undefined) return pythonNumber(value.lexeme);
  const number = value.value as number;
  return is(value, FloatValue)
    ? pythonNumber(Number.isInteger(number) ? `${number}.0` : String(number))
    : String(number);
}

function quoted(text: string): string {
  return JSON.stringify(text).replace(/\\u(d[89a-f][0-9a-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** json.dumps(…, ensure_ascii=False, indent=indent) */
function dump(value: Runtime, indent: number | null, depth: number): string {
  if (is(value, StringValue)) return quoted(value.value as string);
  if (is(value, NullValue) || value.value === undefined) return 'null';
  if (is(value, BooleanValue)) return value.value === true ? 'true' : 'false';
  if (is(value, IntegerValue) || is(value, FloatValue)) return numberText(value);
  const open = indent === null ? '' : `\n${' '.repeat(indent * (depth + 1))}`;
  const close = indent === null ? '' : `\n${' '.repeat(indent * depth)}`;
  const separator = indent === null ? ', ' : `,${open}`;
  if (value.value instanceof Map) {
    const items = Array.from(
      value.value as Map<string, Runtime>,
      ([key, item]) => `${quoted(key)}: ${dump(item, indent, depth + 1)}`,
    );
    return items.length === 0 ? '{}' : `{${open}${items.join(separator)}${close}}`;
  }
  if (Array.isArray(value.value)) {
    const items = (value.value as Runtime[]).map((item) => dump(item, indent, depth + 1));
    return items.length === 0 ? '[]' : `[${open}${items.join(separator)}${close}]`;
  }
  throw new Error(`Object of type ${value.type} is not JSON serializable`);
}

/** str() and json.dumps() differ for what JSON has no word for. */
function printedNumber(value: Runtime): string {
  const words: Readonly<Record<string, string>> = { NaN: 'nan', Infinity: 'inf', '-Infinity': '-inf' };
  const written = numberText(value);
  return words[written] ?? written;
}

/** str(value) in Python. */
function text(value: Runtime): string {
  if (is(value, StringValue)) return value.value as string;
  if (value.value === undefined) return '';
  if (is(value, NullValue)) return 'None';
  if (is(value, BooleanValue)) return value.value === true ? 'True' : 'False';
  if (is(value, IntegerValue) || is(value, FloatValue)) return printedNumber(value);
  return repr(value);
}

function repr(value: Runtime): string {
  if (is(value, StringValue)) {
    const raw = value.value as string;
    const quote = raw.includes("'") && !raw.includes('"') ? '"' : "'";
    const body = raw
      .replaceAll('\\', '\\\\')
      .replaceAll('\n', '\\n')
      .replaceAll('\r', '\\r')
      .replaceAll('\t', '\\t')
      .replaceAll(quote, `\\${quote}`)
      // Python escapes what it does not call printable: controls, separators other than space, unassigned, surrogates.
      .replace(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (char) => {
        const code = char.codePointAt(0)!;
        if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`;
        return code <= 0xffff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
      });
    return `${quote}${body}${quote}`;
  }
  if (value.value instanceof Map)
    return `{${Array.from(value.value as Map<string, Runtime>, ([key, item]) => `${repr(new StringValue(key))}: ${repr(item)}`).join(', ')}}`;
  if (Array.isArray(value.value)) return `[${(value.value as Runtime[]).map(repr).join(', ')}]`;
  return text(value);
}

/** Code points that str.strip() without an argument removes. */
const PYTHON_SPACE = /^[\t-\r\u001c-\u001f \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$/;

export function pythonStrip(value: string, chars: string | null, sides: 'both' | 'left' | 'right'): string {
  const points = Array.from(value);
  const set = chars === null ? null : new Set(Array.from(chars));
  const strips = (char: string): boolean => (set === null ? PYTHON_SPACE.test(char) : set.has(char));
  let from = 0;
  let to = points.length;
  if (sides !== 'right') while (from < to && strips(points[from])) from += 1;
  if (sides !== 'left') while (to > from && strips(points[to - 1])) to -= 1;
  return points.slice(from, to).join('');
}

const stockBuiltins = Object.getOwnPropertyDescriptor(StringValue.prototype, 'builtins');
Object.defineProperty(StringValue.prototype, 'builtins', {
  get(this: Runtime) {
    const map = stockBuiltins?.get?.call(this) as Map<string, Runtime>;
    for (const [name, sides] of [
      ['strip', 'both'],
      ['lstrip', 'left'],
      ['rstrip', 'right'],
    ] as const) {
      map.set(
        name,
        new FunctionValue((args: readonly Runtime[]) => {
          const chars = is(args[0], StringValue) ? (args[0].value as string) : null;
          return new StringValue(pythonStrip(this.value as string, chars, sides));
        }),
      );
    }
    return map;
  },
});

/** Python's ==: containers by value, a string is never equal to a number. */
function equal(a: Runtime, b: Runtime): boolean {
  if (a.value instanceof Map && b.value instanceof Map) {
    const [left, right] = [a.value as Map<string, Runtime>, b.value as Map<string, Runtime>];
    return (
      left.size === right.size &&
      Array.from(left).every(([key, item]) => right.has(key) && equal(item, right.get(key)!))
    );
  }
  if (Array.isArray(a.value) && Array.isArray(b.value)) {
    const [left, right] = [a.value as Runtime[], b.value as Runtime[]];
    return left.length === right.length && left.every((item, index) => equal(item, right[index]));
  }
  if (is(a, StringValue) !== is(b, StringValue)) return false;
  const plain = (value: Runtime): unknown => (is(value, BooleanValue) ? Number(value.value) : value.value);
  return plain(a) === plain(b);
}

const PYTHON_TYPES: Readonly<Record<string, string>> = {
  ObjectValue: 'dict',
  ArrayValue: 'list',
  IntegerValue: 'int',
  FloatValue: 'float',
  BooleanValue: 'bool',
  NullValue: 'NoneType',
  TupleValue: 'tuple',
};

// Undefined has __iter__ in jinja2, dictionaries and strings too.
(new Environment().tests as unknown as Map<string, (...args: readonly Runtime[]) => boolean>).set('iterable', (value) =>
  ['ArrayValue', 'TupleValue', 'StringValue', 'ObjectValue', 'UndefinedValue'].includes(value.type),
);

interface FilterNode {
  readonly type: string;
  readonly value?: string;
  readonly callee?: { readonly value: string };
}
/** The methods of the stock interpreter that are reached at run time. */
interface StockInterpreter {
  run(program: unknown): Runtime;
  evaluate(statement: unknown, environment: Environment): Runtime;
  applyFilter(operand: Runtime, filter: FilterNode, environment: Environment): Runtime;
  evaluateArguments(args: unknown, environment: Environment): [Runtime[], Map<string, Runtime>];
  evaluateBlock(statements: readonly { readonly type: string }[], environment: Environment): Runtime;
  evaluateFor(node: ForNode, environment: Environment): Runtime;
  evaluateBinaryExpression(node: BinaryNode, environment: Environment): Runtime;
}
interface ForNode {
  readonly iterable: { readonly type: string };
  readonly defaultBlock: readonly { readonly type: string }[];
}
interface BinaryNode {
  readonly operator: { readonly value: string };
  readonly left: unknown;
  readonly right: unknown;
}
/** Filters that Python applies to str(value), whatever the value is. */
const TEXT_FILTERS = new Set(['upper', 'lower', 'title', 'capitalize']);
const Stock = Interpreter as unknown as new (environment: Environment) => StockInterpreter;

const SILENT = new Set(['Set', 'If', 'For', 'Macro', 'Comment', 'Break', 'Continue']);

class PythonInterpreter extends Stock {
  override applyFilter(operand: Runtime, filter: FilterNode, environment: Environment): Runtime {
    const name = filter.type === 'Identifier' ? filter.value : filter.callee?.value;
    if (name === 'tojson') {
      let indent: number | null = null;
      if (filter.type !== 'Identifier') {
        const [, kwargs] = this.evaluateArguments((filter as unknown as { args: unknown }).args, environment);
        const given = kwargs.get('indent');
        if (typeof given?.value === 'number') indent = given.value;
      }
      return new StringValue(dump(operand, indent, 0));
    }
    if (name === 'trim' && filter.type === 'Identifier')
      return new StringValue(pythonStrip(text(operand), null, 'both'));
    if (name === 'string') return new StringValue(text(operand));
    if (name !== undefined && TEXT_FILTERS.has(name) && !is(operand, StringValue))
      return super.applyFilter(new StringValue(text(operand)), filter, environment);
    if ((name === 'reject' || name === 'select') && filter.type !== 'Identifier' && Array.isArray(operand.value)) {
      const [args] = this.evaluateArguments((filter as unknown as { args: unknown }).args, environment);
      const test = String(args[0]?.value);
      if (['equalto', 'eq', '==', 'sameas'].includes(test)) {
        return new ArrayValue(
          (operand.value as Runtime[]).filter((item) => equal(item, args[1]) === (name === 'select')),
        );
      }
    }
    return super.applyFilter(operand, filter, environment);
  }

  /** A loop over what is undefined is empty (None is an error). */
  override evaluateFor(node: ForNode, environment: Environment): Runtime {
    if (node.iterable.type !== 'SelectExpression' && is(this.evaluate(node.iterable, environment), UndefinedValue)) {
      return this.evaluateBlock(node.defaultBlock, environment);
    }
    return super.evaluateFor(node, environment);
  }

  override evaluateBinaryExpression(node: BinaryNode, environment: Environment): Runtime {
    const operator = node.operator.value;
    if (operator === '==' || operator === '!=') {
      return new BooleanValue(
        equal(this.evaluate(node.left, environment), this.evaluate(node.right, environment)) === (operator === '=='),
      );
    }
    if (operator === '+') {
      const [left, right] = [this.evaluate(node.left, environment), this.evaluate(node.right, environment)];
      const other = is(left, StringValue) ? right : is(right, StringValue) ? left : null;
      const type = other === null ? undefined : PYTHON_TYPES[other.type];
      if (type !== undefined) throw new Error(`can only concatenate str (not "${type}") to str`);
    }
    return super.evaluateBinaryExpression(node, environment);
  }

  /** Output statements print as Python's str() does. */
  override evaluateBlock(statements: readonly { readonly type: string }[], environment: Environment): Runtime {
    let out = '';
    for (const statement of statements) {
      const value = this.evaluate(statement, environment);
      if (is(value, StringValue)) out += value.value as string;
      else if (!SILENT.has(statement.type)) out += text(value);
    }
    return new StringValue(out);
  }
}

export interface CompiledTemplate {
  /** @throws Error with the template's own reason */
  render(variables: ReadonlyMap<string, JsonValue>): string;
}

const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** strftime in the C locale. `now` is a local time without a zone. */
function strftime(now: Date, format: string): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const fields: Readonly<Record<string, string>> = {
    Y: String(now.getUTCFullYear()),
    m: two(now.getUTCMonth() + 1),
    d: two(now.getUTCDate()),
    H: two(now.getUTCHours()),
    M: two(now.getUTCMinutes()),
    S: two(now.getUTCSeconds()),
    B: MONTHS[now.getUTCMonth()],
    b: MONTHS[now.getUTCMonth()].slice(0, 3),
    A: DAYS[now.getUTCDay()],
    a: DAYS[now.getUTCDay()].slice(0, 3),
    y: two(now.getUTCFullYear() % 100),
    '%': '%',
  };
  return format.replace(/%([a-zA-Z%])/g, (whole, code: string) => fields[code] ?? whole);
}

/** @param clock ISO local time the template sees, e.g. 2026-11-30T09:00:00 */
export function compileTemplate(source: string, clock: string): CompiledTemplate {
  // transformers reads the file in text mode, so CRLF is \n there.
  const program = parse(tokenize(source.replace(/\r\n?/g, '\n'), { lstrip_blocks: true, trim_blocks: true }));
  const now = new Date(`${clock}Z`);
  return {
    render(variables) {
      const environment = new Environment();
      for (const [name, value] of [
        ['false', false],
        ['true', true],
        ['none', null],
        ['False', false],
        ['True', true],
        ['None', null],
      ] as const)
        environment.set(name, value);
      environment.set('raise_exception', (message: string) => {
        throw new Error(message);
      });
      environment.set('range', (start: number, stop?: number, step = 1) => {
        const [from, to] = stop === undefined ? [0, start] : [start, stop];
        const count = Math.max(0, Math.ceil((to - from) / step));
        if (count > 1_000_000) throw new Error(`range of ${count} is larger than 1,000,000`);
        return Array.from({ length: count }, (_, index) => from + index * step);
      });
      environment.set('strftime_now', (format: string) => strftime(now, format));
      for (const [name, value] of variables) environment.variables.set(name, toRuntime(value));
      return String(new PythonInterpreter(environment).run(program).value);
    },
  };
}
