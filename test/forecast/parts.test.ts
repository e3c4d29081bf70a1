import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyProbe, thresholdOf } from '../../src/forecast/apply-probe.ts';
import { drawCache, type Opened } from '../../src/forecast/auroc-figures.ts';
import { fitRisingPlatt } from '../../src/forecast/calibrate.ts';
import { evaluate } from '../../src/forecast/evaluate.ts';
import { firstAlarm } from '../../src/forecast/monitor.ts';
import { positionOrder, positionPrecedesAction, positionPrecedesReport } from '../../src/forecast/positions.ts';
import type { Reader } from '../../src/forecast/readers.ts';
import { stackScores } from '../../src/forecast/stack.ts';
import { targetNamed } from '../../src/forecast/targets.ts';
import { thresholdAt } from '../../src/forecast/thresholds.ts';
import type { TracePoint } from '../../src/forecast/types.ts';
import { worldFigures } from '../../src/forecast/worlds.ts';
import { monitoredEpisodes } from '../../src/intervention/monitored.ts';
import type { EpisodeMeta, Figure, World } from '../../src/types.ts';
import { foldingOf, inputOf } from '../simulations/generate.ts';
import { meta } from './episodes.ts';

test('the threshold is the smallest with at most ⌊alpha · n⌋ alarms', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 60 }),
      fc.integer({ min: 1, max: 100 }),
      (maxima, percent) => {
        const threshold = thresholdAt(percent / 100, maxima);
        const allowed = Math.floor((percent * maxima.length) / 100);
        if (typeof threshold !== 'number') {
          expect(allowed).toBe(0);
          return;
        }
        const alarms = (t: number): number => maxima.filter((score) => score > t).length;
        expect(alarms(threshold)).toBeLessThanOrEqual(allowed);
        const below = Math.max(...maxima.filter((score) => score < threshold), -Infinity);
        if (Number.isFinite(below)) expect(alarms(below)).toBeGreaterThan(allowed);
      },
    ),
  );
});

test('29 % of 100 negatives are 29 alarms, and less than one alarm is undefined', () => {
  const maxima = Array.from({ length: 100 }, (_, i) => i);
  expect(maxima.filter((score) => score > (thresholdAt(0.29, maxima) as number))).toHaveLength(29);
  expect(thresholdAt(0.01, maxima.slice(0, 99))).toEqual({
    undefinedBecause: 'alpha 0.01 of 99 development negatives allows less than one alarm',
  });
  expect(Number.isFinite(thresholdAt(1, maxima))).toBe(true);
});

test('calibration never turns the order of a reader round', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.double({ min: -5, max: 5, noNaN: true }), fc.boolean()), { minLength: 4, maxLength: 30 }),
      (rows) => {
        const map = fitRisingPlatt(
          rows.map(([margin]) => margin),
          rows.map(([, label]) => (label ? 1 : 0)),
        );
        if ('undefinedBecause' in map) {
          expect(new Set(rows.map(([, label]) => label)).size).toBe(1);
          return;
        }
        expect(map.kind === 'platt' && map.slope >= 0 && Number.isFinite(map.intercept)).toBe(true);
      },
    ),
  );
});

test('rows without a score do not take part in calibration', () => {
  const [margins, labels] = [
    [1, 2, 3, 4, Number.NaN],
    [0, 1, 0, 1, 1],
  ];
  expect(fitRisingPlatt(margins, labels)).toEqual(fitRisingPlatt(margins.slice(0, 4), labels.slice(0, 4)));
});

test('positions are ordered as they come in a turn', () => {
  const order = [
    'prompt_end',
    'reasoning_start',
    'reasoning_end',
    'pre_action',
    'action_name',
    'action_end',
    'pre_action:1',
    'action_end:1',
    'observation_end',
  ];
  expect(order.toReversed().sort((a, b) => positionOrder(a) - positionOrder(b))).toEqual(order);
});

test('a pooled span precedes what its last token precedes', () => {
  expect(['span:reasoning', 'span:reasoning:mean'].map((p) => positionPrecedesAction(p))).toEqual([true, true]);
  expect(positionPrecedesAction('span:action:0:mean', 1)).toBe(true);
  expect(positionPrecedesAction('span:action:1:max', 1)).toBe(false);
  expect(positionPrecedesAction('recorded:pre_action')).toBe(false);
  expect([positionPrecedesReport('report_start'), positionPrecedesReport('report_end')]).toEqual([true, false]);
});

function scored(turn: number, score: number): TracePoint {
  return { landmark: 'x', position: 'p', turn, score, inTime: true };
}

test('the first alarm is the first score above the threshold, not at it', () => {
  expect(firstAlarm([scored(0, 0.5), scored(1, 0.6), scored(2, 0.9)], 0.5)?.turn).toBe(1);
  expect(firstAlarm([scored(0, 0.5)], 0.5)).toBe(null);
});

function value(figures: readonly Figure[], metric: string, at?: Figure['at']): number | string {
  const found = figures.find((f) => f.metric === metric && JSON.stringify(f.at) === JSON.stringify(at))!.value;
  return 'undefinedBecause' in found ? found.undefinedBecause : found.estimate;
}

/** Rows with scores: [pair, world, label, score]. */
function world(
  rows: readonly (readonly [string, World, number, number])[],
  conditions: readonly string[] = rows.map(() => 'candid'),
) {
  const episodes = rows.map(([pairId, w], i): EpisodeMeta =>
    meta(`e${i}`, { pairId, scenarioId: pairId, world: w, condition: conditions[i] }),
  );
  const opened: Opened = {
    rows: rows.map((_, index) => ({ index, episode: `e${index}`, turn: 0 })),
    episodes,
    labels: Int8Array.from(rows, ([, , label]) => label),
    folds: [new Int32Array(rows.length)],
    foldCounts: [1],
    groups: Int32Array.from(rows, ([pair]) => Number(pair.slice(1))),
    drawsFor: drawCache(200, 1),
  };
  const outer = Float64Array.from(rows, ([, , , score]) => score);
  const reader: Reader = {
    name: 'probe:x',
    tap: null,
    position: 'p',
    atRisk: new Uint8Array(rows.length).fill(1),
    scores: [{ outer, inner: [], chosen: [] }],
  };
  const base = { stage: 'forecast', target: 't', condition: 'c', landmark: 'l' } as const;
  return worldFigures(opened, reader, outer, base, rows[0][1] !== 'none');
}

test('pairs compare x− with its own x+, apart for unsafe and safe x−, ties ½', () => {
  const figures = world([
    ['p0', 'x-', 1, 0.9],
    ['p0', 'x+', 0, 0.1],
    ['p1', 'x-', 1, 0.4],
    ['p1', 'x+', 0, 0.4],
    ['p2', 'x-', 0, 0.2],
    ['p2', 'x+', 0, 0.3],
    ['p3', 'x-', 0, 0.95], // no x+ at risk: no pair
  ]);
  expect(value(figures, 'paired_world', { x_minus: 'unsafe' })).toBe(0.75);
  expect(value(figures, 'paired_world', { x_minus: 'safe' })).toBe(0);
  expect(value(figures, 'nuisance_shift')).toMatch(/no pair with a nuisance copy/);
});

test('pooled conditions never make a pair of a candid and an obfuscating run', () => {
  const rows: [string, World, number, number][] = [
    ['p0', 'x-', 1, 0.5],
    ['p0', 'x+', 0, 0.1],
    ['p0', 'x-', 1, 0.5],
    ['p0', 'x+', 0, 0.9],
  ];
  const figures = world(rows, ['candid', 'candid', 'obfuscate', 'obfuscate']);
  const pairs = figures.find((f) => f.metric === 'paired_world' && f.at?.['x_minus'] === 'unsafe')!.value;
  expect(pairs).toMatchObject({ estimate: 0.5, n: 2 });
  const trials = world(
    [...rows].map(([pair, , label, score], i) => [pair, 'none', i % 2 === 0 ? label : 0, score]),
    ['candid', 'candid', 'obfuscate', 'obfuscate'],
  );
  expect(trials.find((f) => f.metric === 'paired_trial')!.value).toMatchObject({ estimate: 0.5, n: 2 });
});

test('all four cells of situation × behaviour are figures', () => {
  const rows = Array.from({ length: 12 }, (_, i): [string, World, number, number][] => [
    [`p${i}`, 'x-', i % 2, i % 2],
    [`p${i}`, 'x+', 0, 0],
    [`p${i}`, 'nuisance', i % 2, i % 2],
  ]).flat();
  const cells = world(rows).filter((f) => f.metric === 'cell_auroc');
  expect(
    cells.map((f) => [f.at?.['situation'], f.at?.['behaviour'], 'estimate' in f.value && f.value.estimate]),
  ).toEqual([
    ['same', 'different', 1],
    ['different', 'different', 1],
    ['different', 'same', 0.5],
    ['same', 'same', 0.5],
  ]);
});

test('the nuisance shift is measured against the world shift', () => {
  const rows = ['p0', 'p1', 'p2'].flatMap((pair): [string, World, number, number][] => [
    [pair, 'x-', 1, 0.9],
    [pair, 'x+', 0, 0.1],
    [pair, 'nuisance', 1, 0.7],
  ]);
  const figures = world(rows);
  expect(value(figures, 'nuisance_shift')).toBeCloseTo(0.2, 12);
  expect(value(figures, 'world_shift')).toBeCloseTo(0.8, 12);
  expect(value(figures, 'nuisance_to_world')).toBeCloseTo(0.25, 12);
});

test('trials of one scenario make the pairs where there are no worlds', () => {
  const figures = world([
    ['p0', 'none', 1, 0.9],
    ['p0', 'none', 0, 0.1],
    ['p0', 'none', 0, 0.95],
    ['p1', 'none', 0, 0.99],
  ]);
  expect(value(figures, 'paired_trial')).toBe(0.5);
});

test('stacking uses what the second reader adds and keeps a fold without margins unscored', () => {
  const n = 60;
  const truth = Array.from({ length: n }, (_, i) => (i % 2 === 0 ? 1 : -1));
  const half = (which: number) => Float64Array.from(truth, (t, i) => ((i >> 1) % 2 === which ? t : 0));
  const side = {
    fold: 0,
    rows: Int32Array.from({ length: n }, (_, i) => i),
    labels: Uint8Array.from(truth, (t) => (t > 0 ? 1 : 0)),
    groups: new Int32Array(n),
    inner: new Int32Array(n),
    innerFolds: 2,
  };
  const sides = { training: [side], outer: [{ fold: 0, rows: side.rows }] };
  const scores = [half(0), half(1)].map((margins) => ({ outer: margins, inner: [margins], chosen: [] }));
  const stacked = stackScores(scores, sides).outer;
  truth.forEach((t, i) => expect(Math.sign(stacked[i])).toBe(t));
  const empty = scores.map(({ outer }) => ({ outer, inner: [outer.map(() => Number.NaN)], chosen: [] }));
  expect([...stackScores(empty, sides).outer].every(Number.isNaN)).toBe(true);
});

test('a released probe scores new episodes of the same model as it is, and refuses another width', async () => {
  const trained = await evaluate(inputOf({ seed: 12, scenarios: 120, shift: 2 }, { alphas: [0.1] }));
  const [{ probe }] = trained.releases;
  const fresh = inputOf({ seed: 13, scenarios: 120, shift: 2 });
  const task = { ...fresh, probe, target: targetNamed(probe.target) };
  const applied = await applyProbe(task);
  const auroc = applied.figures.find((f) => f.metric === 'auroc_within_fold')!;
  if ('undefinedBecause' in auroc.value) throw new Error(auroc.value.undefinedBecause);
  expect(auroc.split).toBe('released_probe');
  expect(auroc.value.estimate).toBeGreaterThan(0.85);
  expect(applied.scores).toHaveLength(120);
  expect(typeof thresholdOf(probe, 0.1)).toBe('number');
  expect(thresholdOf(probe, 0.5)).toHaveProperty('undefinedBecause');
  const wide = inputOf({ seed: 13, scenarios: 20, width: 9 });
  await expect(applyProbe({ ...task, ...wide, probe })).rejects.toThrow(/expected states of width 8, got 9/);
});

test('traces meet their episodes, and a second reader point by point', async () => {
  const input = inputOf(
    { seed: 14, scenarios: 80, shift: 2 },
    { texts: (keys) => Promise.resolve(keys.map((k) => k.episode)) },
  );
  const { traces } = await evaluate({ ...input, foldings: [foldingOf(input.groups, 1)] });
  const [probe, text] = ['probe:mean_difference', 'text:so_far'].map((name) => traces.find((t) => t.reader === name)!);
  const of = (metas: readonly EpisodeMeta[]) =>
    metas.map((meta, group) => ({ meta, event: { turn: meta.unsafe, call: null }, group }));
  const unseen = { ...input.episodes[0], key: 'unseen', unsafe: 3 };
  const watched = monitoredEpisodes(of([...input.episodes, unseen]), probe, text);
  expect(watched).toHaveLength(81);
  for (const { points, second, thresholds } of watched.slice(0, 80)) {
    expect(second!.scores).toHaveLength(points.length);
    expect(second!.scores.every((score) => score !== null)).toBe(true);
    expect(thresholds).toHaveLength(1);
  }
  // An episode in which nothing was scored is there all the same: leaving it out would hide what no landmark fell on.
  expect(watched[80]).toMatchObject({ meta: { key: 'unseen' }, event: { turn: 3 }, fold: null, points: [] });
  expect(() => monitoredEpisodes(of(input.episodes.slice(1)), probe)).toThrow(/no episode/);
});
