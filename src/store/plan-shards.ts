import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptFileError } from '../errors.ts';
import { removeOrphans, writeFileAtomic, writeJsonAtomic } from '../lib/atomic-write.ts';
import { sha256 } from '../lib/content-hash.ts';
import { encodeSafetensors, readSafetensorsHeader, readTensorBytes } from '../lib/safetensors.ts';
import type { Capture, Exclusion, SequencePlan } from '../types.ts';

/** One unit of extraction: sequences that share prefixes, replayed together. */
export interface PlanShardInfo {
  readonly index: number;
  readonly sequences: number;
  readonly rows: number;
  readonly naiveTokens: number;
  /** Beyond the root, which is computed once a run. */
  readonly distinctTokens: number;
  readonly sha256: string;
}

export interface PlanFile {
  readonly schemaVersion: 1;
  readonly keyHash: string;
  readonly episodes: number;
  readonly turns: number;
  readonly naiveTokens: number;
  readonly distinctTokens: number;
  /** Leading tokens that all sequences share. */
  readonly rootTokens: number;
  readonly truncatedTurns: number;
  readonly idsFrom: Readonly<Record<string, number>>;
  readonly positions: Readonly<Record<string, number>>;
  readonly straddling: Readonly<Record<string, number>>;
  readonly verification: { readonly checkedTurns: number; readonly agreedTurns: number };
  readonly taps: readonly string[];
  readonly exclusions: readonly Exclusion[];
  readonly shards: readonly PlanShardInfo[];
}

const shardName = (index: number): string => `shard-${String(index).padStart(5, '0')}.safetensors`;

/** Writes one shard of the plan: ids end to end, the rest as JSON in the metadata. Returns its sha256. */
export async function writePlanShard(
  folder: string,
  index: number,
  sequences: readonly SequencePlan[],
): Promise<string> {
  const total = sequences.reduce((sum, sequence) => sum + sequence.ids.length, 0);
  const ids = new Int32Array(total);
  let at = 0;
  for (const sequence of sequences) {
    ids.set(sequence.ids, at);
    at += sequence.ids.length;
  }
  const lengths = Int32Array.from(sequences, (sequence) => sequence.ids.length);
  const index_ = JSON.stringify(sequences.map(({ ids: _ids, ...rest }) => rest));
  const parts = encodeSafetensors(
    [
      { name: 'ids', dtype: 'I32', shape: [total], data: ids },
      { name: 'lengths', dtype: 'I32', shape: [sequences.length], data: lengths },
    ],
    { sequences: index_ },
  );
  await mkdir(join(folder, 'plan'), { recursive: true });
  await writeFileAtomic(join(folder, 'plan', shardName(index)), parts);
  return sha256(Buffer.concat(parts));
}

/** @throws CorruptFileError (65) when the bytes are not those that were written */
export async function readPlanShard(folder: string, info: PlanShardInfo): Promise<SequencePlan[]> {
  const path = join(folder, 'plan', shardName(info.index));
  const got = sha256(await readFile(path));
  if (got !== info.sha256)
    throw new CorruptFileError(
      `${path}: expected sha256 ${info.sha256.slice(0, 12)}…, got ${got.slice(0, 12)}…. Remove the file and plan.json and run the same command again`,
    );
  const header = await readSafetensorsHeader(path);
  const idBytes = await readTensorBytes(path, header, 'ids');
  const lengthBytes = await readTensorBytes(path, header, 'lengths');
  const ids = new Int32Array(idBytes.buffer);
  const lengths = new Int32Array(lengthBytes.buffer);
  const rest = JSON.parse(header.metadata.get('sequences') ?? '[]') as (Omit<SequencePlan, 'ids'> & {
    captures: Capture[];
  })[];
  let at = 0;
  return rest.map((sequence, index) => {
    const own = ids.slice(at, at + lengths[index]!);
    at += lengths[index]!;
    return { ...sequence, ids: own };
  });
}

export async function writePlan(folder: string, plan: PlanFile): Promise<void> {
  await writeJsonAtomic(join(folder, 'plan.json'), plan);
}

/** null = no plan yet, or one of another key (then it is made again). */
export async function readPlan(folder: string, keyHash: string, now: Date): Promise<PlanFile | null> {
  const path = join(folder, 'plan.json');
  if (existsSync(join(folder, 'plan'))) await removeOrphans(join(folder, 'plan'), now);
  if (!existsSync(path)) return null;
  const plan = JSON.parse(await readFile(path, 'utf8')) as PlanFile;
  return plan.keyHash === keyHash ? plan : null;
}
