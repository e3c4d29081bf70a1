import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CorruptFileError } from '../errors.ts';
import type { Lock } from '../forecast/lock.ts';
import { writeFileAtomic } from '../lib/atomic-write.ts';
import { parseOrNothing, readTextIfThere } from '../lib/read-text.ts';

const lockPath = (folder: string): string => join(folder, 'lock.json');

/**
 * Writes `lock.json` unless there is one: a preregistration is never replaced.
 * @returns false where there was one @throws DiskError (74)
 */
export function writeLock(folder: string, lock: Lock): Promise<boolean> {
  return writeFileAtomic(lockPath(folder), [Buffer.from(`${JSON.stringify(lock, null, 2)}\n`)], { exclusive: true });
}

/** null = the folder has none. @throws CorruptFileError (65) when it is none of this version */
export async function readLock(folder: string): Promise<Lock | null> {
  const path = lockPath(folder);
  const text = await readTextIfThere(path);
  if (text === null) return null;
  const lock = parseOrNothing(text) as Partial<Lock> | null | undefined;
  if (lock?.schemaVersion !== 1 || typeof lock.hash !== 'string' || !Array.isArray(lock.hypotheses)) {
    throw new CorruptFileError(
      `${path}: expected a preregistration of schemaVersion 1, got ${JSON.stringify(text.slice(0, 40))}. Restore the file: without it nothing was locked`,
    );
  }
  return lock as Lock;
}

/**
 * The lock that a run answers to: its own, else the latest of the runs of the same name beside it, since a change of data,
 * model or capture moves a run to another folder and must not shake its preregistration off.
 */
export async function findLock(
  folder: string,
  name: string,
): Promise<{ readonly lock: Lock; readonly folder: string } | null> {
  const own = await readLock(folder);
  if (own !== null) return { lock: own, folder: basename(folder) };
  const root = dirname(folder);
  let found: { readonly lock: Lock; readonly folder: string } | null = null;
  for (const entry of (await readdir(root)).sort()) {
    if (!entry.startsWith(`${name}-`) || !/^[0-9a-f]{8}$/.test(entry.slice(name.length + 1))) continue;
    const lock = await readLock(join(root, entry));
    if (lock !== null && (found === null || lock.lockedAt > found.lock.lockedAt)) found = { lock, folder: entry };
  }
  return found;
}
