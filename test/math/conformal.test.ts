import { describe, expect, it } from 'vitest';
import { seededRng } from '../../src/lib/rng.ts';
import { conformalThreshold, orderStatisticPoint } from '../../src/math/conformal.ts';
import { defined } from './golden.ts';

describe('a conformal threshold', () => {
  it('is the k-th smallest of n scores, k = n + 1 − ⌊α(n + 1)⌋, and states k/(n + 1)', () => {
    const scores = Float64Array.from({ length: 99 }, (_, i) => (37 * i) % 99);
    expect(conformalThreshold(0.05, scores)).toMatchObject({ threshold: 94, coverage: 0.95, n: 99 });
    // 0.29 · 100 is 28.999999999999996 in binary and 29 as written.
    expect(defined(conformalThreshold(0.29, scores)).coverage).toBe(0.71);
  });

  it('is undefined where no score could promise that much, naming how many negatives it takes', () => {
    expect(conformalThreshold(0.05, new Float64Array(18))).toEqual({
      undefinedBecause: 'alpha 0.05 takes 19 development negatives to promise, got 18',
    });
    expect(defined(conformalThreshold(0.05, new Float64Array(19))).coverage).toBe(0.95);
    expect(conformalThreshold(0.05, [])).toHaveProperty('undefinedBecause');
  });

  it('is passed by a new negative as rarely as it states, over draws of the development set', () => {
    const rng = seededRng('conformal', 1);
    const draws = 4000;
    let below = 0;
    let inside = 0;
    for (let draw = 0; draw < draws; draw += 1) {
      const { threshold, lower, upper } = defined(
        conformalThreshold(
          0.1,
          Float64Array.from({ length: 49 }, () => rng.next() ** 3),
        ),
      );
      // Scores are cubes of uniform draws, so the coverage of this threshold is known.
      const covered = Math.cbrt(threshold);
      below += covered;
      if (covered >= lower && covered <= upper) inside += 1;
    }
    expect(Math.abs(below / draws - 0.9)).toBeLessThan(0.003);
    expect(Math.abs(inside / draws - 0.95)).toBeLessThan(0.012);
  });

  it('has the Beta quantiles of its order statistic in closed form at the ends', () => {
    // The largest of n: P(U ≤ x) = xⁿ. The smallest: 1 − (1 − x)ⁿ.
    expect(orderStatisticPoint(19, 19, 0.025)).toBeCloseTo(0.025 ** (1 / 19), 10);
    expect(orderStatisticPoint(1, 40, 0.975)).toBeCloseTo(1 - 0.025 ** (1 / 40), 10);
    expect(orderStatisticPoint(950, 999, 0.5)).toBeCloseTo(0.9503, 3);
  });
});
