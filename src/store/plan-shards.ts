import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptFileError, MismatchError } from '../errors.ts';
import { removeOrphans, writeFileAtomic, writeJsonAtomic } from '../lib/atomic-write.ts';
import { sha256File, sha256Parts } from '../lib/content-hash.ts';
import { parseOrNothing, readTextIfThere } from '../lib/read-text.ts';
import { encodeSafetensors, readSafetensorsHeader, readTensorBytes } from '../lib/safetensors.ts';
import type { Exclusion, SequencePlan, Verification } from '../types.ts';

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
  readonly verification: Verification;
  readonly taps: readonly string[];
  readonly exclusions: readonly Exclusion[];
  readonly shards: readonly PlanShardInfo[];
}

const shardPath = (folder: string, index: number): string =>
  join(folder, 'plan', `shard-${String(index).padStart(5, '0')}.safetensors`);

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
  const parts = encodeSafetensors(
    [
      { name: 'ids', dtype: 'I32', shape: [total], data: ids },
      { name: 'lengths', dtype: 'I32', shape: [sequences.length], data: lengths },
    ],
    { sequences: JSON.stringify(sequences.map(({ ids: _ids, ...rest }) => rest)) },
  );
  await writeFileAtomic(shardPath(folder, index), parts);
  return sha256Parts(parts);
}

/** @throws CorruptFileError (65) when the bytes are not those that were written */
export async function readPlanShard(folder: string, info: PlanShardInfo): Promise<SequencePlan[]> {
  const path = shardPath(folder, info.index);
  const got = await sha256File(path).then(
    (file) => file.sha256,
    (error: unknown) => (error as NodeJS.ErrnoException).code ?? 'an error',
  );
  if (got !== info.sha256)
    throw new CorruptFileError(
      `${path}: expected sha256 ${info.sha256.slice(0, 12)}…, got ${got.slice(0, 12)}. Remove plan.json and run the same command again`,
    );
  const header = await readSafetensorsHeader(path);
  const ids = new Int32Array((await readTensorBytes(path, header, 'ids')).buffer);
  const lengths = new Int32Array((await readTensorBytes(path, header, 'lengths')).buffer);
  const rest = JSON.parse(header.metadata.get('sequences') ?? '[]') as readonly Omit<SequencePlan, 'ids'>[];
  let at = 0;
  return rest.map((sequence, index) => {
    const own = ids.slice(at, at + lengths[index]);
    at += lengths[index];
    return { ...sequence, ids: own };
  });
}

/** Written after its shards: a plan that is there is whole. @throws DiskError (74) */
export async function writePlan(folder: string, plan: PlanFile): Promise<void> {
  await writeJsonAtomic(join(folder, 'plan.json'), plan);
}

/**
 * null = there is no plan of this key whose shards are all there. A plan is cheap and comes out the same every time, so
 * one that is damaged is made again.
 */
export async function readPlan(folder: string, keyHash: string, now: Date): Promise<PlanFile | null> {
  await removeOrphans(join(folder, 'plan'), now);
  const plan = parseOrNothing(await readTextIfThere(join(folder, 'plan.json'))) as PlanFile | null | undefined;
  if (plan?.schemaVersion !== 1 || plan.keyHash !== keyHash) return null;
  if (!Array.isArray(plan.shards)) return null;
  return plan.shards.every((shard) => existsSync(shardPath(folder, shard.index))) ? plan : null;
}

/**
 * Copies a plan for another engine (docs/shard-format.md): `to/plan.json` and `to/plan/shard-00000.safetensors` …
 * @throws MismatchError (78) when another plan is there, CorruptFileError (65) when a shard is damaged, DiskError (74)
 */
export async function exportPlan(folder: string, plan: PlanFile, to: string): Promise<void> {
  const before = await readTextIfThere(join(to, 'plan.json'));
  const text = JSON.stringify(plan, null, 1);
  if (before !== null && before.trim() !== text)
    throw new MismatchError(
      `${to}: expected a folder without another plan, got one. Export to a new folder, so that its activations cannot be taken for these`,
    );
  for (const shard of plan.shards) {
    await readPlanShard(folder, shard);
    await writeFileAtomic(shardPath(to, shard.index), await readFile(shardPath(folder, shard.index)));
  }
  await writeFileAtomic(join(to, 'plan.json'), `${text}\n`);
}
