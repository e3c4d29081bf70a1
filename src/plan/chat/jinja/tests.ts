import type { Budget } from './budget.ts';
import { OPERATORS } from './operators.ts';
import {
  Callable,
  demand,
  equal,
  isDict,
  isNumeric,
  itemsOf,
  PythonError,
  str,
  truth,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from './values.ts';

/** `x is name`, and `select('name', …)`: jinja2's tests. */
export type Test = (value: Value, given: readonly Value[], budget: Budget) => boolean;

const remainder = (value: Value, by: bigint): bigint => {
  demand(value);
  if (typeof value !== 'bigint' && typeof value !== 'boolean')
    throw new PythonError('TypeError', `unsupported operand type(s) for %: '${typeName(value)}' and 'int'`);
  return ((BigInt(value) % by) + by) % by;
};

const operator =
  (symbol: string): Test =>
  (value, given, budget) =>
    truth(OPERATORS[symbol](value, given[0], budget));

const equalTo: Test = (value, given) => equal(value, given[0]);

export const TESTS: Readonly<Record<string, Test>> = {
  defined: (value) => !(value instanceof Undefined),
  undefined: (value) => value instanceof Undefined,
  none: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  true: (value) => value === true,
  false: (value) => value === false,
  integer: (value) => typeof value === 'bigint',
  float: (value) => typeof value === 'number',
  number: (value) => isNumeric(value),
  string: (value) => typeof value === 'string',
  mapping: (value) => isDict(value),
  // Undefined has __iter__ and __getitem__ in jinja2; dicts and strings are sequences for it too.
  iterable: (value) =>
    typeof value === 'string' || itemsOf(value) !== null || isDict(value) || value instanceof Undefined,
  sequence: (value) =>
    typeof value === 'string' || itemsOf(value) !== null || isDict(value) || value instanceof Undefined,
  callable: (value) => value instanceof Callable,
  odd: (value) => remainder(value, 2n) === 1n,
  even: (value) => remainder(value, 2n) === 0n,
  divisibleby: (value, given) => typeof given[0] === 'bigint' && remainder(value, given[0]) === 0n,
  lower: (value) => str(value) === str(value).toLowerCase() && str(value) !== str(value).toUpperCase(),
  upper: (value) => str(value) === str(value).toUpperCase() && str(value) !== str(value).toLowerCase(),
  in: operator('in'),
  sameas: (value, given) => value === given[0] || (value instanceof Tuple && value === given[0]),
  equalto: equalTo,
  eq: equalTo,
  '==': equalTo,
  ne: (value, given) => !equal(value, given[0]),
  '!=': (value, given) => !equal(value, given[0]),
  lt: operator('<'),
  lessthan: operator('<'),
  '<': operator('<'),
  le: operator('<='),
  '<=': operator('<='),
  gt: operator('>'),
  greaterthan: operator('>'),
  '>': operator('>'),
  ge: operator('>='),
  '>=': operator('>='),
  filter: () => true,
  test: () => true,
  escaped: () => false,
};

/** @throws PythonError TemplateRuntimeError as jinja2 does for a name it does not know */
export function testNamed(name: string): Test {
  if (!Object.hasOwn(TESTS, name)) throw new PythonError('TemplateRuntimeError', `No test named '${name}'.`);
  return TESTS[name];
}
