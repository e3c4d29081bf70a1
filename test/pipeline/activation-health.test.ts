import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeModel, encodeModel } from '../../src/model/graph/onnx-schema.ts';
import type { TapHealth } from '../../src/model/tap-health.ts';
import { healthLines, refuseUnhealthy } from '../../src/pipeline/activation-health.ts';
import type { PipelineContext } from '../../src/pipeline/context.ts';
import { run } from '../../src/pipeline/run.ts';
import type { DoneFile } from '../../src/store/activation-shards.ts';
import { writeInvented } from '../fakes/invented-episodes.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

const seen = (tap: string, of: Partial<TapHealth>): TapHealth => ({
  tap,
  rows: 2,
  nonFinite: 0,
  beyondFloat16: 0,
  zeroRows: 0,
  maxAbs: 1,
  ...of,
});
const plan = { episode: 'e', turn: 3 };
const rows = Int32Array.of(4, 9);

describe('refuseUnhealthy', () => {
  const look = (health: TapHealth[], data: number[]): void =>
    refuseUnhealthy({ taps: ['embed', 'resid_post.0'], health: () => health }, plan, rows, Float32Array.from(data), 2);

  it('names tap, token, turn and episode of the first value that is not finite', () => {
    const health = [seen('embed', {}), seen('resid_post.0', { nonFinite: 1 })];
    expect(() => look(health, [1, 1, 1, 1, 1, 1, 1, Infinity])).toThrow(
      'resid_post.0: expected finite activations, got Infinity at token 9 of turn 3, episode e (1 such values so far)',
    );
  });

  it('refuses a row of zeros, which no block can give; the embedding of a padding token may be one', () => {
    const zero = [0, 0, 1, 1, 0, 0, 1, 1];
    expect(() => look([seen('embed', {}), seen('resid_post.0', { zeroRows: 1 })], zero)).toThrow(
      /resid_post\.0: expected activations, got only zeros at token 4/,
    );
    expect(() => look([seen('embed', { zeroRows: 1 }), seen('resid_post.0', {})], zero)).not.toThrow();
  });
});

describe('healthLines', () => {
  it('adds up what float16 could not hold over all shards, and says nothing of taps without', () => {
    const shard = (maxAbs: number[], beyondFloat16: number[]): DoneFile =>
      ({ taps: ['embed', 'resid_post.0'], maxAbs, beyondFloat16 }) as unknown as DoneFile;
    expect(healthLines([shard([1, 7e4], [0, 2]), shard([1, 9e4], [0, 3])])).toEqual([
      'resid_post.0: 5 values beyond ±65,504 (largest 9.000e+4): capture.dtype float16 would refuse them',
    ]);
  });
});

describe('extract', () => {
  const root = mkdtempSync(join(tmpdir(), 'forewarn-health-'));
  const config = join(root, 'config.yaml');
  const notes: string[] = [];
  const context: PipelineContext = {
    clock: { now: () => 0, date: () => new Date(0) },
    progress: { start: () => {}, advance: () => {}, note: (line) => void notes.push(line), end: () => {} },
    signal: new AbortController().signal,
  };
  const go = (out: string) =>
    run(config, { until: 'extract', flags: { output: join(root, out) }, resume: null }, context);
  /** The tiny model with one weight of the second block's MLP changed. */
  async function spoil(value: number): Promise<void> {
    await writeTinyModel(join(root, 'model'), 5);
    const file = join(root, 'model', 'model.onnx');
    const model = decodeModel(readFileSync(file));
    const tensor = model.graph.initializer.find(({ name }) => name === '/model/layers.1/mlp/down_proj.weight');
    const bytes = Buffer.from(tensor?.raw_data ?? []);
    bytes.writeFloatLE(value, 0);
    if (tensor) tensor.raw_data = bytes;
    writeFileSync(file, encodeModel(model));
  }
  beforeAll(async () => {
    await writeInvented(join(root, 'data'), 6, 2);
    writeFileSync(
      config,
      `name: test
dataset: { episodes: data/episodes.jsonl, scenarios: data/scenarios.jsonl, mapping: ${fileURLToPath(new URL('../../mappings/fixture.yaml', import.meta.url))} }
model: { folder: model, threads: 1 }
replay: { role: reader }
capture: { positions: [prompt_end, 'span:action'], pooling: max }
landmarks: [{ anchor: reveal, offset: 1, position: prompt_end }]
`,
    );
  });
  afterAll(() => rmSync(root, { recursive: true }));

  it('refuses a model whose states are not finite, naming the first tap that is not', async () => {
    await spoil(NaN);
    await expect(go('nan')).rejects.toThrow(
      /^resid_post\.1: expected finite activations, got NaN at token \d+ of turn 0/,
    );
  });

  it('notes magnitudes that float16 could not hold, and keeps the note in the result', async () => {
    await spoil(1e9);
    const { extract } = await go('large');
    expect(extract?.health[0]).toMatch(/^resid_post\.1: [\d,]+ values beyond ±65,504 \(largest /);
    expect(notes).toContain(`note: ${extract?.health[0]}`);
  });
});
