import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DataError, MismatchError, UserError } from '../../src/errors.ts';
import { sha256 } from '../../src/lib/content-hash.ts';
import { encodeSafetensors, readSafetensorsHeader, readTensorBytes } from '../../src/lib/safetensors.ts';
import type { PipelineContext } from '../../src/pipeline/context.ts';
import { run, type RunOptions, type RunResult } from '../../src/pipeline/run.ts';
import { writeInvented } from '../fakes/invented-episodes.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

const root = mkdtempSync(join(tmpdir(), 'forewarn-engine-'));
const config = join(root, 'config.yaml');
const notes: string[] = [];
const context: PipelineContext = {
  clock: { now: () => 0, date: () => new Date(0) },
  progress: { start: () => {}, advance: () => {}, note: (line) => void notes.push(line), end: () => {} },
  signal: new AbortController().signal,
};
const write = (model: string): void =>
  writeFileSync(
    config,
    `name: test
dataset: { episodes: data/episodes.jsonl, scenarios: data/scenarios.jsonl, mapping: ${fileURLToPath(new URL('../../mappings/fixture.yaml', import.meta.url))} }
model: { folder: ${model}, threads: 1 }
replay: { role: reader }
capture: { kinds: [embed, resid_post], positions: [prompt_end, pre_action, span:action] }
landmarks: [{ anchor: reveal, offset: 1, position: prompt_end }]
output: results
`,
  );
const go = (out: string, options: Partial<RunOptions>): Promise<RunResult> =>
  run(config, { until: 'extract', flags: { output: join(root, out) }, resume: null, ...options }, context);
const shards = (folder: string): string[] => readdirSync(folder).filter((name) => name.endsWith('.safetensors'));

/** What an engine writes that computes exactly what was computed here: rows in another order, and its own metadata. */
async function fill(
  plan: string,
  computed: string,
  to: string,
  change: (data: Float32Array, width: number) => void = () => {},
) {
  mkdirSync(to, { recursive: true });
  for (const name of shards(computed)) {
    const path = join(computed, name);
    const header = await readSafetensorsHeader(path);
    const rows = JSON.parse(header.metadata.get('rows') ?? '[]') as unknown[];
    const tensors = [];
    for (const [tap, { shape }] of header.tensors) {
      const values = new Float32Array((await readTensorBytes(path, header, tap)).buffer);
      const width = shape[1];
      const data = new Float32Array(values.length);
      for (let row = 0; row < shape[0]; row += 1)
        data.set(values.subarray(row * width, (row + 1) * width), (shape[0] - 1 - row) * width);
      if (tap !== 'embed') change(data, width);
      tensors.push({ name: tap, dtype: 'F32' as const, shape, data });
    }
    const planned = join(plan, 'plan', name);
    const ids = await readTensorBytes(planned, await readSafetensorsHeader(planned), 'ids');
    const metadata = { rows: JSON.stringify(rows.reverse()), ids_sha256: sha256(ids), engine: 'fake 1.0' };
    writeFileSync(join(to, name), Buffer.concat(encodeSafetensors(tensors, metadata)));
  }
}

describe('another engine', () => {
  const exported = join(root, 'plan');
  const states = join(root, 'states');
  let ours: RunResult;
  beforeAll(async () => {
    await writeTinyModel(join(root, 'model'), 5);
    await writeInvented(join(root, 'data'), 6, 2);
    write('model');
    await go('planned', { until: 'plan', exportTo: exported });
    ours = await go('ours', {});
    await fill(exported, join(ours.folder, 'activations'), states);
  }, 120_000);
  afterAll(() => rmSync(root, { recursive: true }));

  it('reads a plan that holds every shard, and gives back the activations that a run would have computed', async () => {
    const taken = await go('taken', { importFrom: states });
    expect(shards(join(exported, 'plan'))).toHaveLength(ours.plan.shards.length);
    expect(taken.extract).toMatchObject({ rows: ours.extract?.rows, engines: ['fake 1.0'] });
    expect(taken.extract?.imported?.pairs).toBeGreaterThan(0);
    expect(taken.extract?.imported?.largestDifference).toBe(0);
    for (const name of shards(join(ours.folder, 'activations')))
      expect(readFileSync(join(taken.folder, 'activations', name))).toEqual(
        readFileSync(join(ours.folder, 'activations', name)),
      );
  });

  it('is named by the run, whose later stages go on from its activations', async () => {
    const again = await go('taken', {});
    expect(again.extract).toMatchObject({ engines: ['fake 1.0'], computedTokens: 0 });
    const record = JSON.parse(readFileSync(join(again.folder, 'run.json'), 'utf8')) as { notes: { extract: object } };
    expect(record.notes.extract).toMatchObject({ engines: ['fake 1.0'] });
  });

  it('is not mixed with activations computed here, in either order', async () => {
    await expect(go('ours', { importFrom: states })).rejects.toThrow(MismatchError);
    await expect(go('ours', { importFrom: states })).rejects.toThrow(/expected no activations yet, got \d+ of \d+/);
    const taken = await go('half', { importFrom: states });
    rmSync(join(taken.folder, 'activations', shards(join(taken.folder, 'activations'))[0]));
    await expect(go('half', {})).rejects.toThrow(/expected activations of one engine, got \d+ shards of fake 1\.0/);
  });

  it('is refused with the file and the row when its states are not finite, zero, or unlike their twins', async () => {
    const cases: [string, (data: Float32Array, width: number) => void, RegExp][] = [
      ['nan', (data) => data.fill(NaN, 3, 4), /shard-00000\.safetensors: expected finite values of resid_post\.0/],
      ['zero', (data, width) => data.fill(0, 0, width), /expected states of resid_post\.0, got zeros at/],
      [
        'twin',
        (data) => data.forEach((value, at) => (data[at] = value + at / data.length)),
        /expected equal states of resid_post\.\d after the same tokens/,
      ],
    ];
    for (const [name, change, message] of cases) {
      const bad = join(root, `bad-${name}`);
      await fill(exported, join(ours.folder, 'activations'), bad, change);
      await expect(go(`bad-out-${name}`, { importFrom: bad })).rejects.toThrow(DataError);
      await expect(go(`bad-out-${name}`, { importFrom: bad })).rejects.toThrow(message);
    }
  });

  it('that wrote nothing yet is told apart from one that wrote half', async () => {
    await expect(go('none', { importFrom: join(root, 'nowhere') })).rejects.toThrow(UserError);
    mkdirSync(join(root, 'empty'), { recursive: true });
    await expect(go('none', { importFrom: join(root, 'empty') })).rejects.toThrow(/expected \d+ shards as in the plan/);
  });

  it('serves a model folder without a graph: its plan has the same ids and rows, and running it here is refused', async () => {
    const folder = join(root, 'no-graph');
    cpSync(join(root, 'model'), folder, { recursive: true });
    rmSync(join(folder, 'model.onnx'));
    write('no-graph');
    const there = join(root, 'plan-no-graph');
    await go('no-graph-out', { until: 'plan', exportTo: there });
    for (const name of shards(join(exported, 'plan')))
      expect(readFileSync(join(there, 'plan', name))).toEqual(readFileSync(join(exported, 'plan', name)));
    await expect(go('no-graph-out', {})).rejects.toThrow(
      /expected a \.onnx file .* plan --export, then extract --from/,
    );
    const taken = await go('no-graph-out', { importFrom: states });
    expect(taken.extract?.rows).toBe(ours.extract?.rows);
    write('model');
  });

  it('does not get a plan into a folder that holds another one', async () => {
    writeFileSync(config, readFileSync(config, 'utf8').replace('pre_action, ', ''));
    await expect(go('other', { until: 'plan', exportTo: exported })).rejects.toThrow(MismatchError);
    write('model');
  });
});
