import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PipelineContext } from '../../src/pipeline/context.ts';
import { run, type RunResult } from '../../src/pipeline/run.ts';
import { writeInvented } from '../fakes/invented-episodes.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

const root = mkdtempSync(join(tmpdir(), 'forewarn-hf-'));
const COMMIT = 'fedcba9876543210fedcba9876543210fedcba98';
const context: PipelineContext = {
  clock: { now: () => 0, date: () => new Date(0) },
  progress: { start: () => {}, advance: () => {}, note: () => {}, end: () => {} },
  signal: new AbortController().signal,
};

async function plan(name: string, data: string, model: string): Promise<RunResult> {
  const config = join(root, `${name}.yaml`);
  writeFileSync(
    config,
    `name: ${name}
dataset: { episodes: '${data}/episodes.jsonl', scenarios: '${data}/scenarios.jsonl', mapping: ${fileURLToPath(new URL('../../mappings/fixture.yaml', import.meta.url))} }
model: { folder: '${model}', threads: 1 }
replay: { role: reader }
capture: { positions: [prompt_end] }
landmarks: [{ anchor: reveal, offset: 1, position: prompt_end }]
output: results
`,
  );
  return run(config, { until: 'plan', flags: {}, resume: null }, context);
}

describe('a configuration with addresses of the hub', () => {
  const before = { cache: process.env['HF_HUB_CACHE'], offline: process.env['HF_HUB_OFFLINE'] };
  beforeAll(async () => {
    await writeTinyModel(join(root, 'model'), 5);
    await writeInvented(join(root, 'data'), 6, 2);
    const cache = join(root, 'cache');
    cpSync(join(root, 'model'), join(cache, 'models--me--tiny', 'snapshots', COMMIT), { recursive: true });
    cpSync(join(root, 'data'), join(cache, 'datasets--me--invented', 'snapshots', COMMIT), { recursive: true });
    process.env['HF_HUB_CACHE'] = cache;
    process.env['HF_HUB_OFFLINE'] = '1';
  });
  afterAll(() => {
    for (const [name, value] of [
      ['HF_HUB_CACHE', before.cache],
      ['HF_HUB_OFFLINE', before.offline],
    ] as const)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    rmSync(root, { recursive: true });
  });

  it('plans offline from the cache what the same files plan from a folder', async () => {
    const local = await plan('local', 'data', 'model');
    const hub = await plan('hub', `hf://datasets/me/invented@${COMMIT}`, `hf://me/tiny@${COMMIT}`);
    expect(readdirSync(join(hub.folder, 'plan'))).toEqual(readdirSync(join(local.folder, 'plan')));
    for (const name of readdirSync(join(hub.folder, 'plan')))
      expect(readFileSync(join(hub.folder, 'plan', name))).toEqual(readFileSync(join(local.folder, 'plan', name)));
  }, 120_000);

  it('says which address cannot be had', async () => {
    await expect(plan('missing', `hf://datasets/me/other@${COMMIT}`, 'model')).rejects.toThrow(
      /^hf:\/\/datasets\/me\/other@fedcba\S+: expected the revision on the hub or in the cache/,
    );
    await expect(plan('branch', 'hf://datasets/me/invented@main', 'model')).rejects.toThrow(/got the branch main/);
  }, 120_000);
});
