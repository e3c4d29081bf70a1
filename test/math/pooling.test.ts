import { expect, it } from 'vitest';
import { EMA_HALF_LIFE, poolRows } from '../../src/math/pooling.ts';

const states = Float32Array.from([1, -4, 3, -2, 2, -6]);

it('takes the last state, the mean, or the maximum of each component', () => {
  expect([...poolRows(states, 2, 'last')]).toEqual([2, -6]);
  expect([...poolRows(states, 2, 'none')]).toEqual([2, -6]);
  expect([...poolRows(states, 2, 'mean')]).toEqual([2, -4]);
  expect([...poolRows(states, 2, 'max')]).toEqual([3, -2]);
});

it('leaves one state as it is under every pooling', () => {
  for (const pooling of ['none', 'last', 'mean', 'max', 'ema'] as const) {
    expect([...poolRows(Float32Array.of(7, -1), 2, pooling)]).toEqual([7, -1]);
  }
});

it('averages exponentially: a token weighs half of the one a half-life later, weights sum to one', () => {
  const count = EMA_HALF_LIFE + 1;
  const only = (at: number): number => {
    const one = new Float32Array(count);
    one[at] = 1;
    return poolRows(one, 1, 'ema')[0];
  };
  expect(only(0) / only(EMA_HALF_LIFE)).toBeCloseTo(0.5, 6);
  expect(poolRows(new Float32Array(count).fill(3), 1, 'ema')[0]).toBeCloseTo(3, 6);
  // The margin of the pooled state is the pooled margin of the states.
  const weights = [0.5, -2];
  const margins = Float32Array.from(
    [0, 1, 2],
    (row) => states[2 * row] * weights[0] + states[2 * row + 1] * weights[1],
  );
  const pooled = poolRows(states, 2, 'ema');
  expect(pooled[0] * weights[0] + pooled[1] * weights[1]).toBeCloseTo(poolRows(margins, 1, 'ema')[0], 5);
});
