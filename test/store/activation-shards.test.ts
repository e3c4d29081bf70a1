import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { sha256File } from '../../src/lib/content-hash.ts';
import { readSafetensorsHeader } from '../../src/lib/safetensors.ts';
import {
  type DoneFile,
  findDone,
  type ShardContent,
  shardPath,
  writeShard,
} from '../../src/store/activation-shards.ts';
import { openFeatures } from '../../src/store/features.ts';
import { built, runScript } from '../fakes/child-script.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

const KEY = 'a'.repeat(64);
const now = new Date('2026-01-01');
let folder: string;
beforeEach(() => {
  folder = temporaryFolder('shards');
});

function content(shard: number, rows = 3, width = 4): ShardContent {
  return {
    keys: Array.from({ length: rows }, (_, row) => ({ episode: `e${shard}`, turn: row, position: 'prompt_end' })),
    taps: ['embed', 'resid_post.0'],
    width,
    data: [0, 1].map((tap) => Float32Array.from({ length: rows * width }, (_, i) => shard + tap / 2 + i / 64)),
  };
}
const base = (shard: number, seconds = 1) =>
  ({ keyHash: KEY, shard, computedTokens: 10, seconds, skipped: [], dtype: 'float32' }) as const;
const donePath = (shard: number): string => shardPath(folder, shard).replace('.safetensors', '.done.json');
const flipBit = (path: string, byte: number): void => {
  const bytes = readFileSync(path);
  bytes[byte] ^= 4;
  writeFileSync(path, bytes);
};
const found = async (shards: number, deep = false): Promise<number[]> => [
  ...(await findDone(folder, KEY, shards, deep, now)).keys(),
];

describe('a shard', () => {
  it('is found again with what its done file says', async () => {
    const record = await writeShard(folder, base(0), content(0));
    expect(record).toMatchObject({ rows: 3, width: 4, taps: ['embed', 'resid_post.0'], computedTokens: 10 });
    expect(record.maxAbs).toEqual([11 / 64, 0.5 + 11 / 64]);
    expect(await sha256File(shardPath(folder, 0))).toEqual({ sha256: record.sha256, bytes: record.bytes });
    expect(await findDone(folder, KEY, 3, true, now)).toEqual(new Map([[0, record]]));
  });

  it('keeps the order of its rows and reads back in float32, float16 and bfloat16', async () => {
    for (const [shard, dtype] of (['float32', 'float16', 'bfloat16'] as const).entries())
      await writeShard(folder, { ...base(shard), dtype }, content(shard));
    const features = await openFeatures(folder, [0, 1, 2]);
    for (const shard of [0, 1, 2]) {
      const { keys, data } = content(shard);
      const read = await features.read('resid_post.0', keys);
      const tolerance = shard === 0 ? 0 : 2 ** -7;
      for (const [i, value] of read.data.entries())
        expect(Math.abs(value - data[1][i]) / value).toBeLessThanOrEqual(tolerance);
    }
  });

  it('may have no rows', async () => {
    await writeShard(folder, base(0), content(0, 0));
    expect(await found(1, true)).toEqual([0]);
  });

  it('belongs to the first writer; the same bytes again give its done file', async () => {
    const first = await writeShard(folder, base(0, 1), content(0));
    expect(await writeShard(folder, base(0, 2), content(0))).toEqual(first);
  });

  it('refuses other numbers from a later writer, and keeps the first', async () => {
    await writeShard(folder, base(0), content(0));
    const other = content(0);
    other.data[0][5] += 1e-6;
    await expect(writeShard(folder, base(0), other)).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringMatching(
        /shard-00000\.safetensors: expected sha256 .* does not give the same numbers/,
      ) as string,
    });
    expect(await found(1, true)).toEqual([0]);
  });

  it('is never made of values that no probe may read: the message names where', async () => {
    const cases: [number, 'float32' | 'float16' | 'bfloat16', RegExp][] = [
      [Number.NaN, 'float32', /resid_post\.0: expected finite .*NaN at prompt_end of turn 1, episode e0/],
      [-Infinity, 'bfloat16', /expected finite .*-Infinity/],
      [65_520, 'float16', /expected magnitudes up to 65504 .*65520 at prompt_end of turn 1.*bfloat16/],
    ];
    for (const [value, dtype, message] of cases) {
      const bad = content(0);
      bad.data[1][6] = value;
      await expect(writeShard(folder, { ...base(0), dtype }, bad)).rejects.toMatchObject({
        exitCode: 65,
        message: expect.stringMatching(message) as string,
      });
    }
    expect(existsSync(join(folder, 'activations'))).toBe(false);
  });

  it('refuses data that do not fit its rows, as a mistake of the caller', async () => {
    const bad = { ...content(0), width: 5 };
    await expect(writeShard(folder, base(0), bad)).rejects.toThrow(RangeError);
  });
});

/** Writes a shard again: then all three are whole. */
async function remake(shard: number): Promise<void> {
  await writeShard(folder, base(shard), content(shard));
  expect(await found(3, true)).toEqual([0, 1, 2]);
}

describe('what is not whole is made again', () => {
  beforeEach(async () => {
    for (const shard of [0, 1, 2]) await writeShard(folder, base(shard), content(shard));
  });

  it('a truncated shard', async () => {
    truncateSync(shardPath(folder, 1), 100);
    expect(await found(3)).toEqual([0, 2]);
    await remake(1);
  });

  it('a missing shard', async () => {
    rmSync(shardPath(folder, 1));
    expect(await found(3)).toEqual([0, 2]);
    await remake(1);
  });

  it('a missing done file: the data are kept if a new writer comes to the same', async () => {
    rmSync(donePath(1));
    expect(await found(3)).toEqual([0, 2]);
    expect(existsSync(shardPath(folder, 1))).toBe(true);
    await remake(1);
  });

  it('a missing done file beside damaged data', async () => {
    rmSync(donePath(1));
    flipBit(shardPath(folder, 1), 300);
    expect(await found(3)).toEqual([0, 2]);
    await remake(1);
  });

  it('a done file that is no JSON, or of another shape', async () => {
    for (const text of ['', '{"rows":', 'null', '[]', '{}']) {
      writeFileSync(donePath(1), text);
      expect(await found(3)).toEqual([0, 2]);
      await remake(1);
    }
  });

  it('a shard with one flipped bit, wherever it is, when every byte is checked', async () => {
    const size = readFileSync(shardPath(folder, 2)).length;
    for (const byte of [0, 9, Math.floor(size / 2), size - 1]) {
      flipBit(shardPath(folder, 2), byte);
      expect([byte, await found(3, true)]).toEqual([byte, [0, 1]]);
      await remake(2);
    }
  });

  it('but a shard of another run is refused and left alone', async () => {
    renameSync(donePath(0), join(folder, 'kept'));
    const done = JSON.parse(readFileSync(join(folder, 'kept'), 'utf8')) as DoneFile;
    for (const other of [
      { ...done, keyHash: 'b'.repeat(64) },
      { ...done, shard: 7 },
    ]) {
      writeFileSync(donePath(0), JSON.stringify(other));
      await expect(findDone(folder, KEY, 3, false, now)).rejects.toMatchObject({ exitCode: 78 });
      expect(existsSync(shardPath(folder, 0))).toBe(true);
    }
  });
});

/** Code of a process that writes shards of 200 kB, `first` to `last`, saying each one's `seconds` as published. */
const writer = (first: number, last: number, id: number): string => `
  const { writeShard } = await import(${JSON.stringify(built('store/activation-shards.js'))});
  console.log('writing');
  for (let shard = ${first}; shard < ${last}; shard += 1) {
    const keys = Array.from({ length: 100 }, (_, turn) => ({ episode: 'e' + shard, turn, position: 'p' }));
    const data = [new Float32Array(100 * 512).fill(shard)];
    const done = await writeShard(${JSON.stringify(folder)},
      { keyHash: '${KEY}', shard, computedTokens: 1, seconds: ${id}, skipped: [], dtype: 'float32' },
      { keys, taps: ['embed'], width: 512, data });
    console.log(shard + ' ' + done.seconds);
  }
`;

describe('processes', () => {
  it('killed at any moment leave every name absent or whole', async () => {
    let next = 0;
    let interrupted = 0;
    mkdirSync(join(folder, 'activations'));
    for (let kill = 0; kill < 20; kill += 1) {
      const child = runScript(writer(next, next + 1000, 1));
      await child.started;
      // Spread over the time of about five shards, in steps no shard's own time is a multiple of.
      await new Promise((resolve) => setTimeout(resolve, (kill * 37) % 97));
      child.process.kill('SIGKILL');
      await child.ended;
      for (const name of readdirSync(join(folder, 'activations'))) {
        const path = join(folder, 'activations', name);
        if (name.endsWith('.done.json')) {
          const done = JSON.parse(readFileSync(path, 'utf8')) as DoneFile;
          expect(await sha256File(shardPath(folder, done.shard))).toEqual({ sha256: done.sha256, bytes: done.bytes });
        } else if (!name.endsWith('.tmp')) expect((await readSafetensorsHeader(path)).tensors.size).toBe(1);
      }
      const names = readdirSync(join(folder, 'activations'));
      if (names.some((name) => name.endsWith('.tmp')) || names.length % 2 === 1) interrupted += 1;
      // What the dead process left is cleaned up, and nothing else.
      const before = names.filter((name) => name.endsWith('.done.json'));
      const whole = await findDone(folder, KEY, before.length + 1, true, now);
      expect(whole.size).toBe(before.length);
      expect(readdirSync(join(folder, 'activations')).filter((name) => name.endsWith('.tmp'))).toEqual([]);
      next = whole.size;
    }
    expect(next).toBeGreaterThan(0);
    // Else the kills came between the shards and this test has shown nothing.
    expect(interrupted).toBeGreaterThan(0);
  });

  it('that write the same 200 shards at once agree on one winner each', async () => {
    const one = runScript(writer(0, 200, 1));
    const two = runScript(writer(0, 200, 2));
    const won = (await Promise.all([one.ended, two.ended])).map((out) => out.trim().split('\n').slice(1));
    expect(won[0]).toHaveLength(200);
    expect(won[0]).toEqual(won[1]);
    const whole = await findDone(folder, KEY, 200, true, now);
    expect(won[0]).toEqual(Array.from({ length: 200 }, (_, shard) => `${shard} ${whole.get(shard)?.seconds}`));
    expect(readdirSync(join(folder, 'activations'))).toHaveLength(400);
  });
});
