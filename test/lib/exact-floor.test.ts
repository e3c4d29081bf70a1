import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { exactFloor } from '../../src/lib/exact-floor.ts';

test.each([
  [0.29, 100, 29],
  [0.07, 100, 7],
  [0.05, 19, 0],
  [0.05, 20, 1],
  [0.01, 1000, 10],
  [1, 7, 7],
  [1e-7, 20_000_000, 2],
  [1e21, 2, 2e21],
  [0, 5, 0],
])('⌊%f · %i⌋ is %i', (rate, count, expected) => {
  expect(exactFloor(rate, count)).toBe(expected);
});

test('a rate of k hundredths of n is the integer division k·n / 100', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: 100_000 }), (k, n) => {
      expect(exactFloor(k / 100, n)).toBe(Math.floor((k * n) / 100));
    }),
  );
});

test('a negative rate or a fractional count is refused', () => {
  expect(() => exactFloor(-0.1, 5)).toThrow(RangeError);
  expect(() => exactFloor(0.1, 5.5)).toThrow(RangeError);
  expect(() => exactFloor(Number.NaN, 5)).toThrow(RangeError);
});
