import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DataError } from '../../src/errors.ts';
import type { OpenedRun } from '../../src/pipeline/open-run.ts';
import { checkStates, sharedPlaces } from '../../src/pipeline/state-check.ts';
import type { Features } from '../../src/store/features.ts';
import { type PlanFile, writePlanShard } from '../../src/store/plan-shards.ts';
import type { Capture, FeatureKey, SequencePlan } from '../../src/types.ts';
import { meta } from '../forecast/episodes.ts';

const root = mkdtempSync(join(tmpdir(), 'forewarn-states-'));
afterAll(() => rmSync(root, { recursive: true }));

const capture = (position: string, start: number, end = start + 1): Capture => ({
  turn: 0,
  position,
  start,
  end,
  pooling: 'none',
  straddles: false,
});
const sequence = (episode: string, ids: readonly number[], captures: readonly Capture[]): SequencePlan => ({
  episode,
  turn: 0,
  ids: Int32Array.from(ids),
  promptLength: 2,
  idsFrom: 'rendered',
  captures,
  cut: null,
});
const places = [capture('prompt_end', 1), capture('span:reasoning', 1, 4), capture('pre_action', 4)];
// The worlds differ from token 3 on: the prompt end is shared, the span reaches past it and the rest lies behind it.
const minus = sequence('minus', [5, 6, 7, 8, 9], places);
const plus = sequence('plus', [5, 6, 7, 1, 9], places);

test('only positions whose every token both sequences have read before they differ are shared', () => {
  expect(sharedPlaces(minus, plus).map(({ a }) => a.position)).toEqual(['prompt_end']);
  expect(sharedPlaces(minus, { ...plus, ids: minus.ids }).map(({ a }) => a.position)).toEqual([
    'prompt_end',
    'span:reasoning',
    'pre_action',
  ]);
  expect(sharedPlaces(minus, sequence('plus', [4, 6, 7, 8, 9], places))).toEqual([]);
  expect(sharedPlaces(minus, sequence('plus', [5, 6, 7, 8], [capture('prompt_end', 0)]))).toEqual([]);
});

let plan: PlanFile;
beforeAll(async () => {
  // The twin comes first here, and in another shard: neither may matter.
  const shards = [[plus], [minus, sequence('alone', [5, 6], [places[0]])]];
  plan = {
    shards: await Promise.all(
      shards.map(async (sequences, index) => ({ index, sha256: await writePlanShard(root, index, sequences) })),
    ),
  } as unknown as PlanFile;
});
const run = (world: 'x+' | 'none', dtype = 'float32'): OpenedRun =>
  ({
    folder: { path: root },
    config: { capture: { dtype } },
    metas: [
      meta('minus', { pairId: 'p', world: world === 'none' ? 'none' : 'x-' }),
      meta('plus', { pairId: 'p', world }),
      meta('alone', { pairId: 'q', world: world === 'none' ? 'none' : 'x-' }),
    ],
  }) as unknown as OpenedRun;
const features = (shift: number): Features =>
  ({
    width: 2,
    taps: ['embed', 'resid_post.0'],
    rows: 0,
    has: () => true,
    read: (tap: string, keys: readonly FeatureKey[]) =>
      Promise.resolve({
        rows: keys.length,
        columns: 2,
        data: Float32Array.from(
          keys.flatMap(({ episode }) => [3, 4 + (episode === 'plus' && tap !== 'embed' ? shift : 0)]),
        ),
      }),
  }) as unknown as Features;

test('equal states are counted, rounding is measured, and more than rounding stops the run by name', async () => {
  expect(await checkStates(run('x+'), plan, features(0))).toEqual({ compared: 2, identical: 2, largest: 0 });
  const rounded = await checkStates(run('x+'), plan, features(1e-3));
  expect(rounded).toMatchObject({ compared: 2, identical: 1 });
  expect(rounded!.largest).toBeCloseTo(2e-4, 6);
  const wrong = checkStates(run('x+'), plan, features(0.5));
  await expect(wrong).rejects.toThrow(DataError);
  await expect(wrong).rejects.toThrow(
    'expected the same state at resid_post.0, prompt_end of turn 0, in minus and plus, which have read the same tokens there, got a difference of 10.0 % of its norm',
  );
  // Half a unit in the last place of bfloat16 is more than that of float32.
  await expect(checkStates(run('x+'), plan, features(0.05))).rejects.toThrow('1.0 %');
  expect(await checkStates(run('x+', 'bfloat16'), plan, features(0.05))).toMatchObject({ identical: 1 });
});

test('without matched worlds there is nothing to compare', async () => {
  expect(await checkStates(run('none'), plan, features(0.5))).toBe(null);
});
