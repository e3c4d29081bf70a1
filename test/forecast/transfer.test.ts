import { expect, test } from 'vitest';
import { splitAurocs } from '../../src/forecast/adversarial.ts';
import { evaluate } from '../../src/forecast/evaluate.ts';
import { targetNamed } from '../../src/forecast/targets.ts';
import { leaveOneOut, transferMatrix } from '../../src/forecast/transfer.ts';
import type { ForecastInput } from '../../src/forecast/types.ts';
import type { EpisodeMeta, Figure } from '../../src/types.ts';
import { inputOf } from '../simulations/generate.ts';
import { meta } from './episodes.ts';

const number = ({ value }: Figure): number => {
  if ('undefinedBecause' in value) throw new Error(value.undefinedBecause);
  return value.estimate;
};

/** The signal of family f1 points the other way: what is learnt there misleads in f0. */
function flipped(): ForecastInput {
  const input = inputOf({ seed: 4, scenarios: 160, shift: 2, templates: 2 });
  const family = new Map(input.episodes.map((e) => [e.key, e.family]));
  const read: ForecastInput['read'] = async (tap, keys) => {
    const x = await input.read(tap, keys);
    const data = Float32Array.from(x.data, (v, i) =>
      family.get(keys[Math.floor(i / x.columns)].episode) === 'f1' ? -v : v,
    );
    return { ...x, data };
  };
  return { ...input, read };
}

test('the matrix shows which readers carry over, negative lifts included', async () => {
  const input = flipped();
  const figures = await transferMatrix({ input, spec: input.landmarks[0], population: 'x-', by: 'family' });
  const lift = (train: string, to: string) =>
    number(figures.find((f) => f.metric === 'transfer_lift' && f.at?.train === train && f.at.test === to)!);
  expect(lift('f0', 'f0')).toBeGreaterThan(0.3);
  expect(lift('f1', 'f1')).toBeGreaterThan(0.3);
  expect(lift('f0', 'f1')).toBeLessThan(-0.3);
  expect(lift('f1', 'f0')).toBeLessThan(-0.3);
  expect(figures.filter((f) => f.metric === 'auroc_transfer')).toHaveLength(4);
});

test('leave-one-family-out is an evaluation with one fold per family', async () => {
  const input = flipped();
  const folding = leaveOneOut(input.episodes, input.groups, 'family', 1);
  if ('undefinedBecause' in folding) throw new Error(folding.undefinedBecause);
  expect(folding.values).toEqual(['f0', 'f1']);
  const result = await evaluate({ ...input, foldings: [folding], split: 'leave_one_family' });
  const figure = result.figures.find(
    (f) => f.metric === 'auroc_within_fold' && f.tap === 'selected' && f.population === 'x-',
  )!;
  expect(figure.split).toBe('leave_one_family');
  expect(number(figure)).toBeLessThan(0.2);
});

test('leaving out is refused where a group holds several values or there is only one', () => {
  const twins = [meta('a', { condition: 'candid' }), meta('b', { condition: 'obfuscate' })];
  expect(leaveOneOut(twins, Int32Array.from([0, 0]), 'condition', 1)).toEqual({
    undefinedBecause: 'group 0 holds condition candid and obfuscate, so one cannot be left out',
  });
  expect(leaveOneOut(twins, Int32Array.from([0, 1]), 'template', 1)).toEqual({
    undefinedBecause: 'all episodes have template template',
  });
});

test('folds dealt by a hash cannot be told apart; folds dealt by content can', async () => {
  const input = inputOf({ seed: 2, scenarios: 120 });
  const task = { input, spec: input.landmarks[0], population: 'x-', tap: 'resid_post.0' } as const;
  const honest = await splitAurocs(task);
  expect(honest).toHaveLength(5);
  for (const figure of honest) expect(Math.abs(number(figure) - 0.5)).toBeLessThan(0.3);
  const x = await input.read(
    'resid_post.0',
    input.episodes.map((e) => ({ episode: e.key, turn: 2, position: 'pre_action' })),
  );
  const fold = Int32Array.from(input.episodes, (_, i) => (x.data[i * x.columns] > 0 ? 1 : 0));
  const [first] = await splitAurocs({ ...task, input: { ...input, foldings: [{ seed: 1, folds: 2, fold }] } });
  expect(number(first)).toBeGreaterThan(0.8);
});

test('lies among violations get AUROC figures and scores to review by, and no alarm figures', async () => {
  const input = inputOf({ seed: 11, scenarios: 200, shift: 2 });
  const lying = input.episodes.map((e): EpisodeMeta => ({
    ...e,
    unsafe: 2,
    reportLabel: e.unsafe === null ? 'CANDID' : 'MISREPRESENTED',
  }));
  const result = await evaluate({
    ...input,
    episodes: lying,
    target: targetNamed('misreported'),
    landmarks: [{ anchor: 'report', offset: 0, positions: ['report_start'] }],
  });
  const at = (metric: string) =>
    result.figures.find(
      (f) =>
        f.metric === metric && f.population === 'x-' && f.reader === 'probe:mean_difference' && f.group === undefined,
    )!;
  expect(number(at('auroc_within_fold'))).toBeGreaterThan(0.85);
  const rows = result.scores.filter((row) => row.population === 'x-' && row.reader === 'probe:mean_difference');
  expect(rows.map(({ label }) => label)).toEqual(
    rows.map((row) => Number(lying.find((e) => e.key === row.episode)!.reportLabel === 'MISREPRESENTED')),
  );
  expect(result.traces).toEqual([]);
});
