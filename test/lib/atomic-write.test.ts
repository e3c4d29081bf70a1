import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import * as fsPromises from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  checkFreeSpace,
  freeBytes,
  publishFile,
  removeOrphans,
  temporaryPath,
  writeFileAtomic,
  writeJsonAtomic,
} from '../../src/lib/atomic-write.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

// The file system's faults are put in by the tests below; everything else goes through.
vi.mock('node:fs/promises', async (original) => ({ ...(await original<typeof fsPromises>()) }));

let folder: string;
beforeEach(() => {
  folder = temporaryFolder('atomic');
});
afterEach(() => {
  vi.restoreAllMocks();
});

const failing = (code: string) => (): Promise<never> => Promise.reject(Object.assign(new Error(code), { code }));

/** A file whose disk takes `room` bytes, at most `most` at once, and then is full. As Node does it: without a word. */
function fullAfter(room: number, most: number): void {
  const { open } = fsPromises;
  vi.spyOn(fsPromises, 'open').mockImplementation(async (...given) => {
    const file = await open(...given);
    if (given[1] !== 'wx') return file;
    let left = room;
    const write = file.write.bind(file) as (
      bytes: Uint8Array,
      at: number,
      length: number,
    ) => Promise<{ bytesWritten: number }>;
    const limited = async (bytes: Uint8Array, at: number, length: number): Promise<{ bytesWritten: number }> => {
      if (left === 0) return failing('ENOSPC')();
      const result = await write(bytes, at, Math.min(length, left, most));
      left -= result.bytesWritten;
      return result;
    };
    return Object.assign(file, { write: limited });
  });
}

describe('a file', () => {
  it('is written whole from text, bytes or parts, in a folder that may not be there yet', async () => {
    const path = join(folder, 'a', 'b', 'file');
    await writeFileAtomic(path, 'one');
    expect(readFileSync(path, 'utf8')).toBe('one');
    await writeFileAtomic(path, [Buffer.from('tw'), Buffer.from('o')]);
    expect(readFileSync(path, 'utf8')).toBe('two');
    await writeFileAtomic(path, new Uint8Array(0));
    expect(readFileSync(path, 'utf8')).toBe('');
    expect(readdirSync(join(folder, 'a', 'b'))).toEqual(['file']);
  });

  it('belongs to the first writer when it is exclusive, and is replaced when not', async () => {
    const path = join(folder, 'file');
    expect(await writeFileAtomic(path, 'first', { exclusive: true })).toBe(true);
    expect(await writeFileAtomic(path, 'second', { exclusive: true })).toBe(false);
    expect(readFileSync(path, 'utf8')).toBe('first');
    expect(await writeFileAtomic(path, 'third')).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe('third');
    expect(readdirSync(folder)).toEqual(['file']);
  });

  it('is synced before it is in place, and its folder after', async () => {
    const path = join(folder, 'file');
    const order: string[] = [];
    const { open, link } = fsPromises;
    vi.spyOn(fsPromises, 'open').mockImplementation(async (...given) => {
      const file = await open(...given);
      const sync = file.sync.bind(file);
      return Object.assign(file, {
        sync: async () => {
          order.push(`sync ${String(given[0]) === folder ? 'folder' : 'file'}`);
          await sync();
        },
      });
    });
    vi.spyOn(fsPromises, 'link').mockImplementation(async (...given) => {
      order.push('link');
      await link(...given);
    });
    await writeFileAtomic(path, 'x', { exclusive: true });
    expect(order).toEqual(['sync file', 'link', 'sync folder']);
  });

  it('survives writes that store less than they were given', async () => {
    const bytes = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251));
    fullAfter(1000, 7);
    await writeFileAtomic(join(folder, 'file'), [bytes.subarray(0, 400), bytes.subarray(400)]);
    expect(readFileSync(join(folder, 'file')).equals(bytes)).toBe(true);
  });

  it('leaves nothing behind on a full disk, and says how much was needed and what is free', async () => {
    writeFileSync(join(folder, 'file'), 'before');
    fullAfter(600, 512);
    await expect(writeFileAtomic(join(folder, 'file'), Buffer.alloc(1000))).rejects.toMatchObject({
      exitCode: 74,
      message: expect.stringMatching(
        /file: expected to write 1,000 bytes, got ENOSPC, [\d,]+ free\. Make room/,
      ) as string,
    });
    expect(readdirSync(folder)).toEqual(['file']);
    expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('before');
  });

  for (const code of ['EDQUOT', 'EROFS', 'EIO']) {
    it(`leaves nothing behind when putting it in place fails with ${code}`, async () => {
      vi.spyOn(fsPromises, 'rename').mockImplementation(failing(code));
      await expect(writeFileAtomic(join(folder, 'file'), 'x')).rejects.toMatchObject({
        exitCode: 74,
        message: expect.stringContaining(code) as string,
      });
      expect(readdirSync(folder)).toEqual([]);
    });
  }

  it('reports a file where a folder should be as a fault of the disk', async () => {
    writeFileSync(join(folder, 'taken'), '');
    await expect(writeFileAtomic(join(folder, 'taken', 'file'), 'x')).rejects.toMatchObject({ exitCode: 74 });
  });

  it('still has one winner on a file system without links', async () => {
    vi.spyOn(fsPromises, 'link').mockImplementation(failing('EPERM'));
    expect(await writeFileAtomic(join(folder, 'file'), 'first', { exclusive: true })).toBe(true);
    expect(await writeFileAtomic(join(folder, 'file'), 'second', { exclusive: true })).toBe(false);
    expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('first');
    expect(readdirSync(folder)).toEqual(['file']);
  });

  it('can be made by another program and then published', async () => {
    const path = join(folder, 'table');
    const temp = temporaryPath(path);
    writeFileSync(temp, 'rows');
    expect(await publishFile(temp, path)).toBe(true);
    expect(readdirSync(folder)).toEqual(['table']);
  });

  it('refuses what JSON cannot hold', async () => {
    await expect(writeJsonAtomic(join(folder, 'file'), { big: 1n })).rejects.toThrow(TypeError);
    expect(existsSync(join(folder, 'file'))).toBe(false);
  });
});

/** Above the largest pid of Linux. */
const dead = 2 ** 22 + 1;
const put = (name: string, ageHours = 0): string => {
  const path = join(folder, name);
  writeFileSync(path, '');
  const at = Date.now() / 1000 - ageHours * 3600;
  utimesSync(path, at, at);
  return path;
};

describe('temp files', () => {
  it('have names that no two writers share', () => {
    const names = new Set(Array.from({ length: 100 }, () => temporaryPath(join(folder, 'x'))));
    expect(names.size).toBe(100);
  });

  it('are removed when their writer is dead', async () => {
    put(`.shard.${hostname()}.${dead}.0123abcd.tmp`);
    expect(await removeOrphans(folder, new Date())).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('are left to a living writer, and to a writer on another machine for a day', async () => {
    put(basename(temporaryPath(join(folder, 'mine'))));
    put(`.shard.another-host.example.${dead}.0123abcd.tmp`, 23);
    expect(await removeOrphans(folder, new Date())).toBe(0);
    put(`.shard.another-host.example.${dead}.89abcdef.tmp`, 25);
    expect(await removeOrphans(folder, new Date())).toBe(1);
    expect(readdirSync(folder)).toHaveLength(2);
  });

  it('are never taken for other files', async () => {
    for (const name of ['notes.tmp', '.hidden', `x.${hostname()}.${dead}.0123abcd.tmp`, 'shard-00000.safetensors'])
      put(name, 99);
    expect(await removeOrphans(folder, new Date())).toBe(0);
    expect(readdirSync(folder)).toHaveLength(4);
  });

  it('may be in a folder that is not there', async () => {
    expect(await removeOrphans(join(folder, 'nothing'), new Date())).toBe(0);
  });
});

describe('room on the disk', () => {
  it('is that of the nearest folder that exists', async () => {
    mkdirSync(join(folder, 'a'));
    const free = await freeBytes(join(folder, 'a', 'b', 'c'));
    expect(free).toBeGreaterThan(0);
  });

  it('is compared with a tenth to spare, before anything is written', async () => {
    vi.spyOn(fsPromises, 'statfs').mockResolvedValue({ bavail: 1100, bsize: 1 } as unknown as Awaited<
      ReturnType<typeof fsPromises.statfs>
    >);
    expect(await checkFreeSpace(folder, 1000)).toEqual({ free: 1100 });
    await expect(checkFreeSpace(folder, 1001)).rejects.toMatchObject({
      exitCode: 74,
      message: expect.stringMatching(/expected 1,102 free bytes, got 1,100\. Capture fewer layers/) as string,
    });
    expect(readdirSync(folder)).toEqual([]);
  });
});
