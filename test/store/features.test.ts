import * as fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { writeFileAtomic } from '../../src/lib/atomic-write.ts';
import { encodeSafetensors, type TensorToWrite } from '../../src/lib/safetensors.ts';
import { shardPath, writeShard } from '../../src/store/activation-shards.ts';
import { openFeatures } from '../../src/store/features.ts';
import type { FeatureKey } from '../../src/types.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

const WIDTH = 3;
const TAPS = ['embed', 'resid_post.0'];
let folder: string;
beforeEach(() => {
  folder = temporaryFolder('features');
});

const key = (episode: number, turn: number): FeatureKey => ({ episode: `e${episode}`, turn, position: 'pre_action' });
/** A number that says tap, episode, turn and column. */
const cell = (tap: number, { episode, turn }: FeatureKey, column: number): number =>
  tap * 1000 + Number(episode.slice(1)) * 100 + turn * 10 + column;

async function write(shard: number, keys: readonly FeatureKey[]): Promise<void> {
  const data = TAPS.map((_, tap) =>
    Float32Array.from(keys.flatMap((item) => [0, 1, 2].map((column) => cell(tap, item, column)))),
  );
  const done = { keyHash: 'k', shard, computedTokens: 0, seconds: 0, skipped: [], dtype: 'float32' } as const;
  await writeShard(folder, done, { keys, taps: TAPS, width: WIDTH, data });
}
const put = (shard: number, tensors: readonly TensorToWrite[], metadata: Record<string, string>): Promise<boolean> =>
  writeFileAtomic(shardPath(folder, shard), encodeSafetensors(tensors, metadata));

const keys = [0, 1, 2].flatMap((episode) => [0, 1, 2, 3].map((turn) => key(episode, turn)));

describe('stored states', () => {
  it('come back in the order asked for, with repeats, whether a tap fits in memory or not', async () => {
    await write(0, keys.slice(0, 5));
    await write(1, []);
    await write(2, keys.slice(5));
    const whole = await openFeatures(folder, [0, 1, 2]);
    const oneTap = await openFeatures(folder, [0, 1, 2], keys.length * WIDTH * 4);
    const streamed = await openFeatures(folder, [0, 1, 2], 0);
    expect(whole).toMatchObject({ width: WIDTH, taps: TAPS, rows: 12 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...keys), { maxLength: 20 }),
        fc.constantFrom(0, 1),
        async (asked, tap) => {
          const expected = asked.flatMap((item) => [0, 1, 2].map((column) => cell(tap, item, column)));
          for (const features of [whole, oneTap, streamed]) {
            const read = await features.read(TAPS[tap], asked);
            expect([...read.data]).toEqual(expected);
            expect(read).toMatchObject({ rows: asked.length, columns: WIDTH });
          }
        },
      ),
      { numRuns: 30 },
    );
  });

  it('come back from a tap larger than memory when they lie far apart', async () => {
    const many = Array.from({ length: 200 }, (_, turn) => key(0, turn));
    await write(0, many.slice(0, 120));
    await write(1, many.slice(120));
    const streamed = await openFeatures(folder, [0, 1], 0);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(199), { maxLength: 12 }), async (turns) => {
        const read = await streamed.read(
          'resid_post.0',
          turns.map((turn) => many[turn]),
        );
        expect([...read.data]).toEqual(turns.flatMap((turn) => [0, 1, 2].map((column) => cell(1, many[turn], column))));
      }),
      { numRuns: 100 },
    );
  });

  it('are known by episode, turn and position together', async () => {
    await write(0, keys);
    const features = await openFeatures(folder, [0]);
    expect(features.has(key(1, 3))).toBe(true);
    expect(features.has({ ...key(1, 3), position: 'prompt_end' })).toBe(false);
    expect(features.has(key(1, 4))).toBe(false);
  });

  it('that were not captured are refused by name, and so is a tap', async () => {
    await write(0, keys);
    const features = await openFeatures(folder, [0]);
    await expect(features.read('embed', [key(0, 0), key(7, 9)])).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringMatching(/pre_action of turn 9, episode e7, got none\. Add the position/) as string,
    });
    await expect(features.read('resid_post.5', [])).rejects.toThrow(
      /expected the tap resid_post\.5, got embed, resid_post\.0/,
    );
  });

  it('may be none at all', async () => {
    expect(await openFeatures(folder, [])).toMatchObject({ width: 0, taps: [], rows: 0 });
  });
});

const f32 = (name: string, rows: number, width: number): TensorToWrite => ({
  name,
  dtype: 'F32',
  shape: [rows, width],
  data: new Float32Array(rows * width),
});

describe('shards that do not fit together are refused', () => {
  const rows = JSON.stringify([['e9', 0, 'pre_action']]);
  const cases: [string, TensorToWrite[], Record<string, string>, RegExp][] = [
    [
      'another width',
      [f32('embed', 1, 4), f32('resid_post.0', 1, 4)],
      { rows },
      /of width 3 as in the shards before, got 2 of 4/,
    ],
    ['another tap', [f32('embed', 1, 3), f32('resid_post.1', 1, 3)], { rows }, /expected 2 taps/],
    ['a missing tap', [f32('embed', 1, 3)], { rows }, /got 1 of 3/],
    [
      'fewer rows than keys',
      [f32('embed', 0, 3), f32('resid_post.0', 0, 3)],
      { rows },
      /expected embed of shape \[1, 3\], got \[0, 3\]/,
    ],
    ['taps of two widths', [f32('embed', 1, 3), f32('resid_post.0', 1, 4)], { rows }, /resid_post\.0 of shape/],
    [
      'a state twice',
      [f32('embed', 1, 3), f32('resid_post.0', 1, 3)],
      { rows: JSON.stringify([['e0', 0, 'pre_action']]) },
      /each state once, got pre_action of turn 0, episode e0/,
    ],
    ['no keys', [f32('embed', 1, 3), f32('resid_post.0', 1, 3)], {}, /metadata "rows"/],
    [
      'keys of another form',
      [f32('embed', 1, 3), f32('resid_post.0', 1, 3)],
      { rows: '[["e9","0","p"]]' },
      /metadata "rows"/,
    ],
  ];
  for (const [what, tensors, metadata, message] of cases) {
    it(what, async () => {
      await write(0, keys);
      await put(1, tensors, metadata);
      await expect(openFeatures(folder, [0, 1])).rejects.toMatchObject({
        exitCode: 65,
        message: expect.stringMatching(message) as string,
      });
    });
  }
});
