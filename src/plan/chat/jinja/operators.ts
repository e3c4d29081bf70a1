import type { Budget } from './budget.ts';
import {
  compare,
  demand,
  equal,
  isDict,
  isNumeric,
  itemsOf,
  PythonError,
  str,
  Tuple,
  typeName,
  type Value,
} from './values.ts';

/** Python's binary operators on the values of a template (`and` and `or` do not evaluate both sides and are elsewhere). */
type Operator = (left: Value, right: Value, budget: Budget) => Value;

type Numeric = bigint | number;
const number = (value: Value): Numeric | null =>
  typeof value === 'boolean' ? BigInt(value) : isNumeric(value) ? value : null;

function unsupported(operator: string, left: Value, right: Value): PythonError {
  return new PythonError(
    'TypeError',
    `unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`,
  );
}

const arithmetic =
  (symbol: string, whole: (a: bigint, b: bigint) => Value, real: (a: number, b: number) => number): Operator =>
  (left, right) => {
    demand(left);
    demand(right);
    const [a, b] = [number(left), number(right)];
    if (a === null || b === null) throw unsupported(symbol, left, right);
    return typeof a === 'bigint' && typeof b === 'bigint' ? whole(a, b) : real(Number(a), Number(b));
  };

function nonZero<T extends Numeric>(b: T, message: string): T {
  if (Number(b) === 0) throw new PythonError('ZeroDivisionError', message);
  return b;
}

/** Bits beyond which no template needs an integer. */
const MOST_BITS = 4096;
function power(a: bigint, b: bigint): Value {
  if (b < 0n) return Number(a) ** Number(b);
  if (BigInt(a.toString(2).length) * b > MOST_BITS) throw new PythonError('OverflowError', 'exponent too large');
  return a ** b;
}

const floorDivide = (a: bigint, b: bigint): bigint => {
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
};

const add: Operator = (left, right, budget) => {
  demand(left);
  demand(right);
  if (typeof left === 'string') {
    if (typeof right !== 'string')
      throw new PythonError('TypeError', `can only concatenate str (not "${typeName(right)}") to str`);
    budget.text(left.length + right.length);
    return left + right;
  }
  const items = itemsOf(left);
  if (items) {
    const other = itemsOf(right);
    if (!other || typeName(left) !== typeName(right))
      throw new PythonError(
        'TypeError',
        `can only concatenate ${typeName(left)} (not "${typeName(right)}") to ${typeName(left)}`,
      );
    budget.text(items.length + other.length);
    const joined = [...items, ...other];
    return left instanceof Tuple ? new Tuple(joined) : joined;
  }
  return arithmetic(
    '+',
    (a, b) => a + b,
    (a, b) => a + b,
  )(left, right, budget);
};

const multiply: Operator = (left, right, budget) => {
  for (const [value, times] of [
    [left, right],
    [right, left],
  ] as const) {
    if (typeof times !== 'bigint' && typeof times !== 'boolean') continue;
    const count = Math.max(0, Number(times));
    if (typeof value === 'string') {
      budget.text(value.length * count);
      return value.repeat(count);
    }
    if (Array.isArray(value)) {
      const items = value as readonly Value[];
      budget.text(items.length * count);
      return Array.from({ length: count }, () => items).flat();
    }
  }
  return arithmetic(
    '*',
    (a, b) => a * b,
    (a, b) => a * b,
  )(left, right, budget);
};

function contains(container: Value, item: Value, budget: Budget): boolean {
  if (typeof container === 'string') {
    if (typeof item !== 'string')
      throw new PythonError('TypeError', `'in <string>' requires string as left operand, not ${typeName(item)}`);
    budget.search(container, item);
    return container.includes(item);
  }
  if (isDict(container)) {
    if (Array.isArray(item) || isDict(item)) throw new PythonError('TypeError', `unhashable type: '${typeName(item)}'`);
    return typeof item === 'string' && container.has(item);
  }
  const items = itemsOf(container);
  if (items) {
    budget.step(items.length);
    return items.some((other) => equal(other, item));
  }
  if (typeName(container) === 'Undefined') return false;
  throw new PythonError('TypeError', `argument of type '${typeName(container)}' is not iterable`);
}

export const OPERATORS: Readonly<Record<string, Operator>> = {
  '==': (left, right) => equal(left, right),
  '!=': (left, right) => !equal(left, right),
  '<': (left, right) => compare(left, right, '<') < 0,
  '<=': (left, right) => compare(left, right, '<=') <= 0,
  '>': (left, right) => compare(left, right, '>') > 0,
  '>=': (left, right) => compare(left, right, '>=') >= 0,
  in: (left, right, budget) => contains(right, left, budget),
  'not in': (left, right, budget) => !contains(right, left, budget),
  '~': (left, right, budget) => {
    const [a, b] = [str(left), str(right)];
    budget.text(a.length + b.length);
    return a + b;
  },
  '+': add,
  '-': arithmetic(
    '-',
    (a, b) => a - b,
    (a, b) => a - b,
  ),
  '*': multiply,
  '/': arithmetic(
    '/',
    (a, b) => Number(a) / Number(nonZero(b, 'division by zero')),
    (a, b) => a / nonZero(b, 'float division by zero'),
  ),
  '//': arithmetic(
    '//',
    (a, b) => floorDivide(a, nonZero(b, 'integer division or modulo by zero')),
    (a, b) => Math.floor(a / nonZero(b, 'float floor division by zero')),
  ),
  '%': (left, right, budget) => {
    if (typeof left === 'string')
      throw new PythonError('NotImplementedError', 'text formatting with % is not supported');
    return arithmetic(
      '%',
      (a, b) => a - b * floorDivide(a, nonZero(b, 'integer division or modulo by zero')),
      (a, b) => a - b * Math.floor(a / nonZero(b, 'float modulo')),
    )(left, right, budget);
  },
  '**': arithmetic('**', power, (a, b) => a ** b),
};
