import { mkdir, open, readFile, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import process from 'node:process';
import { MismatchError, TryAgainError } from '../errors.ts';
import { removeOrphans, writeJsonAtomic } from '../lib/atomic-write.ts';
import { canonicalJson, hashValue } from '../lib/content-hash.ts';

/**
 * What determines every number of a run, in two parts: what determines the activations (they are expensive and may be
 * analysed again), and what determines the rest. Equal keys give equal files.
 */
export interface RunKey {
  /** Data, model, tokenizer, template, replay and capture settings, threads, versions. */
  readonly extraction: unknown;
  /** Seeds, folds, landmarks, estimators, figures. */
  readonly analysis: unknown;
}

export type RunStatus = 'running' | 'interrupted' | 'failed' | 'done';

export interface RunRecord {
  readonly schemaVersion: 1;
  readonly name: string;
  readonly key: RunKey;
  /** sha256 of the extraction part: plan and activation shards carry it. */
  readonly keyHash: string;
  readonly status: RunStatus;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly machine: Readonly<Record<string, string | number>>;
  /** Findings that are worth keeping but do not determine anything: counts, warnings, seconds by stage. */
  readonly notes: Readonly<Record<string, unknown>>;
}

export interface RunFolder {
  readonly path: string;
  readonly keyHash: string;
  /** True where the folder was there before. */
  readonly resumed: boolean;
  /** Analysis settings that differ from the last time; results made with those are stale. */
  readonly analysisChanges: readonly string[];
  readonly orphansRemoved: number;
  record(): RunRecord;
  note(key: string, value: unknown): Promise<void>;
  setStatus(status: RunStatus): Promise<void>;
  close(): Promise<void>;
}

/** Field-by-field difference of two plain values: `config.train.C: 1 → 2`. */
export function differences(before: unknown, after: unknown, path = ''): string[] {
  if (canonicalJson(before ?? null) === canonicalJson(after ?? null)) return [];
  const isTree = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object';
  if (isTree(before) && isTree(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return keys.flatMap((key) => differences(before[key], after[key], path === '' ? key : `${path}.${key}`));
  }
  const show = (value: unknown): string => (value === undefined ? 'nothing' : canonicalJson(value).slice(0, 60));
  return [`${path}: ${show(before)} → ${show(after)}`];
}

/** One process works on a run at a time. The lock only saves work: shards are first-writer-wins in any case. */
async function takeLock(folder: string): Promise<() => Promise<void>> {
  const path = join(folder, '.lock');
  for (;;) {
    try {
      const file = await open(path, 'wx');
      await file.writeFile(JSON.stringify({ host: hostname(), pid: process.pid }));
      await file.close();
      return async () => {
        await unlink(path).catch(() => undefined);
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const owner = await readFile(path, 'utf8')
      .then((text) => JSON.parse(text) as { host: string; pid: number })
      .catch(() => null);
    if (owner !== null && owner.host === hostname() && !isAlive(owner.pid)) {
      // Its owner was killed: whoever removes the file first takes the run over.
      await unlink(path).catch(() => undefined);
      continue;
    }
    if (owner === null) {
      // Killed between creating and writing it, or just being written: look again after a moment.
      await new Promise((resolve) => setTimeout(resolve, 200));
      const again = await readFile(path, 'utf8').catch(() => null);
      if (again === '') await unlink(path).catch(() => undefined);
      if (again === '' || again === null) continue;
      continue;
    }
    throw new TryAgainError(
      `${folder}: expected a run that nobody works on, got one in use by process ${owner.pid} on ${owner.host}. Wait for it, or remove ${basename(path)} if that process is gone`,
    );
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Opens `root/<name>-<hash8>`, where the hash is that of the extraction key: a new run, or the one whose activations these
 * are. Changed analysis settings reuse the activations and are listed. `resume` names a folder whose whole key has to be equal.
 * @throws MismatchError (78) with what differs, field by field; TryAgainError (75) when another process works on it
 */
export async function openRun(options: {
  readonly root: string;
  readonly name: string;
  readonly key: RunKey;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly now: () => Date;
  readonly resume: string | null;
}): Promise<RunFolder> {
  const keyHash = hashValue(options.key.extraction);
  const folder = options.resume ?? join(options.root, `${options.name}-${keyHash.slice(0, 8)}`);
  const path = join(folder, 'run.json');
  await mkdir(folder, { recursive: true });
  const release = await takeLock(folder);
  let record: RunRecord;
  let resumed = false;
  let analysisChanges: string[] = [];
  try {
    const orphansRemoved = await removeOrphans(folder, options.now());
    const before = await readFile(path, 'utf8').catch(() => null);
    if (before === null) {
      record = {
        schemaVersion: 1,
        name: options.name,
        key: options.key,
        keyHash,
        status: 'running',
        startedAt: options.now().toISOString(),
        updatedAt: options.now().toISOString(),
        machine: options.machine,
        notes: {},
      };
    } else {
      record = JSON.parse(before) as RunRecord;
      const changed = differences(
        options.resume === null ? record.key.extraction : record.key,
        options.resume === null ? options.key.extraction : options.key,
      );
      if (changed.length > 0) {
        throw new MismatchError(
          `${path}: expected the run of this configuration, got another: ${changed.slice(0, 8).join('; ')}${changed.length > 8 ? ` and ${changed.length - 8} more` : ''}. Choose another --out or undo the change`,
        );
      }
      analysisChanges = differences(record.key.analysis, options.key.analysis);
      resumed = true;
      record = { ...record, key: options.key, status: 'running', updatedAt: options.now().toISOString() };
    }
    await writeJsonAtomic(path, record);
    const save = async (change: Partial<RunRecord>): Promise<void> => {
      record = { ...record, ...change, updatedAt: options.now().toISOString() };
      await writeJsonAtomic(path, record);
    };
    return {
      path: folder,
      keyHash,
      resumed,
      analysisChanges,
      orphansRemoved,
      record: () => record,
      note: (key, value) => save({ notes: { ...record.notes, [key]: value } }),
      setStatus: (status) => save({ status }),
      close: release,
    };
  } catch (error) {
    await release();
    throw error;
  }
}
