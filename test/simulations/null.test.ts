import { expect, test } from 'vitest';
import { permutationNull } from '../../src/forecast/permutation-null.ts';
import type { Figure } from '../../src/types.ts';
import { inputOf, type World } from './generate.ts';

async function nullOf(world: World, permutations: number): Promise<readonly Figure[]> {
  const input = inputOf(world);
  return await permutationNull({
    input,
    spec: input.landmarks[0],
    population: 'x-',
    permutations,
    landmarksClaimed: 2,
  });
}

function number(figures: readonly Figure[], metric: string): number {
  const { value } = figures.find((f) => f.metric === metric)!;
  if ('undefinedBecause' in value) throw new Error(value.undefinedBecause);
  return value.estimate;
}

const taps = ['resid_post.0', 'resid_post.1', 'resid_post.2'];

test('without a signal the p-values are uniform although three taps and two ridges were searched', async () => {
  const p: number[] = [];
  for (let seed = 0; seed < 60; seed += 1)
    p.push(number(await nullOf({ seed, scenarios: 40, width: 6, taps }, 99), 'p_value'));
  p.sort((a, b) => a - b);
  const distance = Math.max(...p.map((value, i) => Math.max((i + 1) / p.length - value, value - i / p.length)));
  expect(distance).toBeLessThan(0.21); // 1 % point of Kolmogorov–Smirnov for n = 60
});

test('a planted direction is found whatever tap it stands at', async () => {
  const figures = await nullOf({ seed: 1, scenarios: 80, taps, planted: 'resid_post.2', shift: 2 }, 199);
  expect(number(figures, 'p_value')).toBe(1 / 200);
  expect(number(figures, 'p_value_bonferroni')).toBe(2 / 200);
  expect(number(figures, 'selectivity')).toBeGreaterThan(0.2);
});

test('scenario noise shared by several episodes does not make small p-values', async () => {
  const p: number[] = [];
  for (let seed = 0; seed < 30; seed += 1) {
    p.push(
      number(
        await nullOf({ seed, scenarios: 20, perScenario: 3, groupSpread: 2, width: 4, taps: taps.slice(0, 1) }, 99),
        'p_value',
      ),
    );
  }
  expect(p.filter((value) => value <= 0.1).length).toBeLessThan(9); // P(≥ 9 of 30 at 10 %) = 0.002
});

test('where nothing can be exchanged the null is undefined with the reason', async () => {
  const figures = await nullOf({ seed: 1, scenarios: 30, templates: 30 }, 19);
  const undefinedOnes = figures.filter((f) => 'undefinedBecause' in f.value);
  expect(undefinedOnes.map((f) => f.metric)).toContain('p_value');
  expect(number(figures, 'permutable_rows')).toBe(0);
});
