import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openGenerator, type GenerateOptions, type Generator } from '../../src/model/open-generator.ts';
import { TINY, writeTinyModel } from '../fakes/tiny-model.ts';

const TAPS = ['resid_post.0', 'resid_post.1', 'resid_post.2'];
const { width } = TINY;
let folder: string;
let plain: Generator;
let steerable: Generator;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'forewarn-steer-'));
  await writeTinyModel(folder, 2);
  plain = await openGenerator({ folder, taps: TAPS, threads: 1, chunk: 8 });
  steerable = await openGenerator({ folder, taps: TAPS, threads: 1, chunk: 8, steer: 'resid_post.1' });
});
afterAll(async () => {
  await Promise.all([plain.close(), steerable.close()]);
  await rm(folder, { recursive: true });
});

const prompt = Int32Array.from({ length: 30 }, (_, i) => (i * 37 + 11) % 256);
const zeros = new Float32Array(width);
const pattern = (size: number): Float32Array => Float32Array.from(zeros, (_, i) => size * Math.sin(i + 1));
const ask = (generator: Generator, more: Partial<GenerateOptions> = {}) =>
  generator.generate({
    ids: prompt,
    maxTokens: 6,
    temperature: 0,
    uniform: () => 0.5,
    stopIds: [],
    capture: true,
    ...more,
  });
/** Row of the last prompt token (0) or of a generated one at a tap. */
const row = ({ data, positions }: { data: Float32Array; positions: Int32Array }, tap: number, at: number) =>
  Array.from(data.subarray((tap * positions.length + at) * width, (tap * positions.length + at + 1) * width));
const largest = (a: readonly number[], b: readonly number[]): number =>
  Math.max(...a.map((value, i) => Math.abs(value - (b[i] ?? NaN))));

describe('steering', () => {
  it('changes nothing where nothing is added and nothing ablated', async () => {
    const before = await ask(plain);
    for (const more of [{}, { steer: { add: zeros, read: zeros, write: zeros } }]) {
      const now = await ask(steerable, { ...more, slot: JSON.stringify(more) });
      expect(now.ids).toEqual(before.ids);
      expect(largest(Array.from(now.data), Array.from(before.data))).toBeLessThan(1e-5);
    }
  });

  it('adds to the stream at its tap and to what follows, and to nothing before', async () => {
    const add = pattern(0.7);
    const before = await ask(plain);
    const now = await ask(steerable, { steer: { add, read: zeros, write: zeros } });
    expect(largest(row(now, 0, 0), row(before, 0, 0))).toBeLessThan(1e-5);
    const expected = row(before, 1, 0).map((value, i) => value + (add[i] ?? NaN));
    expect(largest(row(now, 1, 0), expected)).toBeLessThan(1e-5);
    const shift = row(now, 2, 0).map((value, i) => value - (row(before, 2, 0)[i] ?? NaN));
    expect(Math.max(...shift.map(Math.abs))).toBeGreaterThan(0.1);
  });

  it('leaves the prompt before its last token as it was: the attention of later tokens reads unsteered states', async () => {
    const add = pattern(0.7);
    // Whatever chunks the prompt was computed in, and also where all of it but the last token was computed before.
    const fresh = await ask(steerable, { steer: { add, read: zeros, write: zeros }, slot: 'fresh' });
    await ask(steerable, { ids: prompt.slice(0, -1), maxTokens: 0, slot: 'warm' });
    const warm = await ask(steerable, { steer: { add, read: zeros, write: zeros }, slot: 'warm' });
    expect(warm.ids).toEqual(fresh.ids);
    // Another direction on the same prompt computes only its last token anew.
    const again = await ask(steerable, { steer: { add: pattern(-0.7), read: zeros, write: zeros }, slot: 'fresh' });
    expect(again.computedTokens).toBe(1 + 6);
    expect(largest(Array.from(warm.data), Array.from(fresh.data))).toBeLessThan(1e-5);
  });

  it('takes a direction out of the stream', async () => {
    const raw = pattern(1);
    const norm = Math.hypot(...raw);
    const read = raw.map((value) => value / norm);
    const along = (values: readonly number[]): number => values.reduce((sum, v, i) => sum + v * (read[i] ?? NaN), 0);
    const before = await ask(plain);
    const now = await ask(steerable, { steer: { add: zeros, read, write: read.map((value) => -value) } });
    expect(Math.abs(along(row(before, 1, 0)))).toBeGreaterThan(0.01);
    for (let at = 0; at < now.positions.length; at += 1) expect(Math.abs(along(row(now, 1, at)))).toBeLessThan(1e-5);
  });

  it('leaves nothing behind for the next turn', async () => {
    const steered = await ask(steerable, {
      steer: { add: pattern(5), read: zeros, write: zeros },
      slot: 'conversation',
    });
    const ids = Int32Array.of(...prompt, ...steered.ids, 7, 8, 9);
    const next = await ask(steerable, { ids, slot: 'conversation' });
    const expected = await ask(plain, { ids, slot: 'other' });
    expect(next.ids).toEqual(expected.ids);
    expect(largest(Array.from(next.data), Array.from(expected.data))).toBeLessThan(1e-5);
  });

  it('is refused without a tap to steer at, at a tap there is not, and with vectors of another width', async () => {
    const steer = { add: zeros, read: zeros, write: zeros };
    await expect(ask(plain, { steer })).rejects.toThrow(/opened with a tap to steer at/);
    await expect(ask(steerable, { steer: { ...steer, add: new Float32Array(3) } })).rejects.toThrow(
      /steer.add: expected 32 numbers, got 3/,
    );
    await expect(openGenerator({ folder, taps: [], threads: 1, steer: 'resid_post.9' })).rejects.toThrow(
      /expected a tap of this model, got resid_post.9/,
    );
  });
});

describe('forced tokens', () => {
  it('are taken instead of sampled ones, with the probability the model gave them', async () => {
    const free = await ask(plain, { logprobs: true });
    const forced = await ask(plain, { forced: free.ids.slice(0, 4), logprobs: true });
    expect(forced.ids).toEqual(free.ids);
    expect(largest(Array.from(forced.logprobs), Array.from(free.logprobs))).toBeLessThan(1e-5);
    let total = 0;
    for (let id = 0; id < 272; id += 1) {
      const one = await ask(plain, { forced: Int32Array.of(id), maxTokens: 1, logprobs: true, capture: false });
      expect(Array.from(one.ids)).toEqual([id]);
      total += Math.exp(one.logprobs[0] ?? NaN);
    }
    expect(total).toBeCloseTo(1, 5);
  });
});
