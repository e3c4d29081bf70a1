import { expect, test } from 'vitest';
import { coverage, leakStudy, plantedRuns, situationOnly, uniformKsP } from './studies.ts';

test('the cluster interval holds the truth in about 95 of 100 clustered data sets', () => {
  const share = coverage(300, 500, 1);
  expect(share).toBeGreaterThan(0.91); // 0.95 − 3 standard errors
  expect(share).toBeLessThan(0.985);
});

test('a planted direction is recovered by the whole search, inside its interval', async () => {
  const runs = await plantedRuns(6, 1);
  expect(runs.filter((run) => run.inside).length).toBeGreaterThanOrEqual(5);
  for (const run of runs) expect(run.rightTap).toBe(1);
});

test('every planted leak is caught by its name alone, and clean data is not flagged', () => {
  const study = leakStudy(10, 1);
  expect(study.caught).toBe(study.planted);
  expect(study.names).toEqual([
    'duplicate_across_folds',
    'label_in_text',
    'pair_across_folds',
    'position_after_act',
    'twin_across_folds',
  ]);
  expect(study.cleanFlagged).toBe(0);
});

test('a signal that decodes the world but not the act is high over all worlds and at chance within x−', async () => {
  const { pooled, within } = await situationOnly(2);
  if ('undefinedBecause' in pooled || 'undefinedBecause' in within) throw new Error('undefined');
  expect(pooled.lower!).toBeGreaterThan(0.6);
  expect(within.lower! < 0.5 && within.upper! > 0.5).toBe(true);
});

test('the Kolmogorov–Smirnov p-value knows uniform from skewed', () => {
  const grid = Array.from({ length: 200 }, (_, i) => (i + 1) / 200);
  expect(uniformKsP(grid, 199)).toBeGreaterThan(0.99);
  expect(
    uniformKsP(
      grid.map((p) => p * p),
      199,
    ),
  ).toBeLessThan(1e-6);
});
