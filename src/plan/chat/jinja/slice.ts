import type { Budget } from './budget.ts';
import { demand, isDict, itemsOf, PythonError, str, Tuple, typeName, type Value } from './values.ts';

/**
 * Python's `object[start:stop:step]` of a string (by code point), list or tuple.
 * @param bounds null = left out
 * @throws PythonError as Python's own TypeError and ValueError
 */
export function sliceOf(object: Value, bounds: readonly [Value, Value, Value], budget: Budget): Value {
  demand(object);
  const text = typeof object === 'string';
  const items = text ? Array.from(object) : itemsOf(object);
  if (!items)
    throw new PythonError(
      'TypeError',
      isDict(object) ? "unhashable type: 'slice'" : `'${typeName(object)}' object is not subscriptable`,
    );
  const [start, stop, step] = bounds.map((value): number | null => {
    if (value === null) return null;
    demand(value);
    if (typeof value !== 'bigint' && typeof value !== 'boolean')
      throw new PythonError('TypeError', 'slice indices must be integers or None or have an __index__ method');
    return Number(value);
  });
  if (step === 0) throw new PythonError('ValueError', 'slice step cannot be zero');
  budget.step(items.length);
  const picked = picks<Value>(items, start, stop, step ?? 1);
  if (text) return picked.map(str).join('');
  return object instanceof Tuple ? new Tuple(picked) : picked;
}

function picks<T>(items: readonly T[], start: number | null, stop: number | null, step: number): T[] {
  const { length } = items;
  const clamp = (value: number | null, fallback: number): number => {
    if (value === null) return fallback;
    const at = value < 0 ? value + length : value;
    return step > 0 ? Math.min(Math.max(at, 0), length) : Math.min(Math.max(at, -1), length - 1);
  };
  const [from, to] = step > 0 ? [clamp(start, 0), clamp(stop, length)] : [clamp(start, length - 1), clamp(stop, -1)];
  const out: T[] = [];
  for (let at = from; step > 0 ? at < to : at > to; at += step) out.push(items[at]);
  return out;
}
