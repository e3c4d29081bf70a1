import {
  Callable,
  type CallArguments,
  demand,
  isDict,
  iterate,
  Namespace,
  PythonError,
  str,
  typeName,
  type Value,
} from './values.ts';

/** What every template can call. @param raise_exception and the clock are transformers' own */
export function templateGlobals(strftimeNow: (format: string) => string): Map<string, Value> {
  const range = new Callable(({ positional }) => {
    const bounds = positional.map((value) => {
      demand(value);
      if (typeof value !== 'bigint' && typeof value !== 'boolean')
        throw new PythonError('TypeError', `'${typeName(value)}' object cannot be interpreted as an integer`);
      return Number(value);
    });
    const [start, stop, step] = bounds.length === 1 ? [0, bounds[0], 1] : [bounds[0], bounds[1], bounds[2] ?? 1];
    if (step === 0) throw new PythonError('ValueError', 'range() arg 3 must not be zero');
    const count = Math.max(0, Math.ceil((stop - start) / step));
    if (count > MOST_RANGE)
      throw new PythonError(
        'OverflowError',
        `Range too big. The sandbox blocks ranges larger than MAX_RANGE (${MOST_RANGE}).`,
      );
    return Array.from({ length: count }, (_, index) => BigInt(start + index * step));
  });
  const entries = (given: CallArguments): Map<string, Value> => {
    const out = new Map<string, Value>();
    const first = given.positional[0];
    if (isDict(first ?? null)) for (const [key, item] of first as ReadonlyMap<string, Value>) out.set(key, item);
    else if (first !== undefined)
      for (const pair of iterate(first)) {
        const [key, item] = iterate(pair);
        out.set(str(key), item);
      }
    for (const [key, item] of given.named) out.set(key, item);
    return out;
  };
  return new Map<string, Value>([
    ['true', true],
    ['false', false],
    ['none', null],
    ['True', true],
    ['False', false],
    ['None', null],
    ['range', range],
    ['namespace', new Callable((given) => new Namespace(entries(given)))],
    ['dict', new Callable(entries)],
    [
      'raise_exception',
      new Callable(({ positional }) => {
        throw new PythonError('TemplateError', str(positional.length > 0 ? positional[0] : null));
      }),
    ],
    ['strftime_now', new Callable(({ positional }) => strftimeNow(str(positional.length > 0 ? positional[0] : null)))],
  ]);
}

/** jinja2.sandbox.MAX_RANGE */
const MOST_RANGE = 100_000;
