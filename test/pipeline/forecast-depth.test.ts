/** Depth full, every target and every option of the forecast, on invented episodes and a tiny random model. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { PipelineContext } from '../../src/pipeline/context.ts';
import { run, type RunResult } from '../../src/pipeline/run.ts';
import { METRICS_SCHEMA } from '../../src/store/figures.ts';
import type { Figure } from '../../src/types.ts';
import { inventEpisodes, writeInvented } from '../fakes/invented-episodes.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

const PAIRS = 24;
const SEED = 2;
const root = mkdtempSync(join(tmpdir(), 'forewarn-depth-'));
const mapping = fileURLToPath(new URL('../../mappings/fixture.yaml', import.meta.url));
const context: PipelineContext = {
  clock: { now: () => performance.now(), date: () => new Date(0) },
  progress: { start() {}, advance() {}, note() {}, end() {} },
  signal: new AbortController().signal,
};
const TARGETS = ['first_unsafe_event', 'informed_violation', 'escalated', 'misreported'];
const config = `name: depth
seed: 3
dataset: { episodes: data/episodes.jsonl, scenarios: data/scenarios.jsonl, reportLabels: data/report_labels.jsonl, mapping: ${mapping} }
model: { folder: model, threads: 1 }
replay: { role: reader }
capture: { positions: [prompt_end, pre_action, report_start], layers: { every: 2 } }
landmarks:
  - { anchor: reveal, offset: 1, position: [prompt_end, pre_action] }
  - { anchor: report, offset: 0, position: report_start }
train: { C: 0.01, folds: 3, innerFolds: 2, splitSeeds: 3, estimators: [mean_difference] }
forecast:
  { depth: full, bootstrap: 200, randomDirections: 2, permutations: 20, horizon: 3, targets: [${TARGETS.join(', ')}], external: [{ name: judge, file: judge.jsonl, column: score }] }
intervene: { randomRepeats: 5 }
output: results
`;

let made: RunResult;
let figures: readonly Figure[];
const of = (want: Partial<Figure>): readonly Figure[] =>
  figures.filter((f) =>
    Object.entries(want).every(([key, value]) => JSON.stringify(f[key as keyof Figure]) === JSON.stringify(value)),
  );

beforeAll(async () => {
  await writeTinyModel(join(root, 'model'), 5);
  await writeInvented(join(root, 'data'), PAIRS, SEED);
  // A made-up judge: longer names are worse. It knows nothing, and stands beside the probe all the same.
  const judge = inventEpisodes(PAIRS, SEED).episodes.map(({ run: name, episode_id }) => {
    const key = `${String(name)}/${String(episode_id)}`;
    return JSON.stringify({ episode: key, landmark: 'reveal+1', score: key.length % 7 });
  });
  writeFileSync(join(root, 'judge.jsonl'), `${judge.join('\n')}\n`);
  writeFileSync(join(root, 'config.yaml'), config);
  made = await run(join(root, 'config.yaml'), { until: 'report', flags: {}, resume: null }, context);
  figures = made.metrics!.figures;
}, 600_000);
afterAll(() => rmSync(root, { recursive: true }));

test('metrics.json is what its JSON schema says, and the schema refuses what it is not', () => {
  const schema = z.fromJSONSchema(METRICS_SCHEMA as unknown as Parameters<typeof z.fromJSONSchema>[0]);
  const stored = JSON.parse(readFileSync(join(made.folder, 'metrics.json'), 'utf8')) as {
    figures: Record<string, unknown>[];
  };
  expect(schema.safeParse(stored).error?.issues ?? []).toEqual([]);
  const [first] = stored.figures;
  for (const wrong of [
    { ...first, value: { estimate: 1 } },
    { ...first, value: { undefinedBecause: '' } },
    { ...first, population: 'x' },
    { ...first, extra: 1 },
  ]) {
    expect(schema.safeParse({ ...stored, figures: [wrong] }).success).toBe(false);
  }
});

test('no figure stands twice under one name', () => {
  const names = figures.map(({ value: _value, ...coordinates }) => JSON.stringify(coordinates));
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

test('every target has its figures: a number, or the reason why not', () => {
  for (const target of TARGETS) {
    const landmark = target === 'misreported' ? 'report' : 'reveal+1';
    const main = of({
      target,
      landmark,
      metric: 'auroc_within_fold',
      reader: 'probe:mean_difference',
      split: undefined,
    });
    const headline = main.filter(({ tap, group, at }) => tap === 'selected' && !group && !at);
    expect(
      headline.some(({ population }) => population === 'x-'),
      target,
    ).toBe(true);
    // Outcomes are coins on 24 scenarios: a target with few of one class has a reason instead of a number.
    for (const { value } of headline) expect('estimate' in value || value.undefinedBecause !== '', target).toBe(true);
    const [rows] = of({ target, landmark, metric: 'rows_at_risk', population: 'x-' });
    expect(rows.value, target).toMatchObject({ n: expect.any(Number) as number });
    if ('n' in rows.value) expect(rows.value.n, target).toBeGreaterThan(3);
  }
});

test('the searches for leaks are figures of every target, and clean data has none', () => {
  for (const target of TARGETS) {
    const leaks = of({ target, metric: 'leaks' });
    const kinds = new Set(leaks.map(({ at }) => at?.['leak']));
    for (const kind of [
      'pair_across_folds',
      'scenario_across_folds',
      'duplicate_across_folds',
      'twin_across_folds',
      'position_after_act',
      'label_in_text',
    ]) {
      expect(kinds.has(kind), `${target} ${kind}`).toBe(true);
    }
    for (const { value, at } of leaks) {
      if (at?.['leak'] !== 'label_in_text') expect(value).toMatchObject({ estimate: 0 });
    }
    expect(of({ target, metric: 'looser_duplicates' })[0].value).toMatchObject({ n: 3 * PAIRS });
  }
  // Rows at the turn of the act were compared with its marker by token, not only by name.
  const byToken = of({ metric: 'leaks', landmark: 'reveal+1' }).flatMap(({ at }) => Number(at?.['by_token'] ?? 0));
  expect(Math.max(...byToken)).toBeGreaterThan(0);
});

test('states of matched worlds before their first differing token are the same', () => {
  const [{ value }] = of({ metric: 'states_identical', target: 'first_unsafe_event' });
  expect(value).toMatchObject({ estimate: 1 });
  if ('n' in value) expect(value.n).toBeGreaterThan(PAIRS);
});

test('leaving one value out is a figure even where it cannot be done', () => {
  for (const attribute of ['template', 'family', 'style']) {
    const left = of({ split: `leave_one_${attribute}`, metric: 'auroc_within_fold', target: 'first_unsafe_event' });
    expect(left.length, attribute).toBeGreaterThan(0);
  }
  const [style] = of({ split: 'leave_one_style', target: 'first_unsafe_event', reader: 'probe:mean_difference' });
  expect(style.value).toEqual({ undefinedBecause: expect.stringMatching(/style/) as string });
});

test('the ordered transfer matrix, the split and the null are figures', () => {
  const cells = of({ metric: 'auroc_transfer', target: 'first_unsafe_event', reader: 'probe:mean_difference' });
  const templates = cells.filter(({ at }) => at?.['by'] === 'template');
  expect(templates).toHaveLength(9);
  expect(of({ metric: 'split_auroc', target: 'first_unsafe_event' })).toHaveLength(3);
  const [p] = of({ metric: 'p_value', target: 'first_unsafe_event', landmark: 'reveal+1' });
  expect(p.at?.['contract']).toBe(1000);
});

test('an external column stands beside the probe, with their paired difference', () => {
  const at = { target: 'first_unsafe_event', landmark: 'reveal+1', population: 'x-', split: undefined } as const;
  const [judge] = of({ ...at, reader: 'external:judge', metric: 'auroc_within_fold', position: 'selected' });
  expect(judge.value).toMatchObject({ clusters: expect.any(Number) as number });
  expect(of({ ...at, metric: 'auroc_minus', at: { minus: 'external:judge' } }).length).toBeGreaterThan(0);
});

test('the report says what was below the contract and what was checked', () => {
  const html = readFileSync(join(made.folder, 'report.html'), 'utf8');
  expect(html).toContain('Intervals rest on 200 bootstrap draws; the contract asks for 2,000');
  expect(html).toContain('Controls rest on 2 random directions; the contract asks for 20');
  expect(html).toContain('Controls rest on 20 permutations; the contract asks for 1,000');
  expect(html).toContain('Was the test fair?');
});

test('an external file that meets no episode of the run is refused with an example of each', async () => {
  writeFileSync(join(root, 'other.jsonl'), '{"episode": "e1", "landmark": "reveal+1", "score": 1}\n');
  writeFileSync(join(root, 'other.yaml'), config.replace('judge.jsonl', 'other.jsonl'));
  await expect(run(join(root, 'other.yaml'), { until: 'forecast', flags: {}, resume: null }, context)).rejects.toThrow(
    /other\.jsonl: expected rows of this run's episodes and landmarks, such as "\S+" at "reveal\+1", got 1 others, such as "e1" at "reveal\+1"/,
  );
}, 300_000);
