import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { normal, seededRng } from '../../src/lib/rng.ts';
import {
  bootstrapConcordance,
  bootstrapRatio,
  drawClusters,
  estimateConcordance,
  estimateConcordanceDifference,
  pairedDifference,
  percentileInterval,
} from '../../src/math/bootstrap.ts';
import { rankRows, weightedConcordance } from '../../src/math/ranking.ts';

function clusteredRows(seed: number, clusters: number, perCluster: number, shift: number) {
  const rng = seededRng('bootstrap test', seed);
  const scores: number[] = [];
  const labels: number[] = [];
  const cluster: number[] = [];
  for (let c = 0; c < clusters; c += 1) {
    const common = normal(rng);
    for (let i = 0; i < perCluster; i += 1) {
      const label = rng.next() < 0.4 ? 1 : 0;
      labels.push(label);
      scores.push(Math.round(4 * (common + normal(rng) + shift * label)) / 4);
      cluster.push(c);
    }
  }
  return { scores, labels, cluster };
}

const sd = (values: Float64Array) => {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / (values.length - 1));
};

test('every draw takes as many clusters as there are, and the same seed draws the same', () => {
  const draws = drawClusters(7, 50, seededRng(1));
  for (let d = 0; d < 50; d += 1) {
    expect(draws.counts.subarray(7 * d, 7 * d + 7).reduce((a, b) => a + b, 0)).toBe(7);
  }
  expect(drawClusters(7, 50, seededRng(1)).counts).toEqual(draws.counts);
  expect(drawClusters(7, 50, seededRng(2)).counts).not.toEqual(draws.counts);
});

test('a draw is the concordance of the drawn rows, copies included', () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const { scores, labels, cluster } = clusteredRows(seed, 8, 3, 1);
      const strata = cluster.map((c) => c % 2);
      const ranked = rankRows({ scores, labels, strata });
      const draws = drawClusters(8, 5, seededRng(seed));
      const values = bootstrapConcordance(ranked, cluster, draws);
      for (let d = 0; d < 5; d += 1) {
        const weights = cluster.map((c) => draws.counts[8 * d + c]);
        const { wins, pairs } = weightedConcordance(ranked, weights);
        if (pairs === 0) expect(values[d]).toBeNaN();
        else expect(values[d]).toBeCloseTo(wins / pairs, 12);
      }
    }),
    { numRuns: 30 },
  );
});

test('the spread of the draws is the clustered standard error, wider than the one that ignores clusters', () => {
  const { scores, labels, cluster } = clusteredRows(3, 60, 10, 1);
  const ranked = rankRows({ scores, labels });
  // A ratio of sums whose clustered standard error has a closed form: the mean of the scores.
  const means = Array.from({ length: 60 }, (_, c) => scores.slice(10 * c, 10 * c + 10).reduce((a, b) => a + b, 0) / 10);
  const grand = means.reduce((a, b) => a + b, 0) / 60;
  const expected = Math.sqrt(means.reduce((a, b) => a + (b - grand) ** 2, 0) / 60 / 60);
  const draws = drawClusters(60, 4000, seededRng(4));
  expect(sd(bootstrapRatio(scores, null, cluster, draws)) / expected).toBeCloseTo(1, 1);
  const byRow = drawClusters(600, 1000, seededRng(5));
  const rowSpread = sd(
    bootstrapRatio(
      scores,
      null,
      scores.map((_, i) => i),
      byRow,
    ),
  );
  expect(sd(bootstrapRatio(scores, null, cluster, draws))).toBeGreaterThan(1.5 * rowSpread);
  expect(sd(bootstrapConcordance(ranked, cluster, draws))).toBeGreaterThan(0);
});

describe('intervals', () => {
  test('hold the estimate with its basis', () => {
    const { scores, labels, cluster } = clusteredRows(6, 40, 4, 1.5);
    const value = estimateConcordance(
      { ranked: rankRows({ scores, labels }), labels, clusters: cluster },
      drawClusters(40, 2000, seededRng(7)),
    );
    if ('undefinedBecause' in value) throw new Error(value.undefinedBecause);
    expect(value).toMatchObject({ n: 160, positives: labels.reduce((a, b) => a + b, 0), clusters: 40 });
    expect(value.lower).toBeLessThan(value.estimate);
    expect(value.upper).toBeGreaterThan(value.estimate);
  });
  test('of the difference of a score and itself are exactly 0', () => {
    const { scores, labels, cluster } = clusteredRows(8, 40, 4, 1.5);
    const ranked = rankRows({ scores, labels });
    const doubled = rankRows({ scores: scores.map((s) => 2 * s), labels });
    const value = estimateConcordanceDifference(ranked, doubled, labels, cluster, drawClusters(40, 500, seededRng(9)));
    expect(value).toMatchObject({ estimate: 0, lower: 0, upper: 0 });
  });
  test('are undefined when fewer than five groups hold a class', () => {
    const labels = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0];
    const scores = labels.map((_, i) => i);
    const clusters = labels.map((_, i) => i);
    const draws = drawClusters(10, 100, seededRng(1));
    expect(estimateConcordance({ ranked: rankRows({ scores, labels }), labels, clusters }, draws)).toEqual({
      undefinedBecause: '4 groups have a positive row (at least 5 are needed)',
    });
  });
  test('drop draws without a value, count them, and give up above 5 %', () => {
    const values = Float64Array.from({ length: 100 }, (_, i) => (i < 5 ? Number.NaN : i));
    expect(percentileInterval(values)).toEqual({
      lower: expect.closeTo(5 + 0.025 * 94, 9),
      upper: expect.closeTo(5 + 0.975 * 94, 9),
      dropped: 5,
    });
    values[5] = Number.NaN;
    expect(percentileInterval(values)).toEqual({
      undefinedBecause: '6 of 100 bootstrap draws have no value (at most 5 % may)',
    });
  });
  test('a draw without a value in one of two statistics has none in their difference', () => {
    expect(Array.from(pairedDifference(Float64Array.of(1, Number.NaN), Float64Array.of(0.25, 1)))).toEqual([
      0.75,
      Number.NaN,
    ]);
  });
});

test('cluster codes outside the draws are refused', () => {
  const draws = drawClusters(2, 3, seededRng(1));
  expect(() => bootstrapRatio([1, 2], null, [0, 2], draws)).toThrow('cluster 2 of row 1 is not in 0 … 1');
});
