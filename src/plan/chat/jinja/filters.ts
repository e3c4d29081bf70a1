import { floatJson, stringJson } from '../python-json.ts';
import type { Budget } from './budget.ts';
import { lengthOf, sorted } from './methods.ts';
import { capitalize, indentLines, pythonReplace, pythonStrip, titleFilter } from './text.ts';
import { testNamed } from './tests.ts';
import {
  type CallArguments,
  compare,
  demand,
  equal,
  isDict,
  isNumeric,
  iterate,
  itemsOf,
  PythonError,
  str,
  truth,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from './values.ts';

/** What a filter needs of the interpreter. */
export interface FilterContext {
  readonly budget: Budget;
  /** jinja2's environment.getitem. */
  item(value: Value, key: Value): Value;
}

export type Filter = (value: Value, given: CallArguments, context: FilterContext) => Value;

const argument = (given: CallArguments, at: number, name: string): Value | undefined =>
  at < given.positional.length ? given.positional[at] : given.named.get(name);
const flag = (given: CallArguments, at: number, name: string): boolean => truth(argument(given, at, name) ?? false);
const integer = (value: Value | undefined, fallback: number): number =>
  typeof value === 'bigint' ? Number(value) : fallback;

interface Layout {
  readonly indent: string | null;
  readonly item: string;
  readonly key: string;
  readonly ascii: boolean;
  readonly sort: boolean;
}

/** json.dumps(value, ensure_ascii=False) with the options that transformers' tojson passes on. */
function dump(value: Value, layout: Layout, depth: number): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (typeof value === 'string') return stringJson(value, layout.ascii);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number') return floatJson(value);
  const open = layout.indent === null ? '' : `\n${layout.indent.repeat(depth + 1)}`;
  const close = layout.indent === null ? '' : `\n${layout.indent.repeat(depth)}`;
  const items = itemsOf(value);
  if (items) {
    const parts = items.map((item) => dump(item, layout, depth + 1));
    return parts.length === 0 ? '[]' : `[${open}${parts.join(layout.item + open)}${close}]`;
  }
  if (isDict(value)) {
    const entries = layout.sort ? [...value].sort((a, b) => compare(a[0], b[0])) : [...value];
    const parts = entries.map(
      ([key, item]) => `${stringJson(key, layout.ascii)}${layout.key}${dump(item, layout, depth + 1)}`,
    );
    return parts.length === 0 ? '{}' : `{${open}${parts.join(layout.item + open)}${close}}`;
  }
  throw new PythonError('TypeError', `Object of type ${typeName(value)} is not JSON serializable`);
}

const tojson: Filter = (value, given, { budget }) => {
  const indent = argument(given, 1, 'indent') ?? null;
  const separators = itemsOf(argument(given, 2, 'separators') ?? null);
  const text = dump(
    value,
    {
      indent: indent === null ? null : typeof indent === 'string' ? indent : ' '.repeat(integer(indent, 0)),
      item: separators ? str(separators[0]) : indent === null ? ', ' : ',',
      key: separators ? str(separators[1]) : ': ',
      ascii: flag(given, 0, 'ensure_ascii'),
      sort: flag(given, 3, 'sort_keys'),
    },
    0,
  );
  budget.text(text.length);
  return text;
};

/** jinja2's make_attrgetter: "a.b.0". */
function attributeOf(item: Value, path: Value, context: FilterContext): Value {
  const parts: readonly Value[] =
    typeof path === 'string' ? path.split('.').map((part) => (/^\d+$/.test(part) ? BigInt(part) : part)) : [path];
  return parts.reduce<Value>((value, part) => context.item(value, part), item);
}

const map: Filter = (value, given, context) => {
  const attribute = given.named.get('attribute');
  const items = iterate(value);
  if (given.positional.length === 0 && attribute !== undefined) {
    const fallback = given.named.get('default');
    return items.map((item) => {
      const found = attributeOf(item, attribute, context);
      return found instanceof Undefined && fallback !== undefined ? fallback : found;
    });
  }
  if (given.positional.length === 0) throw new PythonError('FilterArgumentError', 'map requires a filter argument');
  const filter = filterNamed(str(given.positional[0]));
  const rest = { positional: given.positional.slice(1), named: given.named };
  return items.map((item) => filter(item, rest, context));
};

/** select, reject, selectattr, rejectattr */
const choose =
  (keep: boolean, byAttribute: boolean): Filter =>
  (value, given, context) => {
    const skip = byAttribute ? 1 : 0;
    const name = given.positional[skip];
    const test = name === undefined ? truth : testNamed(str(name));
    const rest = given.positional.slice(skip + 1);
    return iterate(value).filter((item) => {
      const subject = byAttribute ? attributeOf(item, given.positional[0], context) : item;
      return test(subject, rest, context.budget) === keep;
    });
  };

const caseless = (value: Value): Value => (typeof value === 'string' ? value.toLowerCase() : value);

const sort: Filter = (value, given, context) => {
  const attribute = argument(given, 2, 'attribute') ?? null;
  const sensitive = flag(given, 1, 'case_sensitive');
  const key = (item: Value): Value => {
    const found = attribute === null ? item : attributeOf(item, attribute, context);
    return sensitive ? found : caseless(found);
  };
  return sorted(iterate(value), key, flag(given, 0, 'reverse'));
};

const dictsort: Filter = (value, given) => {
  demand(value);
  if (!isDict(value)) throw new PythonError('AttributeError', `'${typeName(value)}' object has no attribute 'items'`);
  const by = str(argument(given, 1, 'by') ?? 'key') === 'value' ? 1 : 0;
  const sensitive = flag(given, 0, 'case_sensitive');
  const pairs = Array.from(value, ([key, item]) => new Tuple([key, item]));
  const key = (pair: Value): Value => {
    const part = (pair as Tuple).items[by];
    return sensitive ? part : caseless(part);
  };
  return sorted(pairs, key, flag(given, 2, 'reverse'));
};

const unique: Filter = (value, given) => {
  const out: Value[] = [];
  const fold = flag(given, 0, 'case_sensitive') ? (item: Value): Value => item : caseless;
  for (const item of iterate(value)) if (!out.some((other) => equal(fold(other), fold(item)))) out.push(item);
  return out;
};

const extreme =
  (sign: 1 | -1): Filter =>
  (value) => {
    const items = iterate(value);
    if (items.length === 0) return new Undefined('No aggregated item, sequence was empty.');
    return items.reduce((best, item) => (sign * compare(caseless(item), caseless(best)) > 0 ? item : best));
  };

function toInteger(value: Value, fallback: Value): Value {
  demand(value);
  if (typeof value === 'bigint') return value;
  if (typeof value === 'boolean') return BigInt(value);
  if (typeof value === 'number') return Number.isFinite(value) ? BigInt(Math.trunc(value)) : fallback;
  if (typeof value !== 'string') return fallback;
  const text = pythonStrip(value, null, 'both');
  if (/^[+-]?\d+(?:_\d+)*$/.test(text)) return BigInt(text.replaceAll('_', '').replace(/^\+/, ''));
  const float = toFloat(value, null);
  return typeof float === 'number' && Number.isFinite(float) ? BigInt(Math.trunc(float)) : fallback;
}

function toFloat(value: Value, fallback: Value): Value {
  demand(value);
  if (isNumeric(value)) return Number(value);
  if (typeof value !== 'string') return fallback;
  const text = pythonStrip(value, null, 'both').toLowerCase();
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/.test(text)) return Number(text);
  const word = /^([+-]?)(inf|infinity|nan)$/.exec(text);
  if (!word) return fallback;
  return word[2] === 'nan' ? Number.NaN : word[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

const HTML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', "'": '&#39;', '"': '&#34;' };
const escape: Filter = (value) => str(value).replace(/[&<>'"]/g, (char) => HTML[char]);
const length: Filter = (value) => lengthOf(value);
const fallback: Filter = (value, given) => {
  const missing = value instanceof Undefined || (flag(given, 1, 'boolean') && !truth(value));
  if (!missing) return value;
  const given0 = argument(given, 0, 'default_value');
  return given0 === undefined ? '' : given0;
};

export const FILTERS: Readonly<Record<string, Filter>> = {
  tojson,
  map,
  select: choose(true, false),
  reject: choose(false, false),
  selectattr: choose(true, true),
  rejectattr: choose(false, true),
  sort,
  dictsort,
  unique,
  min: extreme(-1),
  max: extreme(1),
  sum: (value, given, { budget }) =>
    iterate(value).reduce<Value>(
      (total, item) => {
        budget.step();
        if (!isNumeric(total) || !isNumeric(item))
          throw new PythonError('TypeError', `unsupported operand type(s) for +: 'int' and '${typeName(item)}'`);
        return typeof total === 'number' || typeof item === 'number'
          ? Number(total) + Number(item)
          : BigInt(total) + BigInt(item);
      },
      argument(given, 1, 'start') ?? 0n,
    ),
  // Python applies these to str(value), whatever the value is.
  trim: (value, given) => {
    const chars = argument(given, 0, 'chars') ?? null;
    return pythonStrip(str(value), chars === null ? null : str(chars), 'both');
  },
  upper: (value) => str(value).toUpperCase(),
  lower: (value) => str(value).toLowerCase(),
  title: (value) => titleFilter(str(value)),
  capitalize: (value) => capitalize(str(value)),
  string: (value) => str(value),
  safe: (value) => str(value),
  escape,
  e: escape,
  replace: (value, given, { budget }) => {
    const [text, old, by] = [str(value), str(argument(given, 0, 'old') ?? ''), str(argument(given, 1, 'new') ?? '')];
    budget.search(text, old);
    const hits = old === '' ? text.length + 1 : text.split(old).length - 1;
    budget.text(text.length + hits * by.length);
    return pythonReplace(text, old, by, integer(argument(given, 2, 'count'), -1));
  },
  indent: (value, given, { budget }) => {
    const width = argument(given, 0, 'width') ?? 4n;
    const indention = typeof width === 'string' ? width : ' '.repeat(integer(width, 4));
    const text = str(value);
    budget.text(text.length + (text.split('\n').length + 1) * indention.length);
    return indentLines(text, indention, flag(given, 1, 'first'), flag(given, 2, 'blank'));
  },
  join: (value, given, context) => {
    const attribute = argument(given, 1, 'attribute');
    const parts = iterate(value).map((item) =>
      str(attribute === undefined ? item : attributeOf(item, attribute, context)),
    );
    const separator = str(argument(given, 0, 'd') ?? '');
    context.budget.text(parts.reduce((sum, part) => sum + part.length + separator.length, 0));
    return parts.join(separator);
  },
  default: fallback,
  d: fallback,
  length,
  count: length,
  list: (value) => [...iterate(value)],
  first: (value) => {
    const items = iterate(value);
    return items.length === 0 ? new Undefined('No first item, sequence was empty.') : items[0];
  },
  last: (value) => {
    const items = iterate(value);
    return items.length === 0 ? new Undefined('No last item, sequence was empty.') : items[items.length - 1];
  },
  reverse: (value) =>
    typeof value === 'string' ? Array.from(value).reverse().join('') : [...iterate(value)].reverse(),
  items: (value) => {
    if (value instanceof Undefined) return [];
    if (!isDict(value)) throw new PythonError('TypeError', 'Can only get item pairs from a mapping.');
    return Array.from(value, ([key, item]) => new Tuple([key, item]));
  },
  abs: (value) => {
    demand(value);
    if (typeof value === 'number') return Math.abs(value);
    if (typeof value === 'bigint' || typeof value === 'boolean') {
      const whole = BigInt(value);
      return whole < 0n ? -whole : whole;
    }
    throw new PythonError('TypeError', `bad operand type for abs(): '${typeName(value)}'`);
  },
  int: (value, given) => toInteger(value, argument(given, 0, 'default') ?? 0n),
  float: (value, given) => toFloat(value, argument(given, 0, 'default') ?? 0),
};

/** @throws PythonError TemplateRuntimeError as jinja2 does for a name it does not know */
export function filterNamed(name: string): Filter {
  if (!Object.hasOwn(FILTERS, name)) throw new PythonError('TemplateRuntimeError', `No filter named '${name}'.`);
  return FILTERS[name];
}
