import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { PipelineContext } from '../../src/pipeline/context.ts';
import { lockRun } from '../../src/pipeline/lock-stage.ts';
import { run } from '../../src/pipeline/run.ts';
import { METRICS_SCHEMA } from '../../src/store/figures.ts';
import { writeInvented } from '../fakes/invented-episodes.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

const root = mkdtempSync(join(tmpdir(), 'forewarn-lock-'));
const config = join(root, 'config.yaml');
const mapping = fileURLToPath(new URL('../../mappings/fixture.yaml', import.meta.url));
const context: PipelineContext = {
  clock: { now: () => performance.now(), date: () => new Date(0) },
  progress: { start() {}, advance() {}, note() {}, end() {} },
  signal: new AbortController().signal,
};
const write = (over: { readonly C?: number; readonly layers?: number; readonly alpha?: number } = {}): void =>
  writeFileSync(
    config,
    `name: test
seed: 3
dataset: { episodes: data/episodes.jsonl, scenarios: data/scenarios.jsonl, mapping: ${mapping} }
model: { folder: model, threads: 1 }
replay: { role: reader }
capture: { kinds: [resid_post], positions: [prompt_end], layers: { every: ${over.layers ?? 2} } }
landmarks: [{ anchor: reveal, offset: 1, position: prompt_end }]
train: { C: ${over.C ?? 0.01}, estimators: [logistic], folds: 3, innerFolds: 2, splitSeeds: 1 }
forecast: { bootstrap: 100, randomDirections: 0, permutations: 0, alphas: [${over.alpha ?? 0.05}], hypotheses: [lead time is at least one turn] }
intervene: { randomRepeats: 10 }
output: results
`,
  );
const lock = (out: string) => lockRun(config, { output: join(root, out) }, context);
const go = (out: string) => run(config, { until: 'report', flags: { output: join(root, out) }, resume: null }, context);
const pageOf = (folder: string): string => readFileSync(join(folder, 'report.html'), 'utf8');

describe('lock', () => {
  beforeAll(async () => {
    await writeTinyModel(join(root, 'model'), 5);
    await writeInvented(join(root, 'data'), 16, 2);
  }, 60_000);
  afterAll(() => rmSync(root, { recursive: true }));

  it('writes rows, hypotheses and thresholds once; the run then shows them and that nothing changed', async () => {
    write();
    const { folder, lock: locked, written } = await lock('a');
    expect(written).toBe(true);
    expect(locked.rowCount).toBeGreaterThan(10);
    expect(locked.hypotheses.at(-1)).toBe('lead time is at least one turn');
    expect(locked.hypotheses[0]).toMatch(
      /AUROC within folds at reveal\+1, x-: probe > 0\.5, and probe minus text:best > 0/,
    );
    expect(await lock('a')).toMatchObject({ written: false, lock: { hash: locked.hash } });
    const result = await go('a');
    expect(result.folder).toBe(folder);
    expect(result.metrics?.preregistration).toEqual({
      hash: locked.hash,
      lockedAt: '1970-01-01T00:00:00.000Z',
      rows: locked.rowCount,
      hypotheses: locked.hypotheses,
      thresholds: locked.thresholds,
      folder: null,
      changes: [],
    });
    const schema = z.fromJSONSchema(METRICS_SCHEMA as unknown as Parameters<typeof z.fromJSONSchema>[0]);
    expect(schema.safeParse(JSON.parse(readFileSync(join(folder, 'metrics.json'), 'utf8'))).success).toBe(true);
    expect(pageOf(folder)).toContain('Nothing was changed after the lock');
  }, 300_000);

  it('is never replaced; a run with other settings lists each change, in another folder too', async () => {
    write({ C: 0.1 });
    await expect(lock('a')).rejects.toMatchObject({
      exitCode: 78,
      message: expect.stringMatching(
        /lock\.json: config\.analysis\.train\.C: expected what was locked at 1970.* \(0\.01\), got 0\.1/,
      ),
    });
    const again = await go('a');
    expect(again.metrics?.preregistration?.changes).toEqual([
      { field: 'config.analysis.train.C', locked: '0.01', now: '0.1' },
    ]);
    expect(pageOf(again.folder)).toContain('1 changed after the lock');
    write({ layers: 3 });
    const moved = await go('a');
    expect(moved.folder).not.toBe(again.folder);
    const { folder, changes } = moved.metrics?.preregistration ?? {};
    expect(again.folder.endsWith(folder ?? 'none')).toBe(true);
    expect(changes?.map(({ field }) => field)).toContain('config.extraction.config.capture.layers.every');
  }, 300_000);

  it('is refused once test rows were read, and a run without one says that it is exploratory', async () => {
    write();
    const { folder, metrics } = await go('b');
    expect(metrics?.preregistration).toBeUndefined();
    expect(pageOf(folder)).toContain('Nothing was locked before the test rows were read');
    await expect(lock('b')).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('got one that read them at 1970-01-01'),
    });
  }, 300_000);
});
