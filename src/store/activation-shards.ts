import { stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptFileError, DataError, MismatchError } from '../errors.ts';
import { removeOrphans, writeFileAtomic } from '../lib/atomic-write.ts';
import { sha256File, sha256Parts } from '../lib/content-hash.ts';
import { toBfloat16, toFloat16 } from '../lib/float-formats.ts';
import { parseOrNothing, readTextIfThere } from '../lib/read-text.ts';
import { encodeSafetensors, type TensorToWrite } from '../lib/safetensors.ts';
import type { Exclusion, FeatureKey, Tap } from '../types.ts';

/**
 * Activations on disk: `activations/shard-00000.safetensors` with one tensor per tap [rows, width] (F32, F16 or BF16)
 * and the index as metadata `rows` = JSON [[episode, turn, position], …]; beside it `shard-00000.done.json`. A shard
 * counts only with its done file: same key, same size, same hash. The first writer wins; a later identical one is dropped.
 */
export interface DoneFile {
  readonly keyHash: string;
  readonly shard: number;
  readonly rows: number;
  readonly width: number;
  readonly taps: readonly Tap[];
  readonly dtype: Dtype;
  readonly bytes: number;
  readonly sha256: string;
  readonly computedTokens: number;
  readonly seconds: number;
  /** Largest magnitude per tap: float16 overflows beyond 65,504. */
  readonly maxAbs: readonly number[];
  /** Values per tap that float16 could not hold. */
  readonly beyondFloat16: readonly number[];
  /** The other engine they were imported from (docs/shard-format.md); absent = computed here. */
  readonly engine?: string;
  readonly skipped: readonly Exclusion[];
}

export type Dtype = 'float32' | 'float16' | 'bfloat16';

export interface ShardContent {
  readonly keys: readonly FeatureKey[];
  readonly taps: readonly Tap[];
  readonly width: number;
  /** Per tap: [rows, width]. */
  readonly data: readonly Float32Array[];
}

const base = (folder: string, shard: number): string =>
  join(folder, 'activations', `shard-${String(shard).padStart(5, '0')}`);

export const shardPath = (folder: string, shard: number): string => `${base(folder, shard)}.safetensors`;

const FLOAT16_MAX = 65_504;
const FLOAT32_MAX = 3.4028234663852886e38;

/**
 * Largest magnitude per tap, of values that may reach a probe, and how many float16 could not hold.
 * @throws DataError (65) naming tap, position, turn and episode of the first value that may not
 */
function guard(content: ShardContent, dtype: Dtype): { readonly maxAbs: number[]; readonly beyondFloat16: number[] } {
  const { keys, taps, width } = content;
  const limit = dtype === 'float16' ? FLOAT16_MAX : FLOAT32_MAX;
  const beyondFloat16 = taps.map(() => 0);
  const maxAbs = content.data.map((data, tap) => {
    if (data.length !== keys.length * width)
      throw new RangeError(`${taps[tap]}: ${data.length} values for ${keys.length} rows of ${width}`);
    let most = 0;
    for (let index = 0; index < data.length; index += 1) {
      const value = Math.abs(data[index]);
      if (value > most) most = value;
      if (value > FLOAT16_MAX) beyondFloat16[tap] += 1;
      if (value <= limit) continue;
      const { episode, turn, position } = keys[Math.floor(index / width)];
      const where = `at ${position} of turn ${turn}, episode ${episode}`;
      throw new DataError(
        Number.isFinite(value)
          ? `${taps[tap]}: expected magnitudes up to ${limit} for capture.dtype float16, got ${value} ${where}. Set capture.dtype to bfloat16 or float32`
          : `${taps[tap]}: expected finite activations, got ${data[index]} ${where}. Use a float32 or bfloat16 export of the model`,
      );
    }
    return most;
  });
  return { maxAbs, beyondFloat16 };
}

function encodeShard(content: ShardContent, dtype: Dtype): Uint8Array[] {
  const shape = [content.keys.length, content.width];
  const tensors = content.taps.map((tap, index): TensorToWrite => {
    const data = content.data[index];
    if (dtype === 'float32') return { name: tap, dtype: 'F32', shape, data };
    if (dtype === 'float16') return { name: tap, dtype: 'F16', shape, data: toFloat16(data) };
    return { name: tap, dtype: 'BF16', shape, data: toBfloat16(data) };
  });
  const rows = JSON.stringify(content.keys.map((key) => [key.episode, key.turn, key.position]));
  return encodeSafetensors(tensors, { rows });
}

/**
 * Publishes a shard: data first, then its done file. The first writer wins: a later one with the same bytes gets the
 * first one's done file.
 * @throws DataError (65) for values no probe may read, CorruptFileError (65) when two writers disagree, DiskError (74)
 */
export async function writeShard(
  folder: string,
  done: Pick<DoneFile, 'keyHash' | 'shard' | 'computedTokens' | 'seconds' | 'skipped' | 'dtype' | 'engine'>,
  content: ShardContent,
): Promise<DoneFile> {
  const health = guard(content, done.dtype);
  const parts = encodeShard(content, done.dtype);
  const hash = sha256Parts(parts);
  const path = shardPath(folder, done.shard);
  const donePath = `${base(folder, done.shard)}.done.json`;
  const record: DoneFile = {
    ...done,
    rows: content.keys.length,
    width: content.width,
    taps: content.taps,
    bytes: parts.reduce((sum, part) => sum + part.length, 0),
    sha256: hash,
    ...health,
  };
  if (!(await writeFileAtomic(path, parts, { exclusive: true })) && (await sha256File(path)).sha256 !== hash) {
    const first = await readDone(donePath);
    if (first !== null) {
      throw new CorruptFileError(
        `${path}: expected sha256 ${hash.slice(0, 12)}… from every writer, got ${first.sha256.slice(0, 12)}… from the first. ${done.engine === undefined ? 'The model does not give the same numbers twice: run with one thread, in a new --out' : 'These are not the activations that were imported before: import them in a new --out'}`,
      );
    }
    // Without a done file nobody vouches for what is there: its writer was killed, or the disk damaged it.
    await writeFileAtomic(path, parts);
  }
  if (await writeFileAtomic(donePath, `${JSON.stringify(record)}\n`, { exclusive: true })) return record;
  return (await readDone(donePath)) ?? record;
}

/** null = there is none, or none that can be read: a shard without one is made again. */
async function readDone(path: string): Promise<DoneFile | null> {
  const done = parseOrNothing(await readTextIfThere(path)) as DoneFile | null | undefined;
  return typeof done?.sha256 === 'string' && typeof done.keyHash === 'string' ? done : null;
}

/**
 * Shards of this run that are whole. One that is not (no done file since its writer was killed, another size) is made
 * again, and its done file removed; `deep` re-hashes every byte too, because a flipped bit is otherwise silent.
 * @throws MismatchError (78) when a shard belongs to another run: it is not overwritten
 */
export async function findDone(
  folder: string,
  keyHash: string,
  shards: number,
  deep: boolean,
  now: Date,
): Promise<Map<number, DoneFile>> {
  const found = new Map<number, DoneFile>();
  await removeOrphans(join(folder, 'activations'), now);
  for (let shard = 0; shard < shards; shard += 1) {
    const donePath = `${base(folder, shard)}.done.json`;
    const data = shardPath(folder, shard);
    const done = await readDone(donePath);
    if (done !== null && (done.keyHash !== keyHash || done.shard !== shard)) {
      throw new MismatchError(
        `${donePath}: expected shard ${shard} of run ${keyHash.slice(0, 8)}, got shard ${done.shard} of run ${done.keyHash.slice(0, 8)}. Move it out of the folder`,
      );
    }
    const size = await stat(data).then(
      (file) => file.size,
      () => null,
    );
    if (done !== null && size === done.bytes && (!deep || (await sha256File(data)).sha256 === done.sha256)) {
      found.set(shard, done);
      continue;
    }
    // The done file goes first: from then on nobody takes the data for whole.
    await unlink(donePath).catch(ignoreMissing);
    if (done !== null) await unlink(data).catch(ignoreMissing);
  }
  return found;
}

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
