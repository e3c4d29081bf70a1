import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openReplayer, type ModelReplayer, type ReplayerOptions } from '../../src/model/open-replayer.ts';
import { inspectModel } from '../../src/model/inspect-model.ts';
import type { ReplaySequence } from '../../src/types.ts';
import { TINY, writeTinyModel } from '../fakes/tiny-model.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'forewarn-replay-'));
  await writeTinyModel(folder, 1);
});
afterAll(() => rm(folder, { recursive: true }));

const TAPS = ['embed', 'resid_mid.1', 'resid_post.0', 'resid_post.2', 'final_norm'];
const open = (more: Partial<ReplayerOptions> = {}): Promise<ModelReplayer> =>
  openReplayer({ folder, taps: TAPS, threads: 1, chunk: 8, ...more });

const ids = (length: number, seed: number): Int32Array =>
  Int32Array.from({ length }, (_, i) => (i * 7919 + seed * 104729 + ((i * i) % 13)) % 256);
const join = (...parts: Int32Array[]): Int32Array => Int32Array.from(parts.flatMap((p) => [...p]));
const every = (sequence: Int32Array): ReplaySequence => ({ ids: sequence, rows: sequence.map((_, i) => i) });

async function collect(replayer: ModelReplayer, sequences: readonly ReplaySequence[]): Promise<Float32Array[]> {
  const blocks: Float32Array[] = [];
  for await (const block of replayer.replay(sequences)) {
    expect(block.sequence).toBe(blocks.length);
    blocks.push(block.data);
  }
  return blocks;
}

function worst(a: readonly Float32Array[], b: readonly Float32Array[]): number {
  let difference = 0;
  let scale = 0;
  expect(a.map((x) => x.length)).toEqual(b.map((x) => x.length));
  for (const [s, x] of a.entries()) {
    for (let i = 0; i < x.length; i++) {
      difference = Math.max(difference, Math.abs((x[i] ?? NaN) - (b[s]?.[i] ?? NaN)));
      scale = Math.max(scale, Math.abs(x[i] ?? 0));
    }
  }
  return difference / scale;
}

/** Turns of two episodes with a common prompt: extensions, a dropped reasoning, a duplicate, a prefix, an empty request. */
const prompt = ids(21, 1);
const first = join(prompt, ids(9, 2));
const sequences: readonly ReplaySequence[] = [
  every(join(first, ids(5, 3))),
  every(first),
  every(join(prompt, ids(4, 4), ids(17, 5))),
  { ids: join(first, ids(5, 3), ids(30, 6)), rows: Int32Array.of(0, 20, 21, 34, 35, 64) },
  every(first),
  { ids: first, rows: new Int32Array(0) },
  every(ids(13, 9)),
  { ids: join(prompt, ids(4, 4), ids(17, 5), ids(3, 1)), rows: Int32Array.of(24) },
];

describe('openReplayer', () => {
  it('gives the same states with and without shared prefixes, in every chunk size', async () => {
    const alone = await open({ sharing: false, chunk: Infinity });
    const want = await collect(alone, sequences);
    await alone.close();
    for (const chunk of [1, 7, 8, 64, Infinity]) {
      const shared = await open({ chunk });
      const got = await collect(shared, sequences);
      expect(worst(want, got)).toBeLessThan(2e-6);
      const { computedTokens, naiveTokens } = shared.stats();
      const distinct = new Set<string>();
      for (const { ids: path, rows } of sequences) {
        for (let end = 1; end <= (rows.at(-1) ?? -1) + 1; end++) distinct.add(path.subarray(0, end).join());
      }
      expect(computedTokens).toBe(distinct.size);
      expect(naiveTokens).toBe(sequences.reduce((n, s) => n + s.ids.length, 0));
      await shared.close();
    }
  });

  it('gives the same bytes whether a set of sequences comes first or after others with the same prompt', async () => {
    const a = sequences.slice(0, 3);
    const b = [join(prompt, ids(30, 7)), join(prompt, ids(12, 8))].map((s) => ({
      ids: s,
      rows: Int32Array.of(22, s.length - 1),
    }));
    const one = await open();
    await collect(one, a);
    const after = await collect(one, b);
    const tokens = one.stats().computedTokens;
    await one.close();
    const two = await open();
    const first = await collect(two, b);
    await collect(two, a);
    expect(after).toEqual(first);
    // Sharing across calls must have saved something for this to mean anything.
    const without = await open();
    await collect(without, a);
    await without.close();
    const fresh = await open();
    await collect(fresh, b);
    expect(tokens).toBeLessThan(without.stats().computedTokens + fresh.stats().computedTokens);
    await two.close();
    await fresh.close();
  });

  it('computes the tokens that all sequences share once over all calls, with the same bytes in any order', async () => {
    const set = (seed: number): readonly ReplaySequence[] =>
      [join(prompt, ids(30, seed)), join(prompt, ids(11, seed + 1))].map((s) => ({
        ids: s,
        rows: Int32Array.of(prompt.length, s.length - 1),
      }));
    // 21 shared tokens are no multiple of the chunk of 8.
    const rootTokens = prompt.length;
    const one = await open({ rootTokens });
    await collect(one, set(7));
    const after = await collect(one, set(17));
    expect(one.stats().computedTokens).toBe(rootTokens + 30 + 11 + 30 + 11);
    await one.close();
    const alone = await open({ rootTokens, carry: false });
    expect(await collect(alone, set(17))).toEqual(after);
    await collect(alone, set(7));
    expect(alone.stats().computedTokens).toBe(2 * (rootTokens + 30 + 11));
    await alone.close();
    const plain = await open();
    expect(worst(await collect(plain, set(17)), after)).toBeLessThan(1e-5);
    await plain.close();
  });

  it('reads the same rows under the name of each tap, one at a time or all at once', async () => {
    const all = await open();
    const rows = Int32Array.of(3, 11, 29);
    const [block] = await collect(all, [{ ids: first, rows }]);
    for (const [k, tap] of TAPS.entries()) {
      const one = await open({ taps: [tap] });
      const [alone] = await collect(one, [{ ids: first, rows }]);
      const size = rows.length * TINY.width;
      expect(worst([alone], [block.subarray(k * size, (k + 1) * size)])).toBeLessThan(1e-6);
      await one.close();
    }
    await all.close();
  });

  it('keeps the event loop of the parent free while the model runs', async () => {
    const replayer = await open({ chunk: Infinity });
    let ticks = 0;
    const timer = setInterval(() => ticks++, 1);
    await collect(replayer, [{ ids: ids(4000, 1), rows: Int32Array.of(3999) }]);
    clearInterval(timer);
    // One forward pass: in this process not a single tick could have come in between.
    expect(replayer.stats().forwardPasses).toBe(1);
    expect(ticks).toBeGreaterThan(0);
    await replayer.close();
  });

  it('stops at once when the signal is aborted, with its reason, and can be used again', async () => {
    const replayer = await open({ chunk: 1 });
    const controller = new AbortController();
    const reason = new Error('the user pressed Ctrl-C');
    setTimeout(() => controller.abort(reason), 30);
    const run = async (): Promise<void> => {
      for await (const _ of replayer.replay([every(ids(16000, 1))], controller.signal));
    };
    await expect(run()).rejects.toBe(reason);
    expect(await collect(replayer, [every(first)])).toHaveLength(1);
    await replayer.close();
  });

  it('ends the child when the reader stops early, and can be used again', async () => {
    const replayer = await open();
    for await (const block of replayer.replay(sequences)) if (block.sequence === 1) break;
    expect(await collect(replayer, [every(first)])).toHaveLength(1);
    await replayer.close();
  });

  it('ends a child that passes the memory cap and names the sequence and both sizes', async () => {
    const replayer = await open({ chunk: 1 });
    await replayer.close();
    const capped = openReplayer({ folder, taps: TAPS, threads: 1, chunk: 1, memoryCapBytes: 8 * 2 ** 20 }).then((r) =>
      collect(r, [every(ids(16000, 1))]),
    );
    await expect(capped).rejects.toThrow(/more than the cap of 8 MiB/);
  });

  it('counts what it saw at each tap: rows, magnitudes, no non-finite values', async () => {
    const replayer = await open();
    const [block] = await collect(replayer, [every(first)]);
    const health = replayer.health();
    expect(health.map((h) => h.tap)).toEqual(TAPS);
    const size = first.length * TINY.width;
    for (const [k, h] of health.entries()) {
      const values = block.subarray(k * size, (k + 1) * size);
      expect(h).toMatchObject({ rows: first.length, nonFinite: 0, beyondFloat16: 0, zeroRows: 0 });
      expect(h.maxAbs).toBe(values.reduce((m, v) => Math.max(m, Math.abs(v)), 0));
    }
    await replayer.close();
  });

  it('refuses taps the model does not have, ids outside its vocabulary and rows outside the sequence', async () => {
    await expect(open({ taps: ['resid_post.3'] })).rejects.toThrow(/expected a tap of this model .* got resid_post\.3/);
    const replayer = await open();
    const wrong = async (s: ReplaySequence): Promise<unknown> => collect(replayer, [s]);
    await expect(wrong({ ids: Int32Array.of(1, 999), rows: Int32Array.of(0) })).rejects.toThrow(
      /token 1: expected an id below .* 272, got 999/,
    );
    await expect(wrong({ ids: Int32Array.of(1, 2), rows: Int32Array.of(2) })).rejects.toThrow(
      /rows in \[0, 2\), got 2/,
    );
    await replayer.close();
  });
});

describe('inspectModel', () => {
  it('lists the taps of a folder, its state and the hash of every file', async () => {
    const { info, taps, state, refused } = await inspectModel(folder);
    expect(taps.map((t) => t.tap)).toEqual([
      'embed',
      ...[0, 1, 2].flatMap((k) => [`resid_mid.${k}`, `resid_post.${k}`]),
      'final_norm',
    ]);
    expect(info).toMatchObject({
      blocks: 3,
      width: 32,
      vocabularySize: 272,
      contextLimit: TINY.context,
      pastState: 'kv',
    });
    expect(info.hashes['model.onnx']).toMatch(/^[0-9a-f]{64}$/);
    expect(state).toHaveLength(6);
    expect(refused).toBeNull();
  });
});
