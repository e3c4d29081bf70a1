import type { Pooling } from '../types.ts';

/** Tokens after which a state weighs half in the exponential average. */
export const EMA_HALF_LIFE = 8;

/**
 * One row from the states of a span: its last, the mean or the maximum of each component, or the exponential average with
 * weights 2^−((count − 1 − t)/8), divided by their sum. Mean and exponential average commute with a linear reader: the
 * margin of the pooled state is the pooled margin of the states.
 * @param states [count, width] in the order of the tokens, count ≥ 1 @returns [width]
 */
export function poolRows(states: Float32Array, width: number, pooling: Pooling): Float32Array {
  const count = states.length / width;
  if (pooling === 'none' || pooling === 'last' || count === 1) return states.slice(-width);
  if (pooling === 'max') {
    const most = states.slice(0, width);
    for (let at = width; at < states.length; at += 1) {
      const column = at % width;
      if (states[at] > most[column]) most[column] = states[at];
    }
    return most;
  }
  const sums = new Float64Array(width);
  let total = 0;
  for (let row = 0; row < count; row += 1) {
    const weight = pooling === 'mean' ? 1 : 2 ** (-(count - 1 - row) / EMA_HALF_LIFE);
    total += weight;
    for (let column = 0; column < width; column += 1) sums[column] += weight * states[row * width + column];
  }
  return Float32Array.from(sums, (sum) => sum / total);
}
