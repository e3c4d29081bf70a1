import type { Budget } from './budget.ts';
import {
  type CallArguments,
  Callable,
  compare,
  demand,
  type Dict,
  equal,
  isDict,
  itemsOf,
  LoopState,
  Namespace,
  PythonError,
  str,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from './values.ts';
import {
  capitalize,
  codePoints,
  isSpace,
  pythonLines,
  pythonReplace,
  pythonSplit,
  pythonStrip,
  titleWords,
} from './text.ts';

/** Python's methods of str, dict and list, as far as the immutable sandbox of transformers lets a template use them. */
type Method<Self> = (self: Self, given: CallArguments, budget: Budget) => Value;

const argument = (given: CallArguments, at: number, name: string): Value | undefined =>
  at < given.positional.length ? given.positional[at] : given.named.get(name);

function text(value: Value | undefined, what: string): string {
  if (typeof value === 'string') return value;
  if (value !== undefined) demand(value);
  throw new PythonError('TypeError', `${what} must be str, not ${value === undefined ? 'missing' : typeName(value)}`);
}

function count(value: Value | undefined, fallback: number): number {
  if (value === undefined) return fallback;
  if (typeof value === 'bigint' || typeof value === 'boolean') return Number(value);
  throw new PythonError('TypeError', `'${typeName(value)}' object cannot be interpreted as an integer`);
}

const strip =
  (name: string, sides: 'both' | 'left' | 'right'): Method<string> =>
  (self, given) => {
    const chars = given.positional[0] ?? null;
    if (chars !== null && typeof chars !== 'string') {
      demand(chars);
      throw new PythonError('TypeError', `${name} arg must be None or str`);
    }
    return pythonStrip(self, chars, sides);
  };

const split =
  (fromRight: boolean): Method<string> =>
  (self, given, budget) => {
    const separator = argument(given, 0, 'sep') ?? null;
    if (separator !== null && typeof separator !== 'string') {
      demand(separator);
      throw new PythonError('TypeError', `must be str or None, not ${typeName(separator)}`);
    }
    if (separator === '') throw new PythonError('ValueError', 'empty separator');
    budget.search(self, separator ?? ' ');
    return pythonSplit(self, separator, count(argument(given, 1, 'maxsplit'), -1), fromRight);
  };

const affix =
  (name: string, test: (self: string, part: string) => boolean): Method<string> =>
  (self, given) => {
    const part = given.positional[0];
    const parts = part instanceof Tuple ? part.items : [part];
    return parts.some((item) => {
      if (typeof item === 'string') return test(self, item);
      if (item !== undefined) demand(item);
      throw new PythonError(
        'TypeError',
        `${name} first arg must be str or a tuple of str, not ${item === undefined ? 'missing' : typeName(item)}`,
      );
    });
  };

const find =
  (last: boolean, raises: boolean): Method<string> =>
  (self, given, budget) => {
    const needle = text(given.positional[0], 'must be str: argument');
    budget.search(self, needle);
    const unit = last ? self.lastIndexOf(needle) : self.indexOf(needle);
    if (unit < 0 && raises) throw new PythonError('ValueError', 'substring not found');
    return unit < 0 ? -1n : BigInt(codePoints(self.slice(0, unit)));
  };

const every =
  (pattern: RegExp): Method<string> =>
  (self) =>
    pattern.test(self);

const partition =
  (last: boolean): Method<string> =>
  (self, given) => {
    const separator = text(given.positional[0], 'must be str: argument');
    const at = last ? self.lastIndexOf(separator) : self.indexOf(separator);
    if (at < 0) return new Tuple(last ? ['', '', self] : [self, '', '']);
    return new Tuple([self.slice(0, at), separator, self.slice(at + separator.length)]);
  };

const pad =
  (side: 'left' | 'right'): Method<string> =>
  (self, given, budget) => {
    const width = count(given.positional[0], 0);
    const fill = str(given.positional[1] ?? ' ');
    const missing = Math.max(0, width - codePoints(self));
    budget.text(missing);
    return side === 'left' ? fill.repeat(missing) + self : self + fill.repeat(missing);
  };

const STRING: Readonly<Record<string, Method<string>>> = {
  upper: (self) => self.toUpperCase(),
  lower: (self) => self.toLowerCase(),
  casefold: (self) => self.toLowerCase(),
  strip: strip('strip', 'both'),
  lstrip: strip('lstrip', 'left'),
  rstrip: strip('rstrip', 'right'),
  title: (self) => titleWords(self),
  capitalize: (self) => capitalize(self),
  split: split(false),
  rsplit: split(true),
  splitlines: (self) => pythonLines(self),
  startswith: affix('startswith', (self, part) => self.startsWith(part)),
  endswith: affix('endswith', (self, part) => self.endsWith(part)),
  replace: (self, given, budget) => {
    const old = text(argument(given, 0, 'old'), 'replace() argument 1');
    const by = text(argument(given, 1, 'new'), 'replace() argument 2');
    budget.search(self, old);
    const hits = old === '' ? self.length + 1 : self.split(old).length - 1;
    budget.text(self.length + hits * by.length);
    return pythonReplace(self, old, by, count(argument(given, 2, 'count'), -1));
  },
  join: (self, given, budget) => {
    const items = itemsOf(given.positional[0] ?? null);
    if (!items) throw new PythonError('TypeError', 'can only join an iterable');
    const parts = items.map((item, index) => {
      if (typeof item === 'string') return item;
      throw new PythonError('TypeError', `sequence item ${index}: expected str instance, ${typeName(item)} found`);
    });
    budget.text(parts.reduce((sum, part) => sum + part.length + self.length, 0));
    return parts.join(self);
  },
  find: find(false, false),
  rfind: find(true, false),
  index: find(false, true),
  rindex: find(true, true),
  count: (self, given, budget) => {
    const needle = text(given.positional[0], 'must be str: argument');
    budget.search(self, needle);
    return BigInt(needle === '' ? codePoints(self) + 1 : self.split(needle).length - 1);
  },
  isdigit: every(/^\p{Nd}+$/u),
  isdecimal: every(/^\p{Nd}+$/u),
  isnumeric: every(/^\p{N}+$/u),
  isalpha: every(/^\p{L}+$/u),
  isalnum: every(/^[\p{L}\p{N}]+$/u),
  isspace: (self) => self !== '' && Array.from(self).every(isSpace),
  isupper: (self) => self !== self.toLowerCase() && self === self.toUpperCase(),
  islower: (self) => self !== self.toUpperCase() && self === self.toLowerCase(),
  ljust: pad('right'),
  rjust: pad('left'),
  zfill: (self, given) => {
    const missing = Math.max(0, count(given.positional[0], 0) - codePoints(self));
    const sign = /^[+-]/.exec(self)?.[0] ?? '';
    return sign + '0'.repeat(Math.min(missing, 1000)) + self.slice(sign.length);
  },
  partition: partition(false),
  rpartition: partition(true),
  removeprefix: (self, given) => {
    const part = text(given.positional[0], 'removeprefix() argument');
    return self.startsWith(part) ? self.slice(part.length) : self;
  },
  removesuffix: (self, given) => {
    const part = text(given.positional[0], 'removesuffix() argument');
    return part !== '' && self.endsWith(part) ? self.slice(0, -part.length) : self;
  },
};

const DICT: Readonly<Record<string, Method<Dict>>> = {
  get: (self, given) => {
    const key = given.positional[0];
    const found = typeof key === 'string' ? self.get(key) : undefined;
    if (found !== undefined) return found;
    return given.positional.length > 1 ? given.positional[1] : null;
  },
  items: (self) => Array.from(self, ([key, value]) => new Tuple([key, value])),
  keys: (self) => [...self.keys()],
  values: (self) => [...self.values()],
  copy: (self) => self,
};

const LIST: Readonly<Record<string, Method<readonly Value[]>>> = {
  index: (self, given) => {
    const at = self.findIndex((item) => equal(item, given.positional[0]));
    if (at < 0) throw new PythonError('ValueError', `${str(given.positional[0])} is not in list`);
    return BigInt(at);
  },
  count: (self, given) => BigInt(self.filter((item) => equal(item, given.positional[0])).length),
};

/** Methods that change their object: jinja2's immutable sandbox gives them out as an error waiting to be called. */
const MUTATING: Readonly<Record<'dict' | 'list', ReadonlySet<string>>> = {
  dict: new Set(['clear', 'pop', 'popitem', 'setdefault', 'update']),
  list: new Set(['append', 'clear', 'pop', 'reverse', 'insert', 'sort', 'extend', 'remove']),
};

const LOOP: Readonly<Record<string, (loop: LoopState) => Value>> = {
  index: (loop) => BigInt(loop.at + 1),
  index0: (loop) => BigInt(loop.at),
  revindex: (loop) => BigInt(loop.items.length - loop.at),
  revindex0: (loop) => BigInt(loop.items.length - loop.at - 1),
  first: (loop) => loop.at === 0,
  last: (loop) => loop.at === loop.items.length - 1,
  length: (loop) => BigInt(loop.items.length),
  previtem: (loop) => (loop.at === 0 ? new Undefined('there is no previous item') : loop.items[loop.at - 1]),
  nextitem: (loop) =>
    loop.at === loop.items.length - 1 ? new Undefined('there is no next item') : loop.items[loop.at + 1],
  // Recursive loops are no syntax of the parser.
  depth: () => 1n,
  depth0: () => 0n,
  cycle: (loop) =>
    new Callable(({ positional }) => {
      if (positional.length === 0) throw new PythonError('TypeError', 'no items for cycling given');
      return positional[loop.at % positional.length];
    }),
};

const own = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** Python's getattr for what a value has of itself; undefined = nothing of that name. */
export function builtinAttribute(value: Value, name: string, budget: Budget): Value | undefined {
  const bind = <Self>(self: Self, method: Method<Self> | undefined): Value | undefined =>
    method === undefined ? undefined : new Callable((given) => method(self, given, budget));
  if (/^__\w+__$/.test(name) && !(value instanceof Namespace)) return unsafe(value, name);
  if (typeof value === 'string') return bind(value, own(STRING, name));
  if (isDict(value)) return MUTATING.dict.has(name) ? unsafe(value, name) : bind(value, own(DICT, name));
  if (Array.isArray(value)) {
    if (MUTATING.list.has(name)) return unsafe(value, name);
    if (name === 'copy') return new Callable(() => value as readonly Value[]);
    return bind(value as readonly Value[], own(LIST, name));
  }
  if (value instanceof Tuple) return bind(value.items, own(LIST, name));
  if (value instanceof Namespace) return value.attributes.get(name);
  if (value instanceof LoopState) return own(LOOP, name)?.(value);
  return undefined;
}

function unsafe(value: Value, name: string): Undefined {
  return new Undefined(`access to attribute '${name}' of '${typeName(value)}' object is unsafe.`, 'SecurityError');
}

/** @throws PythonError TypeError for what has no len() */
export function lengthOf(value: Value): bigint {
  if (typeof value === 'string') return BigInt(codePoints(value));
  if (value instanceof Undefined) return 0n;
  const items = itemsOf(value);
  if (items) return BigInt(items.length);
  if (isDict(value)) return BigInt(value.size);
  throw new PythonError('TypeError', `object of type '${typeName(value)}' has no len()`);
}

/** Sorts as Python's sorted() does: stable, with its errors for values without an order. */
export function sorted(items: readonly Value[], key: (item: Value) => Value, reverse: boolean): Value[] {
  const keyed = items.map((item) => ({ item, key: key(item) }));
  keyed.sort((a, b) => (reverse ? compare(b.key, a.key) : compare(a.key, b.key)));
  return keyed.map(({ item }) => item);
}
