import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { permuteGroupsWithin, permutationPValue, permuteWithin } from '../../src/math/permutation.ts';
import {
  auroc,
  concordance,
  concordanceParts,
  concordanceStandardError,
  midranks,
  rankRows,
  weightedConcordance,
} from '../../src/math/ranking.ts';
import { seededRng } from '../../src/lib/rng.ts';
import { defined, readGolden } from './golden.ts';

interface Case {
  readonly scores: readonly number[];
  readonly labels: readonly number[];
  readonly weights: readonly number[];
  readonly midranks: readonly number[];
  readonly auroc: number;
  readonly weightedAuroc: number;
}
const cases = readGolden('math/ranking')['cases'] as readonly Case[];

/** Few distinct scores, so that ties are common. */
const rowsOf = fc.array(
  fc.record({
    score: fc.integer({ min: -3, max: 3 }),
    label: fc.integer({ min: 0, max: 1 }),
    stratum: fc.integer({ min: 0, max: 2 }),
    weight: fc.integer({ min: 0, max: 3 }),
  }),
  { maxLength: 40 },
);
type Rows = readonly { score: number; label: number; stratum: number; weight: number }[];
const columns = (rows: Rows) => ({
  scores: rows.map((r) => r.score),
  labels: rows.map((r) => r.label),
  strata: rows.map((r) => r.stratum),
});

/** The definition, pair by pair. */
function byPairs(rows: Rows): { wins: number; pairs: number } {
  let wins = 0;
  let pairs = 0;
  for (const p of rows)
    for (const q of rows) {
      if (p.label !== 1 || q.label !== 0 || p.stratum !== q.stratum) continue;
      pairs += p.weight * q.weight;
      wins += p.weight * q.weight * (p.score > q.score ? 1 : p.score === q.score ? 0.5 : 0);
    }
  return { wins, pairs };
}

const psi = (p: number, q: number) => (p > q ? 1 : p === q ? 0.5 : 0);
const share = (xs: readonly number[], f: (x: number) => number) => xs.reduce((s, x) => s + f(x), 0) / xs.length;
const variance = (xs: readonly number[]) => {
  const m = share(xs, (x) => x);
  return xs.reduce((s, x) => s + (x - m) ** 2, 0) / (xs.length - 1);
};

describe('AUROC', () => {
  test('equals scikit-learn, plain and weighted', () => {
    for (const c of cases) {
      expect(auroc(c.scores, c.labels)).toBeCloseTo(c.auroc, 12);
      const { wins, pairs } = weightedConcordance(rankRows(c), c.weights);
      expect(wins / pairs).toBeCloseTo(c.weightedAuroc, 12);
    }
  });
  test('is ½ for constant scores, and undefined with the reason for one class or no rows', () => {
    expect(auroc([1, 1, 1], [0, 1, 1])).toBe(0.5);
    expect(auroc([1, 2, 3], [0, 0, 0])).toEqual({ undefinedBecause: 'all 3 rows are negative' });
    expect(auroc([1], [1])).toEqual({ undefinedBecause: 'all 1 rows are positive' });
    expect(auroc([], [])).toEqual({ undefinedBecause: 'no rows' });
  });
  test('does not change under a monotone transform, and mirrors under negation', () => {
    fc.assert(
      fc.property(rowsOf, (rows) => {
        const { scores, labels, strata } = columns(rows);
        const plain = concordance({ scores, labels, strata });
        expect(concordance({ scores: scores.map((s) => Math.exp(s) - 7), labels, strata })).toEqual(plain);
        const mirrored = concordance({ scores: scores.map((s) => -s), labels, strata });
        expect(mirrored.wins).toBeCloseTo(plain.pairs - plain.wins, 9);
      }),
    );
  });
  test('ranks ±Infinity and refuses NaN', () => {
    expect(auroc([-Infinity, 0, Infinity], [0, 0, 1])).toBe(1);
    expect(() => auroc([Number.NaN, 1], [0, 1])).toThrow('row 0 is NaN');
  });
});

describe('concordance', () => {
  test('is the count over pairs of the same stratum, whatever the row order and multiplicities', () => {
    fc.assert(
      fc.property(rowsOf, fc.integer(), (rows, seed) => {
        const expected = byPairs(rows);
        const shuffled = Array.from(
          permuteWithin(
            rows.map(() => 0),
            seededRng(seed),
          ),
          (i) => rows[i],
        );
        for (const order of [rows, shuffled]) {
          const got = weightedConcordance(
            rankRows(columns(order)),
            order.map((r) => r.weight),
          );
          expect(got.wins).toBeCloseTo(expected.wins, 9);
          expect(got.pairs).toBe(expected.pairs);
        }
      }),
    );
  });
  test('a multiplicity is the same as so many copies of the row', () => {
    fc.assert(
      fc.property(rowsOf, (rows) => {
        const copies = rows.flatMap((row) => Array.from({ length: row.weight }, () => row));
        const { wins, pairs } = concordance(columns(copies));
        const weighted = weightedConcordance(
          rankRows(columns(rows)),
          rows.map((r) => r.weight),
        );
        expect([weighted.wins, weighted.pairs]).toEqual([wins, pairs]);
      }),
    );
  });
  test('counts the strata with one class instead of dropping them silently', () => {
    const got = concordance({ scores: [1, 2, 3, 4, 5], labels: [0, 1, 1, 1, 0], strata: [7, 7, 2, 2, 9] });
    expect(got).toEqual({ wins: 1, pairs: 1, strata: 3, oneClassStrata: 2 });
  });
  test('the parts of the rows are the derivatives of wins and pairs', () => {
    fc.assert(
      fc.property(rowsOf, (rows) => {
        const ranked = rankRows(columns(rows));
        const parts = concordanceParts(ranked);
        const base = weightedConcordance(ranked);
        for (let i = 0; i < rows.length; i += 1) {
          const more = weightedConcordance(
            ranked,
            rows.map((_, j) => (i === j ? 2 : 1)),
          );
          // The row's pair with its own copy does not exist, so one more copy is exactly the derivative.
          expect(more.wins - base.wins).toBeCloseTo(parts.wins[i], 9);
          expect(more.pairs - base.pairs).toBe(parts.pairs[i]);
        }
      }),
    );
  });
  test('the standard error of unclustered rows is that of DeLong up to its small-sample factor', () => {
    const { scores, labels } = cases[2];
    const positives = scores.filter((_, i) => labels[i] === 1);
    const negatives = scores.filter((_, i) => labels[i] === 0);
    const v10 = positives.map((p) => share(negatives, (q) => psi(p, q)));
    const v01 = negatives.map((q) => share(positives, (p) => psi(p, q)));
    const delong = Math.sqrt(variance(v10) / positives.length + variance(v01) / negatives.length);
    const got = defined(
      concordanceStandardError(
        rankRows({ scores, labels }),
        scores.map((_, i) => i),
      ),
    );
    expect(got / delong).toBeGreaterThan(0.98);
    expect(got / delong).toBeLessThan(1.02);
  });
});

test('midranks equal SciPy', () => {
  for (const c of cases) expect(Array.from(midranks(c.scores))).toEqual(c.midranks);
});

describe('permutations', () => {
  const strata = [3, 3, 1, 1, 1, 9];
  test('move items inside their stratum only', () => {
    const rng = seededRng(1);
    const seen = new Set<string>();
    for (let i = 0; i < 200; i += 1) {
      const source = permuteWithin(strata, rng);
      expect(Array.from(source).sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5]);
      for (let item = 0; item < strata.length; item += 1) expect(strata[source[item]]).toBe(strata[item]);
      seen.add(source.join());
    }
    expect(seen.size).toBe(2 * 6);
  });
  test('of groups exchange whole groups of equal size', () => {
    const groups = [5, 5, 6, 6, 7, 8, 8];
    const rng = seededRng(2);
    const seen = new Set<string>();
    for (let i = 0; i < 200; i += 1) seen.add(permuteGroupsWithin(groups, [0, 0, 0, 0, 0, 1, 1], rng).join());
    expect(Array.from(seen).sort()).toEqual(['0,1,2,3,4,5,6', '2,3,0,1,4,5,6']);
  });
  test('p-values count the observed value among the null and never reach 0', () => {
    expect(permutationPValue(2, [1, 2, 3, 0])).toBe(3 / 5);
    expect(permutationPValue(9, [1, 2, 3, 0])).toBe(1 / 5);
    expect(permutationPValue(9, [])).toEqual({ undefinedBecause: 'no permutations' });
  });
});
