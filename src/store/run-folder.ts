import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptFileError, DiskError, MismatchError, UserError } from '../errors.ts';
import { removeOrphans, writeJsonAtomic } from '../lib/atomic-write.ts';
import { canonicalJson, hashValue } from '../lib/content-hash.ts';
import { parseOrNothing, readTextIfThere } from '../lib/read-text.ts';
import { takeLease } from './lease.ts';

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

/**
 * Field-by-field difference of two plain values: `config.train.C: 1 → 2`. A field that is null and one that is not there
 * differ, since their hashes do.
 */
export function differences(before: unknown, after: unknown, path = ''): string[] {
  if (before === after) return [];
  if (isTree(before) && isTree(after) && Array.isArray(before) === Array.isArray(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return keys.flatMap((key) => differences(before[key], after[key], path === '' ? key : `${path}.${key}`));
  }
  return [`${path}: ${show(before)} → ${show(after)}`];
}

const show = (value: unknown): string => (value === undefined ? 'nothing' : canonicalJson(value).slice(0, 60));

const isTree = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object';

/** Differences shown in one message. */
const MOST_SHOWN = 8;

export interface OpenRunOptions {
  /** Folder of runs. */
  readonly root: string;
  readonly name: string;
  /** Plain JSON values. */
  readonly key: RunKey;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly now: () => Date;
  /** The folder of a run to go on with; null = the one that the key determines. */
  readonly resume: string | null;
}

/**
 * Opens `root/<name>-<hash8>`, where the hash is that of the extraction key: a new run, or the one whose activations these
 * are. Changed analysis settings reuse the activations and are listed. `resume` names a folder whose whole key has to be equal.
 * @throws MismatchError (78) with what differs, field by field; TryAgainError (75) when another process works on it;
 * UserError (2) when there is no run to resume; CorruptFileError (65) for a run.json that is none; DiskError (74)
 */
export async function openRun(options: OpenRunOptions): Promise<RunFolder> {
  // As it will be read back: members that are undefined are not there.
  const key = JSON.parse(canonicalJson(options.key)) as RunKey;
  const keyHash = hashValue(key.extraction);
  const folder = options.resume ?? join(options.root, `${options.name}-${keyHash.slice(0, 8)}`);
  const path = join(folder, 'run.json');
  if (options.resume !== null && !existsSync(path)) {
    throw new UserError(
      `${folder}: expected the folder of a run, got one without run.json. Name a folder under results/`,
    );
  }
  await makeFolder(folder);
  const lease = await takeLease(folder);
  try {
    const orphansRemoved = await removeOrphans(folder, options.now());
    const before = await readRecord(path);
    if (before !== null) refuseOther(path, before, key, options.resume !== null);
    const now = options.now().toISOString();
    let record: RunRecord =
      before === null
        ? {
            schemaVersion: 1,
            name: options.name,
            key,
            keyHash,
            status: 'running',
            startedAt: now,
            updatedAt: now,
            machine: options.machine,
            notes: {},
          }
        : { ...before, key, status: 'running', updatedAt: now };
    await writeJsonAtomic(path, record);
    const save = async (change: Partial<RunRecord>): Promise<void> => {
      record = { ...record, ...change, updatedAt: options.now().toISOString() };
      await writeJsonAtomic(path, record);
    };
    return {
      path: folder,
      keyHash,
      resumed: before !== null,
      analysisChanges: before === null ? [] : differences(before.key.analysis, key.analysis),
      orphansRemoved,
      record: () => record,
      note: (name, value) => save({ notes: { ...record.notes, [name]: value } }),
      setStatus: (status) => save({ status }),
      close: () => lease.release(),
    };
  } catch (error) {
    await lease.release();
    throw error;
  }
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    throw new DiskError(
      `${folder}: expected a folder that can be made, got ${(error as NodeJS.ErrnoException).code ?? 'an error'}. Choose another --out`,
      { cause: error },
    );
  }
}

/** null = no run yet. Anything else that cannot be read is not taken for "no run", which would start it anew. */
async function readRecord(path: string): Promise<RunRecord | null> {
  const text = await readTextIfThere(path);
  if (text === null) return null;
  const record = parseOrNothing(text);
  if (!isTree(record) || record['schemaVersion'] !== 1 || !isTree(record['key']) || !isTree(record['notes'])) {
    throw new CorruptFileError(
      `${path}: expected the record of a run (schemaVersion 1), got ${JSON.stringify(text.slice(0, 40))}. Restore the file, or move the folder away to run anew`,
    );
  }
  return record as unknown as RunRecord;
}

function refuseOther(path: string, before: RunRecord, key: RunKey, whole: boolean): void {
  const changed = whole ? differences(before.key, key) : differences(before.key.extraction, key.extraction);
  if (changed.length === 0) return;
  const more = changed.length > MOST_SHOWN ? ` and ${changed.length - MOST_SHOWN} more` : '';
  throw new MismatchError(
    `${path}: expected the run of this configuration, got another: ${changed.slice(0, MOST_SHOWN).join('; ')}${more}. Undo the change, or run without --resume to start a new run`,
  );
}
