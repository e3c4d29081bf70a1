import { expect, test } from 'vitest';
import { fitInRowSpace, fitInTermSpace } from '../../src/forecast/baselines/text-fit.ts';
import { characterRuns, countTerms, tfidf, wordPairs } from '../../src/forecast/baselines/tfidf.ts';
import { seededRng } from '../../src/lib/rng.ts';

const rowOf = (n: number) => Int32Array.from({ length: n }, (_, i) => i);

test('words and pairs of neighbouring words, lower-cased, single characters included', () => {
  expect([...wordPairs('Back by 9, Ada!')]).toEqual(['back', 'by', 'back by', '9', 'by 9', 'ada', '9 ada']);
});

test('character runs stay inside words', () => {
  expect([...characterRuns('abc d')]).toEqual([' ab', 'abc', 'bc ', ' abc', 'abc ', ' abc ', ' d ']);
});

// The formulas of scikit-learn's TfidfVectorizer(sublinear_tf=True, smooth_idf=True, min_df=2), fitted on the first
// three texts, applied to the fourth.
test('weights equal those of scikit-learn', () => {
  const counted = countTerms(['a b b', 'a c', 'b c c', 'b b b a z'], (text) => text.split(' '), 2);
  const x = tfidf(counted, Int32Array.from([0, 1, 2]), 2);
  const row = Array.from(x.values.subarray(x.indptr[3], x.indptr[4]));
  const tf = 1 + Math.log(3);
  const norm = Math.hypot(1, tf); // equal idf: a and b both stand in two of the three
  expect(row).toHaveLength(2);
  expect(row[0]).toBeCloseTo(1 / norm, 12);
  expect(row[1]).toBeCloseTo(tf / norm, 12);
});

test('test rows change neither the vocabulary nor the weights of training rows', () => {
  const training = Int32Array.from([0, 1, 2]);
  const weights = (fourth: string) => {
    const x = tfidf(
      countTerms(['a b', 'a c', 'b c', fourth], (text) => text.split(' '), 2),
      training,
      2,
    );
    return [x.columns, ...x.values.subarray(0, x.indptr[3])];
  };
  expect(weights('d d a')).toEqual(weights('b'));
});

test('terms of fewer than minDf training texts are dropped even if test texts hold them', () => {
  const counted = countTerms(['a b', 'a c', 'a b', 'b'], (text) => text.split(' '), 2);
  expect(tfidf(counted, Int32Array.from([0, 1]), 2).columns).toBe(1);
});

test('row space and term space reach the same reader', () => {
  const rng = seededRng('texts');
  const labels = Uint8Array.from({ length: 30 }, () => rng.below(2));
  const texts = Array.from({ length: 40 }, (_, i) =>
    Array.from({ length: 60 }, () => `w${rng.below(60) + 8 * (labels[i] ?? 0)}`).join(' '),
  );
  texts[7] = texts[3]; // duplicates make the kernel singular
  const learn = Int32Array.from({ length: 30 }, (_, i) => i);
  const ask = Int32Array.from({ length: 10 }, (_, i) => 30 + i);
  const x = tfidf(countTerms(texts, wordPairs, 2), learn, 2);
  const byRows = fitInRowSpace(x, rowOf(40), [0.1, 1, 100], learn, ask)(learn, labels, ask);
  const byTerms = fitInTermSpace(x, rowOf(40), [0.1, 1, 100])(learn, labels, ask);
  byRows.forEach((margins, c) => {
    const other = byTerms[c];
    if ('undefinedBecause' in margins || 'undefinedBecause' in other) throw new Error('not fitted');
    margins.forEach((value, i) => expect(value).toBeCloseTo(other[i], 5));
  });
});

test('one class in the training rows is undefined, in either space', () => {
  const x = tfidf(countTerms(['a b', 'a b', 'a c'], wordPairs, 1), rowOf(3), 1);
  for (const fit of [fitInTermSpace(x, rowOf(3), [1]), fitInRowSpace(x, rowOf(3), [1], rowOf(3), rowOf(0))]) {
    expect(fit(rowOf(2), Uint8Array.of(1, 1), rowOf(1))).toEqual([
      { undefinedBecause: 'the training rows hold positives only' },
    ]);
  }
});
