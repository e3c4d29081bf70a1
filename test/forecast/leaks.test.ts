import { expect, test } from 'vitest';
import { comparedStates, looserDuplicates, positionLeaks, splitLeaks, textLeaks } from '../../src/forecast/leaks.ts';
import { targetNamed } from '../../src/forecast/targets.ts';
import { seededRng } from '../../src/lib/rng.ts';
import { meta } from './episodes.ts';

const names = (leaks: readonly { readonly name: string }[]) => leaks.map((leak) => leak.name);
const folding = (...fold: number[]) => ({ seed: 0, folds: 2, fold: Int32Array.from(fold) });

test.each([
  ['pair_across_folds', { pairId: 'p' }, {}],
  ['scenario_across_folds', { scenarioId: 's' }, {}],
  ['duplicate_across_folds', { duplicateKey: 'd' }, {}],
  ['twin_across_folds', { scenarioId: 's' }, { condition: 'obfuscate' }],
] as const)('%s is caught when members lie in different folds and not when they share one', (name, shared, other) => {
  const episodes = [meta('a', shared), meta('b', { ...shared, ...other }), meta('c')];
  expect(splitLeaks(episodes, folding(0, 1, 0))).toMatchObject([{ name, episodes: ['a', 'b'], count: 1 }]);
  expect(splitLeaks(episodes, folding(1, 1, 0))).toEqual([]);
});

test('missing ids join nothing', () => {
  expect(splitLeaks([meta('a'), meta('b')], folding(0, 1))).toEqual([]);
});

test('a row at or after the act is caught by turn, by position name and by token', () => {
  const target = targetNamed('first_unsafe_event');
  const episodes = [meta('a', { unsafe: 2 }), meta('safe')];
  const check = (row: Parameters<typeof positionLeaks>[2][number]) => names(positionLeaks(episodes, target, [row]));
  expect(check({ index: 0, turn: 3, position: 'prompt_end' })).toEqual(['position_after_act']);
  expect(check({ index: 0, turn: 2, position: 'action_end' })).toEqual(['position_after_act']);
  expect(check({ index: 0, turn: 2, position: 'pre_action' })).toEqual([]);
  expect(check({ index: 0, turn: 2, position: 'pre_action', token: 51, actToken: 51 })).toEqual(['position_after_act']);
  expect(check({ index: 0, turn: 2, position: 'recorded:x', token: 50, actToken: 51 })).toEqual([]);
  expect(check({ index: 1, turn: 4, position: 'action_end' })).toEqual([]);
});

test('the label in the text is caught by its column name and by a telling word', () => {
  const labels = Array.from({ length: 40 }, (_, i) => i % 2);
  const keys = labels.map((_, i) => `e${i}`);
  const plain = labels.map((_, i) => `the agent looks at file ${i}`);
  expect(textLeaks(plain, labels, keys)).toEqual([]);
  expect(names(textLeaks([...plain.slice(1), '{"unsafe_action": false}'], labels, keys))).toEqual(['label_in_text']);
  const telling = plain.map((text, i) => (labels[i] === 1 ? `${text} forbidden` : text));
  expect(textLeaks(telling, labels, keys)[0].detail).toContain('"forbidden" stands in positive rows');
});

test('random words of random texts are not taken for the label', () => {
  let flagged = 0;
  for (let seed = 0; seed < 40; seed += 1) {
    const rng = seededRng(seed);
    const texts = Array.from({ length: 60 }, () => Array.from({ length: 30 }, () => `w${rng.below(400)}`).join(' '));
    flagged += textLeaks(
      texts,
      texts.map(() => rng.below(2)),
      texts.map((_, i) => `e${i}`),
    ).length;
  }
  expect(flagged).toBe(0);
});

test('states of matched worlds are compared bit for bit, and only more than rounding counts as a difference', () => {
  const x = Float32Array.of(1, 2);
  const pair = (...y: number[]) => ({ a: 'a', b: 'b', x, y: Float32Array.from(y) });
  expect(comparedStates([pair(1, 2)], 0)).toEqual({ identical: 1, largest: 0, worst: null });
  const rounded = comparedStates([pair(1, 2), pair(1, 2.0001)], 1e-3);
  expect(rounded).toMatchObject({ identical: 1, worst: null });
  expect(rounded.largest).toBeCloseTo(1e-4 / Math.sqrt(5), 7);
  expect(comparedStates([pair(1, 2), pair(2, 1), pair(1, 2.1)], 1e-3)).toMatchObject({ identical: 1, worst: 1 });
  expect(comparedStates([pair(1, Number.NaN)], 1e-3).worst).toBe(0);
  expect(comparedStates([pair(1, 2, 3)], 1e-3).worst).toBe(0);
});

test('the looser search finds texts that differ in names and numbers only', () => {
  const texts = ['Ask Maria about file 12', 'Ask  Peter about file 7', 'Delete it'];
  expect(looserDuplicates(texts, [0, 1, 0])).toBe(1);
  expect(looserDuplicates(texts, [0, 0, 1])).toBe(0);
});
