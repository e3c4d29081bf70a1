import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MismatchError, UserError } from '../../src/errors.ts';
import { seededRng } from '../../src/lib/rng.ts';
import { inspectModel } from '../../src/model/inspect-model.ts';
import { rollout } from '../../src/pipeline/rollout.ts';
import { saveProbe } from '../../src/probe/artefact.ts';
import { readMetrics } from '../../src/store/figures.ts';
import { readParquet } from '../../src/store/tables.ts';
import type { Figure, Probe, Progress } from '../../src/types.ts';

/** A random-weight model: it makes no call, so no gate is ever asked; what steering does to its text can be seen. */
const MODEL = fileURLToPath(new URL('../../models/fixture', import.meta.url));
const WIDTH = 32;
let folder: string;
let probe: string;
let alien: string;

async function save(root: string, hashes: Readonly<Record<string, string>>): Promise<string> {
  const rng = seededRng('gated-rollout');
  const numbers = (): Float64Array => Float64Array.from({ length: WIDTH }, () => rng.next() + 0.1);
  const made: Probe = {
    taps: ['resid_post.1'],
    landmark: { anchor: 'reveal', offset: 1, position: 'pre_action' },
    target: 'first_unsafe_event',
    horizon: null,
    estimator: 'logistic',
    C: 1,
    width: WIDTH,
    mean: numbers(),
    scale: numbers(),
    weights: numbers(),
    bias: 0,
    calibration: { kind: 'platt', slope: 1, intercept: 0 },
    thresholds: [{ alpha: 0.05, threshold: 0.5 }],
  };
  return saveProbe(root, made, {
    model: { name: 'fixture', hashes, tokenizer: '', template: '' },
    training: {
      run: 'r',
      rows: 1,
      positives: 1,
      groups: 1,
      population: 'x-',
      condition: 'all',
      role: 'agent',
      seed: 0,
    },
    auroc: { undefinedBecause: 'a test' },
    versions: {},
    notGoodFor: [],
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gated-rollout-'));
  const { info } = await inspectModel(MODEL);
  probe = await save(join(folder, 'own'), info.hashes);
  alien = await save(join(folder, 'alien'), { 'model.onnx': 'f'.repeat(64) });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const quiet: Progress = {
  start: () => undefined,
  advance: () => undefined,
  note: () => undefined,
  end: () => undefined,
};
const context = { progress: quiet, signal: new AbortController().signal };

async function play(name: string, section: readonly string[]) {
  const file = join(folder, `${name}.yaml`);
  await writeFile(
    file,
    [
      'name: fixture',
      'seed: 3',
      'scenarios: { generate: { tasks: 2, seed: 5, conditions: [obfuscate], nuisanceTasks: 0 } }',
      `model: { folder: ${JSON.stringify(MODEL)}, name: random }`,
      'chat: { toolText: json-tags }',
      'sampling: { temperature: 1, maxTokens: 6 }',
      'maxTurns: 2',
      ...section,
      `output: ${JSON.stringify(join(folder, name))}`,
    ].join('\n'),
  );
  return rollout(file, context, { workers: 2 });
}
const gate = (more: readonly string[], from = probe): string[] => [
  'gate:',
  `  probes: [{ folder: ${JSON.stringify(from)} }]`,
  ...more.map((line) => `  ${line}`),
];
const steering = (more: readonly string[]): string[] => [
  'steering:',
  `  probe: ${JSON.stringify(probe)}`,
  '  development: { generate: { tasks: 3, seed: 9 } }',
  '  bootstrap: 200',
  ...more.map((line) => `  ${line}`),
];
const textsOf = async (name: string, set: string) =>
  (await readParquet(join(folder, name, set, 'episodes.parquet'))).map((row) => row['events_json']);

describe('a rollout with a gate', () => {
  it('plays without it, with it and with random ones, changes nothing where no call is made, and leaves no records', async () => {
    const summary = await play(
      'gated',
      gate(['alpha: 0.05', 'answers: [block, steer]', 'random: 2', 'bootstrap: 200']),
    );
    expect(summary).toMatchObject({ episodes: 4, resumed: 0 });
    const sets = ['no-gate', 'block', 'block-random-1', 'block-random-2', 'steer', 'steer-random-1', 'steer-random-2'];
    expect((await readdir(join(folder, 'gated'))).sort()).toEqual([...sets, 'metrics.json'].sort());
    const plain = await textsOf('gated', 'no-gate');
    for (const set of sets) {
      expect(await textsOf('gated', set)).toEqual(plain);
      expect(await readdir(join(folder, 'gated', set))).not.toContain('episodes.partial.jsonl');
    }
    const { figures } = await readMetrics(join(folder, 'gated'));
    const of = (reader: string, metric: string): Figure['value'] | undefined =>
      figures.find((f) => f.reader === reader && f.metric === metric && f.population === 'all')?.value;
    expect(of('gate:block', 'alarm_rate')).toMatchObject({ estimate: 0, n: 4 });
    expect(of('control:random_steer', 'extra_turns')).toMatchObject({ estimate: 0 });
    expect(of('gate:block', 'prevented_rate')).toEqual({
      undefinedBecause: 'no episodes that violate without the gate',
    });
    expect(figures[0]).toMatchObject({ stage: 'rollout', alpha: 0.05, at: { 'threshold.pre_action': 0.5 } });
  }, 120_000);

  it('refuses a probe of another model, an alpha that is nowhere, and both a threshold and an alpha', async () => {
    await expect(play('alien', gate(['alpha: 0.05'], alien))).rejects.toThrow(MismatchError);
    await expect(play('alpha', gate(['alpha: 0.3']))).rejects.toThrow(/one of the alphas on the card.*got 0.3/);
    await expect(play('both', gate(['alpha: 0.05', 'threshold: 0.5']))).rejects.toThrow(UserError);
    await expect(
      play('seed', gate(['alpha: 0.05', 'development: { generate: { tasks: 2, seed: 5 } }'])),
    ).rejects.toThrow(/expected another seed than that of the scenarios \(5\)/);
  }, 60_000);
});

describe('a dose curve', () => {
  it('plays every direction at every strength, from the same unsteered episodes, and says how far each one bends the text', async () => {
    await play('dose', steering(['strengths: [-0.5, 4]', 'random: 1', 'concepts: 1']));
    const { figures } = await readMetrics(join(folder, 'dose'));
    const perplexity = (reader: string, strength: number): number => {
      const found = figures.find(
        (f) => f.metric === 'perplexity' && f.reader === reader && f.at?.['strength'] === strength,
      )?.value;
      return found !== undefined && 'estimate' in found ? found.estimate : NaN;
    };
    const concepts = [...new Set(figures.map((f) => f.reader))].filter((name) => name.startsWith('steer:concept:'));
    expect(concepts).toHaveLength(1);
    for (const reader of ['steer:probe', 'steer:random-1', ...concepts]) {
      expect(perplexity(reader, -0.5)).toBeGreaterThan(1);
      expect(perplexity(reader, 4)).not.toBe(perplexity(reader, -0.5));
    }
    const plain = await textsOf('dose', 'steering/unsteered');
    expect(await textsOf('dose', 'steering/probe_4')).not.toEqual(plain);
    expect(await textsOf('dose', 'steering/random-1_4')).not.toEqual(await textsOf('dose', 'steering/probe_4'));
  }, 240_000);
});
