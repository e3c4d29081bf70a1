import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleToken } from '../../src/model/sampling.ts';

const logits = fc
  .array(fc.float({ min: -20, max: 20, noNaN: true }), { minLength: 1, maxLength: 40 })
  .map((values) => Float32Array.from(values));

describe('sampleToken', () => {
  it('takes the lowest id among the largest logits at temperature 0', () => {
    expect(sampleToken(Float32Array.of(1, 3, 2, 3), 0, 1, 0.99)).toBe(1);
  });

  it('picks the id whose share of the cumulative distribution holds the uniform', () => {
    // softmax of ln(1), ln(2), ln(5) = 1/8, 2/8, 5/8
    const l = Float32Array.of(0, Math.log(2), Math.log(5));
    const pick = (u: number): number => sampleToken(l, 1, 1, u);
    expect([0, 0.12, 0.13, 0.37, 0.38, 0.999].map(pick)).toEqual([0, 0, 1, 1, 2, 2]);
  });

  it('drops what is outside the nucleus and rescales the rest', () => {
    const l = Float32Array.of(0, Math.log(2), Math.log(5));
    // The nucleus of 0.6 is {2}; of 0.7 it is {1, 2} with shares 2/7 and 5/7.
    expect([0, 0.5, 0.999].map((u) => sampleToken(l, 1, 0.6, u))).toEqual([2, 2, 2]);
    expect([0, 0.28, 0.29, 0.999].map((u) => sampleToken(l, 1, 0.7, u))).toEqual([1, 1, 2, 2]);
  });

  it('never leaves the vocabulary, is monotone in the uniform, and does not depend on a constant added to all logits', () => {
    const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(
        logits,
        unit,
        unit,
        fc.double({ min: 0.05, max: 3, noNaN: true }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (l, u, v, t, p) => {
          const [low, high] = u < v ? [u, v] : [v, u];
          const a = sampleToken(l, t, p, low);
          expect(a).toBeGreaterThanOrEqual(0);
          expect(a).toBeLessThan(l.length);
          expect(sampleToken(l, t, p, high)).toBeGreaterThanOrEqual(a);
          const moved = Float32Array.from(l, (x) => Math.round(x * 64) / 64);
          expect(
            sampleToken(
              moved.map((x) => x + 4),
              t,
              p,
              low,
            ),
          ).toBe(sampleToken(moved, t, p, low));
        },
      ),
    );
  });

  it('refuses logits without a finite largest value', () => {
    expect(() => sampleToken(Float32Array.of(NaN, NaN), 1, 1, 0)).toThrow(/finite logits/);
    expect(() => sampleToken(Float32Array.of(0, Infinity), 1, 1, 0)).toThrow(/finite logits/);
  });
});
