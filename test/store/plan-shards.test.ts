import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { type PlanFile, readPlan, readPlanShard, writePlan, writePlanShard } from '../../src/store/plan-shards.ts';
import type { SequencePlan } from '../../src/types.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

const now = new Date('2026-01-01');
let folder: string;
beforeEach(() => {
  folder = temporaryFolder('plan');
});

const capture = fc.record({
  turn: fc.nat(50),
  position: fc.constantFrom('prompt_end', 'pre_action', 'pre_action:1', 'span:reasoning', 'recorded:é'),
  start: fc.nat(1000),
  end: fc.nat(1000),
  pooling: fc.constantFrom('none' as const, 'mean' as const),
  straddles: fc.boolean(),
});
const sequence: fc.Arbitrary<SequencePlan> = fc.record({
  episode: fc.string({ unit: 'grapheme' }),
  turn: fc.nat(50),
  ids: fc.int32Array({ min: 0, max: 300_000, maxLength: 20 }),
  promptLength: fc.nat(1000),
  idsFrom: fc.constantFrom('logged' as const, 'completion-text' as const, 'rendered' as const),
  captures: fc.array(capture, { maxLength: 4 }),
  cut: fc.option(fc.record({ start: fc.nat(9), count: fc.nat(9) })),
});

const info = (index: number, sha256: string) => ({
  index,
  sequences: 0,
  rows: 0,
  naiveTokens: 0,
  distinctTokens: 0,
  sha256,
});
const planOf = (shards: PlanFile['shards']): PlanFile => ({
  schemaVersion: 1,
  keyHash: 'k',
  episodes: 1,
  turns: 1,
  naiveTokens: 1,
  distinctTokens: 1,
  rootTokens: 0,
  truncatedTurns: 0,
  idsFrom: {},
  positions: {},
  straddling: {},
  verification: {
    checkedTurns: 0,
    agreedTurns: 0,
    models: [],
    notCompared: {},
    reconstruction: { checked: 0, agreed: 0 },
  },
  taps: ['embed'],
  exclusions: [],
  shards,
});

describe('a shard of the plan', () => {
  it('gives ids and positions back', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(sequence, { maxLength: 5 }), async (sequences) => {
        const sha256 = await writePlanShard(folder, 0, sequences);
        expect(await readPlanShard(folder, info(0, sha256))).toEqual(sequences);
      }),
      { numRuns: 40 },
    );
  });

  it('is the same file whenever it is written', async () => {
    const list = fc.sample(sequence, { numRuns: 3, seed: 1 });
    expect(await writePlanShard(folder, 0, list)).toBe(await writePlanShard(folder, 1, list));
  });

  it('with a flipped bit, or that is gone, is refused before its ids are used', async () => {
    const sha256 = await writePlanShard(folder, 0, fc.sample(sequence, { numRuns: 3, seed: 1 }));
    const path = join(folder, 'plan', 'shard-00000.safetensors');
    const bytes = readFileSync(path);
    bytes[bytes.length - 1] ^= 1;
    writeFileSync(path, bytes);
    await expect(readPlanShard(folder, info(0, sha256))).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringMatching(/shard-00000\.safetensors: expected sha256 .*Remove plan\.json/) as string,
    });
    rmSync(path);
    await expect(readPlanShard(folder, info(0, sha256))).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringContaining('ENOENT') as string,
    });
  });
});

describe('the plan', () => {
  it('is read back under its own key, when its shards are there', async () => {
    const sha256 = await writePlanShard(folder, 0, fc.sample(sequence, { numRuns: 2, seed: 1 }));
    const plan = planOf([info(0, sha256)]);
    expect(await readPlan(folder, 'k', now)).toBeNull();
    await writePlan(folder, plan);
    expect(await readPlan(folder, 'k', now)).toEqual(plan);
    expect(await readPlan(folder, 'another', now)).toBeNull();
    rmSync(join(folder, 'plan'), { recursive: true });
    expect(await readPlan(folder, 'k', now)).toBeNull();
  });

  it('is made again when it is damaged', async () => {
    for (const text of [
      '',
      '{"schemaVersion":1',
      'null',
      '{"schemaVersion":2,"keyHash":"k"}',
      '{"schemaVersion":1,"keyHash":"k"}',
    ]) {
      writeFileSync(join(folder, 'plan.json'), text);
      expect(await readPlan(folder, 'k', now)).toBeNull();
    }
  });
});
