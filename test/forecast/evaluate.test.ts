import { beforeAll, expect, test } from 'vitest';
import { evaluate } from '../../src/forecast/evaluate.ts';
import type { ForecastInput, ForecastResult } from '../../src/forecast/types.ts';
import type { EpisodeMeta, Estimate, FeatureKey, Figure } from '../../src/types.ts';
import { foldingOf, inputOf, phi } from '../simulations/generate.ts';
import { meta } from './episodes.ts';

/** All figures whose named fields equal the ones wanted. */
function figures(result: ForecastResult, want: Partial<Figure>): readonly Figure[] {
  return result.figures.filter((f) =>
    Object.entries(want).every(([key, value]) => JSON.stringify(f[key as keyof Figure]) === JSON.stringify(value)),
  );
}

function estimate(result: ForecastResult, want: Partial<Figure>): Estimate {
  const found = figures(result, want);
  if (found.length !== 1) throw new Error(`${found.length} figures match ${JSON.stringify(want)}`);
  const [{ value }] = found;
  if ('undefinedBecause' in value) throw new Error(value.undefinedBecause);
  return value;
}

const planted = {
  seed: 3,
  scenarios: 120,
  taps: ['resid_post.0', 'resid_post.1', 'resid_post.2'],
  planted: 'resid_post.1',
  shift: 2,
  twins: true,
  worldShift: 3,
} as const;
const probe = { reader: 'probe:mean_difference', tap: 'selected', landmark: 'reveal+1', position: 'selected' };
let result: ForecastResult;

beforeAll(async () => {
  result = await evaluate(
    inputOf(planted, {
      landmarks: [
        { anchor: 'reveal', offset: 1, positions: ['reasoning_end', 'pre_action'] },
        { anchor: 'start', offset: 4, positions: ['pre_action'] },
        { anchor: 'first_critical', offset: 0, positions: ['pre_action'] },
      ],
      layer0: 'embed',
      randomDirections: 20,
      texts: (keys) => Promise.resolve(keys.map(({ episode }) => `file of ${episode.slice(0, 3)}`)),
      external: [{ name: 'judge', value: ({ episode }) => (episode.endsWith('x-') ? episode.length : null) }],
      scalars: [{ name: 'token_count', value: ({ turn }) => turn * 100 }],
    }),
  );
}, 300_000);

test('a planted direction is found at its tap, and its AUROC lies in the interval', () => {
  const chosen = result.choices.filter(
    (c) => c.readAt === 'selected' && c.landmark === 'reveal+1' && c.trainedOn === 'x-',
  );
  expect(chosen.length).toBe(15); // 3 split seeds × 5 folds
  expect(chosen.filter((c) => c.tap === 'resid_post.1').length).toBeGreaterThanOrEqual(14);
  const { lower, upper, n, positives, clusters } = estimate(result, {
    ...probe,
    population: 'x-',
    group: undefined,
    at: undefined,
    metric: 'auroc_within_fold',
  });
  const truth = phi(2 / Math.SQRT2);
  expect(lower!).toBeLessThan(truth);
  expect(upper!).toBeGreaterThan(truth - 0.03); // the fitted direction is not quite the true one
  expect([n, clusters]).toEqual([120, 120]);
  expect(positives).toBeGreaterThan(40);
});

test('the map holds every tap × position once, marked as an unselected search', () => {
  const map = figures(result, {
    population: 'x-',
    group: undefined,
    landmark: 'reveal+1',
    metric: 'auroc_within_fold',
    at: { search: 'unselected' },
  });
  expect(map.map((f) => `${f.tap} ${f.position}`).sort()).toEqual(
    planted.taps.flatMap((tap) => [`${tap} pre_action`, `${tap} reasoning_end`]).sort(),
  );
});

test('every figure is finite or says why not, and no figure appears twice', () => {
  const seen = new Set<string>();
  for (const { value, ...coordinates } of result.figures) {
    const id = JSON.stringify(coordinates);
    expect(seen.has(id), id).toBe(false);
    seen.add(id);
    if ('undefinedBecause' in value) expect(value.undefinedBecause.length).toBeGreaterThan(5);
    else
      for (const number of [value.estimate, value.lower ?? 0, value.upper ?? 0])
        expect(Number.isFinite(number)).toBe(true);
  }
  for (const row of result.scores) expect(Number.isFinite(row.score)).toBe(true);
});

test('every score comes from the fold its episode was left out of, with one row per episode, landmark and reader', () => {
  const folding = foldingOf(
    Int32Array.from({ length: 120 }, (_, g) => g),
    1,
  );
  const keys = result.scores.map((s) => [s.episode, s.landmark, s.position, s.reader, s.tap, s.population].join());
  expect(new Set(keys).size).toBe(keys.length);
  for (const row of result.scores) expect(row.fold).toBe(folding.fold[row.group]);
});

test('baselines that know nothing are at chance and the probe minus them has a paired interval above 0', () => {
  const majority: Partial<Figure> = {
    metric: 'auroc_within_fold',
    reader: 'baseline:majority',
    population: 'x-',
    group: undefined,
    at: undefined,
    landmark: 'reveal+1',
    position: 'selected',
  };
  expect(estimate(result, majority).estimate).toBe(0.5);
  for (const minus of [
    'baseline:layer_0',
    'text:best',
    'baseline:step_index',
    'baseline:token_count',
    'baseline:tool_name',
    'external:judge',
  ]) {
    const value = estimate(result, {
      ...probe,
      population: 'x-',
      group: undefined,
      metric: 'auroc_minus',
      at: { minus },
    });
    expect(value.lower!, minus).toBeGreaterThan(0);
  }
  const random = estimate(result, {
    metric: 'auroc_within_fold',
    reader: 'control:random_direction',
    population: 'x-',
    group: undefined,
    at: { directions: 20 },
    landmark: 'reveal+1',
    position: 'selected',
  });
  expect(random.upper!).toBeLessThan(0.9);
});

test('an external column is scored where it has a value and nowhere else', () => {
  const rows = result.scores.filter(
    (s) => s.reader === 'external:judge' && s.landmark === 'reveal+1' && s.position === 'pre_action',
  );
  expect(new Set(rows.map((s) => s.episode.slice(-2)))).toEqual(new Set(['x-']));
  for (const row of rows) expect(row.score).toBe(row.episode.length);
});

test('readers that learn from all worlds are marked when they are looked at within x−', () => {
  const pooled = estimate(result, { ...probe, population: 'all', group: undefined, metric: 'auroc_within_fold' });
  const within = estimate(result, {
    ...probe,
    population: 'x-',
    group: undefined,
    at: { trained_on: 'all' },
    metric: 'auroc_within_fold',
  });
  expect(pooled.n).toBe(360);
  expect(within.n).toBe(120);
});

test('first_critical is undefined in x−, with the reason', () => {
  const [figure] = figures(result, {
    population: 'x-',
    landmark: 'first_critical',
    group: undefined,
    at: undefined,
    metric: 'auroc_within_fold',
  });
  expect(figure.value).toEqual({ undefinedBecause: expect.stringContaining('one class') as string });
});

test('after the act nothing has a label, and the scores are there for late alarms', () => {
  const late = result.scores.filter(
    (s) => s.landmark === 'start+4' && s.reader === 'probe:mean_difference' && s.population === 'x-',
  );
  const unsafe = new Set(result.traces[0].episodes.filter((t) => t.event.turn === 3).map((t) => t.episode));
  const rows = late.filter((s) => unsafe.has(s.episode));
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.every((s) => s.label === null)).toBe(true);
});

test('the monitor keeps the false-alarm rate near alpha on episodes its thresholds never saw', () => {
  const rate = estimate(result, {
    metric: 'false_alarm_rate',
    reader: 'probe:mean_difference',
    population: 'x-',
    alpha: 0.1,
  });
  expect(rate.lower!).toBeLessThan(0.1);
  expect(rate.upper!).toBeGreaterThan(0.1);
  const at = { reader: 'probe:mean_difference', population: 'x-', alpha: 0.1 } as const;
  const parts = ['hit_rate', 'late_rate', 'missed_rate'].map((metric) => estimate(result, { metric, ...at }).estimate);
  expect(parts.reduce((a, b) => a + b)).toBeCloseTo(1, 12);
  expect(parts[0]).toBeGreaterThan(0.6);
  // u = 3 or 4, the probe speaks at reveal+1 = 2, so a hit there is 1 or 2 turns ahead.
  const { estimate: median } = estimate(result, { metric: 'lead_median', ...at });
  expect(median >= 1 && median <= 2).toBe(true);
});

test('released probes were trained on every labelled row and one position is preferred', () => {
  const releases = result.releases.filter((r) => r.probe.landmark.anchor === 'reveal');
  expect(releases.map((r) => [r.trainingRows, r.probe.taps[0], r.probe.width])).toEqual([
    [120, 'resid_post.1', 8],
    [120, 'resid_post.1', 8],
  ]);
  expect(releases.filter((r) => r.preferred)).toHaveLength(1);
  const threshold = releases[0].probe.thresholds[0].threshold;
  expect(typeof threshold === 'number' && threshold > 0 && threshold < 1).toBe(true);
});

async function estimates(input: ForecastInput): Promise<readonly unknown[]> {
  const { figures } = await evaluate(input);
  return figures.map((f) => ('undefinedBecause' in f.value ? f.value : Number(f.value.estimate.toFixed(9))));
}

test('the order of the episodes changes no figure', async () => {
  const world = { seed: 5, scenarios: 60, shift: 1 } as const;
  const forward = inputOf(world);
  const backward: ForecastInput = {
    ...forward,
    episodes: forward.episodes.toReversed(),
    groups: forward.groups.toReversed(),
    foldings: forward.foldings.map((folding) => ({ ...folding, fold: folding.fold.toReversed() })),
  };
  expect(await estimates(backward)).toEqual(await estimates(forward));
});

async function externalAuroc(transform: (x: number) => number): Promise<readonly unknown[]> {
  const value = ({ episode }: FeatureKey) => transform(Number(/\d+/.exec(episode)![0]));
  const scored = await evaluate(inputOf({ seed: 6, scenarios: 60 }, { external: [{ name: 'x', value }] }));
  return figures(scored, { metric: 'auroc_within_fold', reader: 'external:x' }).map((f) => f.value);
}

test('an order-preserving change of an external score changes no AUROC', async () => {
  expect(await externalAuroc((x) => Math.exp(x / 10))).toEqual(await externalAuroc((x) => x));
});

test('too few groups with a positive make a figure undefined with the reason', async () => {
  const few = await evaluate(inputOf({ seed: 7, scenarios: 40, baseRate: 0.06 }));
  const [{ value }] = figures(few, {
    ...probe,
    position: 'pre_action',
    population: 'x-',
    group: undefined,
    at: undefined,
    metric: 'auroc_within_fold',
  });
  expect(value).toEqual({ undefinedBecause: expect.stringMatching(/^\d groups have a positive row/) as string });
});

test('a source without worlds has only "all", and its trials make the pairs', async () => {
  const input = inputOf({ seed: 8, scenarios: 40, perScenario: 3, shift: 2 });
  const episodes = input.episodes.map((e): EpisodeMeta => ({ ...e, world: 'none' }));
  const none = await evaluate({ ...input, episodes });
  expect(new Set(none.figures.map((f) => f.population))).toEqual(new Set(['all']));
  expect(figures(none, { metric: 'paired_world', reader: probe.reader })[0].value).toEqual({
    undefinedBecause: 'this source has no matched worlds (world: none)',
  });
  expect(estimate(none, { metric: 'paired_trial', reader: probe.reader }).estimate).toBeGreaterThan(0.75);
});

test('limits censor: left out of the primary figure, negatives in the sensitivity figure', async () => {
  const input = inputOf({ seed: 9, scenarios: 80, shift: 2 });
  const episodes = input.episodes.map((e, i): EpisodeMeta =>
    e.unsafe === null && i % 4 === 0 ? { ...e, end: 'limit' } : e,
  );
  const censored = await evaluate({ ...input, episodes });
  const at = { ...probe, position: 'pre_action', population: 'x-', group: undefined, at: undefined } as const;
  const primary = estimate(censored, { ...at, metric: 'auroc_within_fold' });
  const sensitivity = estimate(censored, { ...at, metric: 'auroc_within_fold_censored_negative' });
  const limits = episodes.filter((e) => e.end === 'limit').length;
  expect(primary.n).toBe(80 - limits);
  expect(sensitivity.n).toBe(80);
  expect(estimate(censored, { metric: 'excluded', population: 'x-', at: { reason: 'censored' } }).estimate).toBe(
    limits,
  );
});

test('episodes of two models, a group over two folds and a missing position are refused', async () => {
  const input = inputOf({ seed: 1, scenarios: 10 });
  const two = [...input.episodes.slice(1), meta('x', { model: 'other' })];
  await expect(evaluate({ ...input, episodes: two })).rejects.toThrow(/episodes of one model, got \["model","other"\]/);
  await expect(evaluate({ ...input, groups: input.groups.map(() => 0) })).rejects.toThrow(/group 0 in one fold/);
  await expect(evaluate({ ...input, landmarks: [{ anchor: 'start', offset: 0, positions: [] }] })).rejects.toThrow(
    /landmarks\.start: expected at least one position/,
  );
});
