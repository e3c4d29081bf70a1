import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { calibrate, fitIsotonic, fitPlatt } from '../../src/math/calibration.ts';
import { brierScore, expectedCalibrationError, logLoss, reliabilityBins } from '../../src/math/proper-scores.ts';
import { quantile, quantiles } from '../../src/math/quantiles.ts';
import { defined, readGolden } from './golden.ts';

interface Golden {
  readonly margins: readonly number[];
  readonly labels: readonly number[];
  readonly platt: { readonly slope: number; readonly intercept: number };
  readonly isotonic: { readonly margins: readonly number[]; readonly values: readonly number[] };
}
const golden = readGolden('math/calibration') as unknown as Golden;

describe('Platt', () => {
  test('equals the sigmoid calibration of scikit-learn', () => {
    const fit = defined(fitPlatt(golden.margins, golden.labels));
    if (fit.kind !== 'platt') throw new Error(fit.kind);
    // Its optimiser stops early, so the agreement is that of its tolerance.
    expect(fit.slope).toBeCloseTo(golden.platt.slope, 4);
    expect(fit.intercept).toBeCloseTo(golden.platt.intercept, 4);
  });
  test('stays finite on separable margins and answers slope 0 for equal ones', () => {
    const separable = defined(fitPlatt([-2, -1, 1, 2], [0, 0, 1, 1]));
    expect(calibrate(separable, 100)).toBeLessThanOrEqual(1);
    expect(calibrate(separable, 2)).toBeGreaterThan(0.5);
    expect(fitPlatt([3, 3, 3], [0, 1, 1])).toMatchObject({ slope: 0 });
  });
  test('is undefined for one class', () => {
    expect(fitPlatt([1, 2], [1, 1])).toEqual({ undefinedBecause: 'the training rows hold positives only' });
  });
  test('of shifted and scaled margins gives the same probabilities', () => {
    const { margins, labels } = golden;
    const plain = defined(fitPlatt(margins, labels));
    const moved = defined(
      fitPlatt(
        margins.map((m) => 1e4 + 250 * m),
        labels,
      ),
    );
    for (const m of margins) expect(calibrate(moved, 1e4 + 250 * m)).toBeCloseTo(calibrate(plain, m), 8);
  });
});

describe('isotonic', () => {
  test('equals the isotonic regression of scikit-learn at every margin it saw', () => {
    const fit = defined(fitIsotonic(golden.margins, golden.labels));
    golden.isotonic.margins.forEach((m, i) => expect(calibrate(fit, m)).toBeCloseTo(golden.isotonic.values[i], 12));
  });
  test('is monotone, keeps the base rate and takes the first value below all margins', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 1 })), { minLength: 2 }),
        (rows) => {
          const margins = rows.map((r) => r[0]);
          const labels = rows.map((r) => r[1]);
          const fit = fitIsotonic(margins, labels);
          if ('undefinedBecause' in fit) return;
          const p = margins.map((m) => calibrate(fit, m));
          expect(p.reduce((a, b) => a + b, 0)).toBeCloseTo(
            labels.reduce((a, b) => a + b, 0),
            9,
          );
          for (let m = -2; m < 12; m += 0.5) expect(calibrate(fit, m + 0.5)).toBeGreaterThanOrEqual(calibrate(fit, m));
          expect(calibrate(fit, -1)).toBe(calibrate(fit, Math.min(...margins)));
        },
      ),
    );
  });
});

describe('proper scores', () => {
  const g = readGolden('math/proper-scores') as unknown as {
    probabilities: number[];
    labels: number[];
    brier: number;
    insideRows: number[];
    logLossInside: number;
  };
  test('equal scikit-learn', () => {
    expect(brierScore(g.probabilities, g.labels)).toBeCloseTo(g.brier, 12);
    const p = g.insideRows.map((i) => g.probabilities[i]);
    expect(
      logLoss(
        p,
        g.insideRows.map((i) => g.labels[i]),
      ),
    ).toBeCloseTo(g.logLossInside, 12);
  });
  test('a certain mistake makes the log loss undefined, not clipped', () => {
    expect(logLoss([0.5, 0], [1, 1])).toEqual({ undefinedBecause: 'row 1 has probability 0 and label 1' });
    expect(logLoss([1, 0], [1, 0])).toBe(0);
  });
  test('reliability bins hold equal mass, share ties, and do not depend on row order', () => {
    const p = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
    const y = [0, 0, 0, 1, 0, 1, 1, 1];
    expect(reliabilityBins(p, y, 4).map((b) => b.n)).toEqual([2, 2, 2, 2]);
    expect(reliabilityBins([0.5, 0.5, 0.5, 0.9], [0, 1, 0, 1], 4).map((b) => b.n)).toEqual([3, 1]);
    const reversed = expectedCalibrationError(p.toReversed(), y.toReversed(), 3);
    expect(expectedCalibrationError(p, y, 3)).toBeCloseTo(reversed as number, 12);
    expect(expectedCalibrationError([0, 0, 1, 1], [0, 0, 1, 1])).toBe(0);
    expect(expectedCalibrationError([0.25, 0.25, 0.25, 0.25], [0, 1, 1, 1])).toBeCloseTo(0.5, 12);
  });
  test('what is not a probability is refused', () => {
    expect(() => brierScore([1.5], [1])).toThrow('row 0: 1.5 is not a probability');
  });
});

test('quantiles interpolate as NumPy does', () => {
  expect(quantiles([4, 1, 3, 2], [0, 0.25, 0.5, 1])).toEqual([1, 1.75, 2.5, 4]);
  expect(quantile([], 0.5)).toEqual({ undefinedBecause: 'no values' });
  expect(quantile([Infinity, Infinity, 1], 0.75)).toBe(Infinity);
});
