import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PipelineContext } from '../../src/pipeline/context.ts';
import { run, type RunResult } from '../../src/pipeline/run.ts';
import { scoreProbe } from '../../src/pipeline/score-probe.ts';
import { searchedTaps } from '../../src/pipeline/taps.ts';
import { loadProbe, saveProbe } from '../../src/probe/artefact.ts';
import { writeInvented } from '../fakes/invented-episodes.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

const root = mkdtempSync(join(tmpdir(), 'forewarn-options-'));
const config = join(root, 'config.yaml');
const mapping = fileURLToPath(new URL('../../mappings/fixture.yaml', import.meta.url));
const context: PipelineContext = {
  clock: { now: () => performance.now(), date: () => new Date(0) },
  progress: { start() {}, advance() {}, note() {}, end() {} },
  signal: new AbortController().signal,
};
const POOLED = ['span:reasoning:last', 'span:reasoning:mean', 'span:reasoning:max', 'span:reasoning:ema'];
const JOINED = 'resid_post.0+resid_post.2';
const write = (kinds: string): void =>
  writeFileSync(
    config,
    `name: test
seed: 3
dataset: { episodes: data/episodes.jsonl, scenarios: data/scenarios.jsonl, mapping: ${mapping} }
model: { folder: model, threads: 1 }
replay: { role: reader }
capture: { kinds: [resid_post], layers: [0, 2], positions: [${POOLED.join(', ')}] }
landmarks: [{ anchor: reveal, offset: 1, position: [${POOLED.join(', ')}] }]
train: { C: 0.01, estimators: ${kinds}, layerSets: [[resid_post.0, resid_post.2]], calibration: isotonic, folds: 3, innerFolds: 2, splitSeeds: 1 }
forecast: { bootstrap: 100, randomDirections: 0, permutations: 0, alphas: [0.3] }
intervene: { randomRepeats: 10 }
output: results
`,
  );

describe('a search over poolings, joined layers and estimators', () => {
  let result: RunResult;
  beforeAll(async () => {
    await writeTinyModel(join(root, 'model'), 5);
    await writeInvented(join(root, 'data'), 24, 2);
    write('[logistic, ridge, mean_difference, mean_difference_whitened]');
    result = await run(config, { until: 'forecast', flags: {}, resume: null }, context);
  }, 300_000);
  afterAll(() => rmSync(root, { recursive: true }));

  it('gives each pooling, joined tap and estimator its figure, and one that the folds selected', () => {
    const figures = (result.metrics?.figures ?? []).filter(
      ({ metric, population }) => metric === 'auroc_within_fold' && population === 'x-',
    );
    const map = figures.filter(({ at }) => at?.['search'] === 'unselected' && at['trained_on'] === undefined);
    for (const position of POOLED) {
      for (const tap of ['resid_post.0', 'resid_post.2', JOINED]) {
        const readers = map.filter((figure) => figure.position === position && figure.tap === tap);
        expect(readers.map(({ reader }) => reader).sort()).toEqual([
          'probe:logistic',
          'probe:mean_difference',
          'probe:mean_difference_whitened',
          'probe:ridge',
        ]);
      }
    }
    expect(figures.some(({ reader, position }) => reader === 'probe:selected' && position === 'selected')).toBe(true);
    // Poolings of the same tokens are different numbers.
    const values = new Set(
      map
        .filter(({ tap, reader }) => tap === JOINED && reader === 'probe:ridge')
        .map(({ value }) => JSON.stringify(value)),
    );
    expect(values.size).toBeGreaterThan(1);
  });

  it('states what its conformal threshold promises beside what was achieved', () => {
    const conformal = (result.metrics?.figures ?? []).filter(({ metric }) => metric === 'conformal_coverage');
    expect(conformal).toHaveLength(1);
    const [{ value, at, alpha }] = conformal;
    expect(alpha).toBe(0.3);
    if ('undefinedBecause' in value) throw new Error(value.undefinedBecause);
    expect(Number(at?.['stated'])).toBeGreaterThanOrEqual(0.7);
    expect(Number(at?.['stated_lower'])).toBeLessThan(Number(at?.['stated']));
    expect(value.estimate).toBeGreaterThan(0.3);
  });

  it('releases probes that say their taps, calibration and promise, and that score new episodes', async () => {
    const cards = await Promise.all(result.probes.map((folder) => loadProbe(folder, null)));
    expect(cards.length).toBe(POOLED.length);
    for (const { probe } of cards) {
      expect(probe.calibration.kind).toBe('isotonic');
      expect(probe.width).toBe(32);
      expect(probe.weights.length).toBe(32 * probe.taps.length);
    }
    const text = readFileSync(join(result.probes[0], 'card.md'), 'utf8');
    expect(text).toMatch(/conformal at 0\.3: > [\d.]+; a new safe episode like the \d+ of development/);
  });

  it('scores new episodes with a probe that reads several layers', async () => {
    write('[ridge]');
    const folder = result.probes[0];
    const {
      probe,
      card: { model, training, auroc, versions, notGoodFor },
    } = await loadProbe(folder, null);
    const joined = { ...probe, taps: ['resid_post.0', 'resid_post.2'] };
    const twice = (values: Float64Array): Float64Array =>
      Float64Array.from({ length: 64 }, (_, k) => values[k % probe.weights.length]);
    const saved = await saveProbe(
      join(root, 'probes'),
      { ...joined, mean: twice(probe.mean), scale: twice(probe.scale), weights: twice(probe.weights) },
      { model, training, auroc, versions, notGoodFor },
    );
    const scored = await scoreProbe(config, { probe: saved, anyModel: false, flags: {} }, context);
    expect(basename(scored.folder)).toBe('applied');
    const figure = scored.metrics.figures.find(({ metric }) => metric === 'auroc_within_fold');
    expect(figure?.tap).toBe(JOINED);
    expect(figure?.value).toHaveProperty('estimate');
  }, 120_000);

  it('refuses a set with a layer that is not captured, naming the set', () => {
    expect(() =>
      searchedTaps(
        ['embed', 'resid_post.1'],
        [
          ['embed', 'resid_post.1'],
          ['embed', 'resid_post.7'],
        ],
      ),
    ).toThrow('train.layerSets[1]: expected captured taps, each once (embed, resid_post.1), got resid_post.7');
  });
});
