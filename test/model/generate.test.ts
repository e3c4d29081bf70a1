import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openGenerator, type GenerateOptions, type Generator } from '../../src/model/open-generator.ts';
import { openReplayer } from '../../src/model/open-replayer.ts';
import { TINY, writeTinyModel } from '../fakes/tiny-model.ts';

const TAPS = ['embed', 'resid_post.1', 'final_norm'];
let folder: string;
let generator: Generator;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'forewarn-generate-'));
  await writeTinyModel(folder, 2);
  generator = await openGenerator({ folder, taps: TAPS, threads: 1, chunk: 8 });
});
afterAll(async () => {
  await generator.close();
  await rm(folder, { recursive: true });
});

const prompt = Int32Array.from({ length: 30 }, (_, i) => (i * 37 + 11) % 256);
/** The same step gives the same number in [0, 1). */

const positive = (step: number): number => Math.abs(Math.sin(step * 12.9898 + 4) * 43758.5453) % 1;
const ask = (more: Partial<GenerateOptions> = {}) =>
  generator.generate({
    ids: prompt,
    maxTokens: 12,
    temperature: 1,
    topP: 0.9,
    uniform: positive,
    stopIds: [],
    ...more,
  });

describe('openGenerator', () => {
  it('gives the same tokens for the same uniforms, and other tokens for others', async () => {
    const a = await ask();
    const b = await ask();
    const c = await ask({ uniform: (step) => (positive(step) + 0.5) % 1 });
    expect(a.ids).toEqual(b.ids);
    expect(a.ids).toHaveLength(12);
    expect(a.stop).toBe('length');
    expect(c.ids).not.toEqual(a.ids);
  });

  it('goes on from a state it holds: the answer is that of a fresh model, with fewer tokens computed', async () => {
    const first = await ask({ temperature: 0 });
    const longer = Int32Array.of(...prompt, ...first.ids, 1, 2, 3);
    const next = await ask({ temperature: 0, ids: longer, capture: true });
    expect(next.computedTokens).toBe(3 + 12);
    const fork = Int32Array.of(...prompt, ...first.ids.subarray(0, 4), 9, 9);
    const forked = await ask({ temperature: 0, ids: fork });
    expect(forked.computedTokens).toBe(2 + 12);
    const other = await openGenerator({ folder, taps: TAPS, threads: 1, chunk: 8 });
    const request = { maxTokens: 12, temperature: 0, uniform: positive, stopIds: [], capture: true };
    const fresh = await other.generate({ ...request, ids: longer });
    expect(fresh.computedTokens).toBe(longer.length + 12);
    expect(next.ids).toEqual(fresh.ids);
    expect((await other.generate({ ...request, ids: fork })).ids).toEqual(forked.ids);
    for (const [i, v] of next.data.entries()) expect(Math.abs(v - (fresh.data[i] ?? NaN))).toBeLessThan(1e-5);
    await other.close();
  });

  it('captures the states that a replay of the same ids gives', async () => {
    const live = await ask({ capture: true });
    const all = Int32Array.of(...prompt, ...live.ids);
    expect(live.positions).toEqual(Int32Array.from({ length: 13 }, (_, i) => prompt.length - 1 + i));
    const replayer = await openReplayer({ folder, taps: TAPS, threads: 1 });
    for await (const { data } of replayer.replay([{ ids: all, rows: live.positions }])) {
      expect(data).toHaveLength(TAPS.length * 13 * TINY.width);
      expect(live.data).toHaveLength(data.length);
      for (const [i, v] of data.entries()) expect(Math.abs(v - (live.data[i] ?? NaN))).toBeLessThan(1e-5);
    }
    await replayer.close();
  });

  it('stops at a stop id, which is the last of the result', async () => {
    const { ids } = await ask();
    const stop = ids[5];
    const at = ids.indexOf(stop);
    const stopped = await ask({ stopIds: [stop] });
    expect(stopped.stop).toBe('stop_id');
    expect(stopped.ids).toEqual(ids.subarray(0, at + 1));
  });

  it('stops when the reader of tokens says so, after the token it has seen', async () => {
    const seen: number[] = [];
    const result = await ask({ onToken: (id) => seen.push(id) < 4 });
    expect(result.stop).toBe('stopped');
    expect([...result.ids]).toEqual(seen);
    expect(seen).toHaveLength(4);
  });

  it('hands on what the reader of tokens throws', async () => {
    const boom = new Error('boom');
    await expect(
      ask({
        onToken: () => {
          throw boom;
        },
      }),
    ).rejects.toBe(boom);
    expect((await ask()).ids).toHaveLength(12);
  });

  it('serves calls made at the same time one after the other', async () => {
    const alone = await ask();
    const both = await Promise.all([ask(), ask({ uniform: () => 0.1 }), ask()]);
    expect(both[0]?.ids).toEqual(alone.ids);
    expect(both[2]?.ids).toEqual(alone.ids);
  });

  it('refuses a prompt that does not fit the context, and ids outside the vocabulary', async () => {
    await expect(ask({ ids: new Int32Array(TINY.context - 5) })).rejects.toThrow(/at most 16384 tokens/);
    await expect(ask({ ids: Int32Array.of(5000) })).rejects.toThrow(/token 0: expected an id below 272/);
  });
});
