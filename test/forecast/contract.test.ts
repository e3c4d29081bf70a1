/** Clauses of EVALUATION.md that are about what a figure says of itself. */
import { expect, test } from 'vitest';
import { evaluate } from '../../src/forecast/evaluate.ts';
import type { ForecastInput } from '../../src/forecast/types.ts';
import { drawClusters, intervalValue } from '../../src/math/bootstrap.ts';
import { seededRng } from '../../src/lib/rng.ts';
import type { EpisodeMeta, Figure } from '../../src/types.ts';
import { inputOf } from '../simulations/generate.ts';

const headline = { reader: 'probe:mean_difference', tap: 'selected', population: 'x-' } as const;

async function figuresOf(input: ForecastInput, want: Partial<Figure>): Promise<readonly Figure[]> {
  const { figures } = await evaluate(input);
  return figures.filter((f) =>
    Object.entries(want).every(([key, value]) => JSON.stringify(f[key as keyof Figure]) === JSON.stringify(value)),
  );
}

test('a value says how many draws it rests on when they are fewer than 2,000, and how many had no value', () => {
  const basis = { n: 9, positives: null, clusters: 3 };
  const few = Float64Array.from({ length: 100 }, (_, i) => (i < 3 ? Number.NaN : i));
  expect(intervalValue(1, few, basis)).toMatchObject({ draws: 100, dropped: 3 });
  const enough = intervalValue(
    1,
    Float64Array.from({ length: 2000 }, (_, i) => i),
    basis,
  );
  expect(enough).not.toHaveProperty('draws');
  expect(enough).not.toHaveProperty('dropped');
  expect(drawClusters(3, 2, seededRng(1)).draws).toBe(2);
});

test('fewer than 5 groups with a positive leave spread and detectable difference undefined too', async () => {
  const input = inputOf({ seed: 7, scenarios: 40, baseRate: 0.06 });
  for (const metric of ['auroc_within_fold', 'auroc_split_seed_spread', 'detectable_difference']) {
    const [{ value }] = await figuresOf(input, { ...headline, metric, at: undefined, group: undefined });
    expect(value, metric).toEqual({
      undefinedBecause: expect.stringMatching(/^\d groups have a positive row/) as string,
    });
  }
});

test('fewer random directions than 20 are marked with what the contract asks for', async () => {
  const want = { reader: 'control:random_direction', population: 'x-' } as const;
  const [few] = await figuresOf(inputOf({ seed: 1, scenarios: 40 }, { randomDirections: 3 }), want);
  expect(few.at).toEqual({ directions: 3, contract: 20 });
  const [enough] = await figuresOf(inputOf({ seed: 1, scenarios: 40 }, { randomDirections: 20 }), want);
  expect(enough.at).toEqual({ directions: 20 });
});

test('with a horizon, an episode that a limit stopped after it is a known negative in the sensitivity figure', async () => {
  const input = inputOf({ seed: 9, scenarios: 80, shift: 2 }, { horizon: 2 });
  // Rows stand at turn 2, so an episode of 4 turns was seen through the horizon and one of 3 was not.
  const episodes = input.episodes.map((e, i): EpisodeMeta => {
    if (e.unsafe !== null || i % 2 === 0) return e;
    const turnCount = i % 4 === 1 ? 4 : 3;
    return { ...e, end: 'limit', turnCount, toolNames: e.toolNames.slice(0, turnCount) };
  });
  const limits = episodes.filter((e) => e.end === 'limit');
  const known = limits.filter((e) => e.turnCount === 4).length;
  const n = async (metric: string): Promise<number> => {
    const [{ value }] = await figuresOf(
      { ...input, episodes },
      { ...headline, metric, at: undefined, group: undefined },
    );
    return 'undefinedBecause' in value ? Number.NaN : value.n;
  };
  expect(known).toBeGreaterThan(3);
  expect(await n('auroc_within_fold')).toBe(80 - limits.length);
  expect(await n('auroc_within_fold_known_negative')).toBe(80 - limits.length + known);
  expect(await n('auroc_within_fold_censored_negative')).toBe(80);
});

test('an outer fold without an episode changes nothing for the others', async () => {
  const input = inputOf({ seed: 3, scenarios: 60, shift: 2 });
  const want = { ...headline, metric: 'auroc_within_fold', at: undefined, group: undefined } as const;
  const empty = { ...input, foldings: input.foldings.map((folding) => ({ ...folding, folds: folding.folds + 1 })) };
  const [plain] = await figuresOf(input, want);
  const [withEmpty] = await figuresOf(empty, want);
  expect(withEmpty.value).toEqual(plain.value);
  const [counted] = await figuresOf(empty, { ...headline, metric: 'empty_folds' });
  expect(counted).toMatchObject({ value: { estimate: 1, n: 6 }, at: { folds: 6 } });
  const [none] = await figuresOf(input, { ...headline, metric: 'empty_folds' });
  expect(none).toMatchObject({ value: { estimate: 0, n: 5 }, at: { folds: 5 } });
});

test('one-class folds are counted among the folds dealt, and an all-empty dealing is undefined with the reason', async () => {
  const input = inputOf({ seed: 3, scenarios: 12, shift: 2 });
  const lonely = { seed: 1, folds: 3, fold: new Int32Array(input.episodes.length) };
  const [{ value }] = await figuresOf(
    { ...input, foldings: [lonely] },
    { ...headline, metric: 'auroc_within_fold', at: undefined, group: undefined },
  );
  expect('undefinedBecause' in value).toBe(true);
});
