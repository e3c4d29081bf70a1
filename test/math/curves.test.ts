import { expect, test } from 'vitest';
import {
  averagePrecision,
  partialAuroc,
  precisionRecallCurve,
  recallAtFpr,
  rocCurve,
  thresholdCounts,
} from '../../src/math/curves.ts';
import { defined, readGolden } from './golden.ts';

interface Case {
  readonly scores: readonly number[];
  readonly labels: readonly number[];
  readonly auroc: number;
  readonly partialAuroc: Readonly<Record<string, number>>;
  readonly averagePrecision: number;
  readonly roc: {
    readonly x: readonly number[];
    readonly y: readonly number[];
    readonly thresholds: readonly number[];
  };
  readonly precisionRecall: { readonly x: readonly number[]; readonly y: readonly number[] };
}
const cases = readGolden('math/ranking')['cases'] as readonly Case[];
const close = (got: ArrayLike<number>, expected: readonly number[]) => {
  expect(got.length).toBe(expected.length);
  for (let i = 0; i < expected.length; i += 1) expect(got[i]).toBeCloseTo(expected[i], 12);
};

test('ROC and precision–recall curves equal scikit-learn', () => {
  for (const c of cases) {
    const counts = thresholdCounts(c.scores, c.labels);
    const roc = defined(rocCurve(counts));
    close(roc.x, c.roc.x);
    close(roc.y, c.roc.y);
    close(roc.thresholds.slice(1), c.roc.thresholds);
    const pr = defined(precisionRecallCurve(counts));
    close(pr.x, c.precisionRecall.x);
    // scikit-learn gives recall 0 a made-up precision of 1; here it is that of the highest score.
    close(pr.y.slice(1), c.precisionRecall.y.slice(1));
    expect(averagePrecision(counts)).toBeCloseTo(c.averagePrecision, 12);
  }
});

test('partial AUROC equals scikit-learn, and the whole of it is the AUROC', () => {
  for (const c of cases) {
    const counts = thresholdCounts(c.scores, c.labels);
    for (const [maxFpr, expected] of Object.entries(c.partialAuroc)) {
      expect(defined(partialAuroc(counts, Number(maxFpr))).standardized).toBeCloseTo(expected, 12);
    }
    expect(defined(partialAuroc(counts, 1)).area).toBeCloseTo(c.auroc, 12);
  }
});

test('recall at a false-positive rate is the best point at or left of it', () => {
  const counts = thresholdCounts([5, 4, 4, 3, 2], [1, 1, 0, 1, 0]);
  expect(recallAtFpr(counts, 0.49)).toEqual({ recall: 1 / 3, fpr: 0, threshold: 5 });
  expect(recallAtFpr(counts, 0.5)).toEqual({ recall: 1, fpr: 0.5, threshold: 3 });
});

test('one class has no curve, and says which is missing', () => {
  const counts = thresholdCounts([1, 2], [0, 0]);
  const reason = { undefinedBecause: '0 positives and 2 negatives: both are needed' };
  expect(rocCurve(counts)).toEqual(reason);
  expect(averagePrecision(counts)).toEqual(reason);
  expect(partialAuroc(counts, 0.1)).toEqual(reason);
});
