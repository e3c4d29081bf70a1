import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { MismatchError } from '../../src/errors.ts';
import type { PipelineContext } from '../../src/pipeline/context.ts';
import { reportFolder } from '../../src/pipeline/report-folder.ts';
import { run, type RunResult } from '../../src/pipeline/run.ts';
import { type Curves, CURVES_SCHEMA } from '../../src/store/curves.ts';
import { METRICS_SCHEMA } from '../../src/store/figures.ts';
import { readParquet } from '../../src/store/tables.ts';
import { writeInvented } from '../fakes/invented-episodes.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

const root = mkdtempSync(join(tmpdir(), 'forewarn-run-'));
const config = join(root, 'config.yaml');
const mapping = fileURLToPath(new URL('../../mappings/fixture.yaml', import.meta.url));
const context: PipelineContext = {
  clock: { now: () => performance.now(), date: () => new Date(0) },
  progress: { start() {}, advance() {}, note() {}, end() {} },
  signal: new AbortController().signal,
};
const base = (over = ''): string => `name: test
seed: 3
dataset: { episodes: data/episodes.jsonl, scenarios: data/scenarios.jsonl, reportLabels: data/report_labels.jsonl, mapping: ${mapping} }
model: { folder: model, threads: 1 }
replay: { role: reader }
capture: { positions: [prompt_end, pre_action], layers: { every: 2 } }
landmarks:
  - { anchor: reveal, offset: 1, position: [prompt_end, pre_action] }
train: { C: 0.01, folds: 3, innerFolds: 2, splitSeeds: 3 }
forecast: { bootstrap: 200, randomDirections: 2${over} }
intervene: { randomRepeats: 10 }
output: results
`;

const go = (out: string, resume: string | null = null): Promise<RunResult> =>
  run(config, { until: 'report', flags: { output: join(root, out) }, resume }, context);
const bytes = (result: RunResult, file: string): string => readFileSync(join(result.folder, file)).toString('base64');

describe('run', () => {
  let first: RunResult;
  beforeAll(async () => {
    await writeTinyModel(join(root, 'model'), 5);
    await writeInvented(join(root, 'data'), 16, 2);
    writeFileSync(config, base());
    first = await go('a');
  }, 300_000);
  afterAll(() => rmSync(root, { recursive: true }));

  it('leaves plan, activations, scores, metrics, probes and a report', () => {
    expect(readdirSync(first.folder).sort()).toEqual(
      [
        'activations',
        'curves.json',
        'exclusions.parquet',
        'interventions.parquet',
        'metrics.json',
        'plan',
        'plan.json',
        'probes',
        'report.html',
        'report.json',
        'run.json',
        'scores.parquet',
      ].sort(),
    );
    expect((JSON.parse(readFileSync(join(first.folder, 'run.json'), 'utf8')) as { status: string }).status).toBe(
      'done',
    );
  });

  it('scores every at-risk episode once per reader, landmark and position, out of fold', async () => {
    const rows = await readParquet(join(first.folder, 'scores.parquet'));
    const keys = rows.map((row) =>
      [row['episode'], row['reader'], row['tap'], row['landmark'], row['position'], row['population']].join(' '),
    );
    expect(rows.length).toBeGreaterThan(100);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('gives the same metrics, byte for byte, when everything is made again', async () => {
    const again = await go('b');
    expect(bytes(again, 'metrics.json')).toBe(bytes(first, 'metrics.json'));
  });

  it('shows the same page from the stored files alone, byte for byte, and says what is not there', async () => {
    const page = await reportFolder(first.folder, join(root, 'page'));
    expect(readFileSync(page.path, 'utf8')).toBe(readFileSync(join(first.folder, 'report.html'), 'utf8'));
    expect(page.headline).toEqual(first.headline);
    mkdirSync(join(root, 'published'));
    copyFileSync(join(first.folder, 'metrics.json'), join(root, 'published', 'metrics.json'));
    const bare = await reportFolder(join(root, 'published', 'metrics.json'), null);
    expect(bare.missing.map((line) => line.split(':')[0])).toEqual([
      'curves.json',
      'report.json',
      'exclusions.parquet',
    ]);
    expect(readFileSync(join(root, 'published', 'report.html'), 'utf8')).toContain('the run folder has no curves.json');
    await expect(reportFolder(root, null)).rejects.toThrow(/expected the figures of a run/);
  });

  it('stores curves and figures that their JSON schemas take', () => {
    const schema = z.fromJSONSchema(CURVES_SCHEMA as unknown as Parameters<typeof z.fromJSONSchema>[0]);
    const curves: unknown = JSON.parse(readFileSync(join(first.folder, 'curves.json'), 'utf8'));
    expect(schema.safeParse(curves).error).toBe(undefined);
    const figures = z.fromJSONSchema(METRICS_SCHEMA as unknown as Parameters<typeof z.fromJSONSchema>[0]);
    expect(figures.safeParse(JSON.parse(readFileSync(join(first.folder, 'metrics.json'), 'utf8'))).error).toBe(
      undefined,
    );
    expect((curves as Curves).stops.length).toBeGreaterThan(0);
    expect((curves as Curves).thresholds.length).toBeGreaterThan(0);
  });

  it('gives the same metrics when a shard was lost or damaged', async () => {
    const folder = join(first.folder, 'activations');
    const shard = readdirSync(folder).filter((name) => name.endsWith('.safetensors'))[0];
    writeFileSync(join(folder, shard), readFileSync(join(folder, shard)).subarray(0, 100));
    const before = bytes(first, 'metrics.json');
    const again = await go('a');
    expect(bytes(again, 'metrics.json')).toBe(before);
  });

  it('reuses activations when only the analysis changes, and says what changed', async () => {
    writeFileSync(config, base(', alphas: [0.1]'));
    const again = await go('a');
    expect(again.folder).toBe(first.folder);
    expect(again.metrics?.figures.some((figure) => figure.alpha === 0.1)).toBe(true);
    writeFileSync(config, base());
  });

  it('refuses to resume the run of another configuration, field by field', async () => {
    writeFileSync(config, base().replace('seed: 3', 'seed: 4'));
    await expect(go('a', first.folder)).rejects.toThrow(MismatchError);
    await expect(go('a', first.folder)).rejects.toThrow(/analysis\.seed: \d → 4/);
    writeFileSync(config, base());
  });
});
