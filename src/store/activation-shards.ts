import { existsSync } from 'node:fs';
import { mkdir, readFile, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptFileError, DataError } from '../errors.ts';
import { removeOrphans, writeFileAtomic } from '../lib/atomic-write.ts';
import { sha256, sha256File } from '../lib/content-hash.ts';
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

const FLOAT16_MAX = 65_504;

function toBfloat16(data: Float32Array): Uint16Array {
  const bits = new Uint32Array(data.buffer, data.byteOffset, data.length);
  // Round to nearest even, as PyTorch does.
  return Uint16Array.from(bits, (value) => (value + 0x7fff + ((value >>> 16) & 1)) >>> 16);
}

function toFloat16(data: Float32Array): Uint16Array {
  const bits = new Uint32Array(data.buffer, data.byteOffset, data.length);
  return Uint16Array.from(bits, (value) => {
    const sign = (value >>> 16) & 0x8000;
    const exponent = ((value >>> 23) & 0xff) - 112;
    let fraction = value & 0x7fffff;
    if (exponent >= 31) return sign | 0x7c00;
    if (exponent <= 0) {
      if (exponent < -10) return sign;
      fraction |= 0x800000;
      const shift = 14 - exponent;
      const half = 1 << (shift - 1);
      const rounded = (fraction + half - 1 + ((fraction >>> shift) & 1)) >>> shift;
      return sign | rounded;
    }
    const rounded = ((exponent << 23) | fraction) + 0xfff + ((fraction >>> 13) & 1);
    return sign | (rounded >>> 13);
  });
}

/** Counts what must never reach a probe. @throws DataError (65) naming tap and row */
function guard(content: ShardContent, dtype: Dtype): number[] {
  return content.data.map((data, tap) => {
    let most = 0;
    for (let index = 0; index < data.length; index += 1) {
      const value = Math.abs(data[index]!);
      if (!(value <= Number.MAX_VALUE)) {
        const key = content.keys[Math.floor(index / content.width)]!;
        throw new DataError(
          `${content.taps[tap]}: expected finite activations, got ${data[index]} at ${key.position} of turn ${key.turn}, episode ${key.episode}. Use a float32 or bfloat16 export of the model`,
        );
      }
      if (value > most) most = value;
    }
    if (dtype === 'float16' && most > FLOAT16_MAX) {
      throw new DataError(
        `${content.taps[tap]}: expected magnitudes up to ${FLOAT16_MAX} for capture.dtype float16, got ${most}. Set capture.dtype to bfloat16 or float32`,
      );
    }
    return most;
  });
}

/** Publishes a shard: data first, then its done file. Returns the done file of whoever was first. */
export async function writeShard(
  folder: string,
  done: Pick<DoneFile, 'keyHash' | 'shard' | 'computedTokens' | 'seconds' | 'skipped' | 'dtype'>,
  content: ShardContent,
): Promise<DoneFile> {
  await mkdir(join(folder, 'activations'), { recursive: true });
  const maxAbs = guard(content, done.dtype);
  const shape = [content.keys.length, content.width];
  const tensors = content.taps.map((tap, index): TensorToWrite => {
    const data = content.data[index]!;
    if (done.dtype === 'float32') return { name: tap, dtype: 'F32', shape, data };
    if (done.dtype === 'float16') return { name: tap, dtype: 'F16', shape, data: toFloat16(data) };
    return { name: tap, dtype: 'BF16', shape, data: toBfloat16(data) };
  });
  const rows = JSON.stringify(content.keys.map((key) => [key.episode, key.turn, key.position]));
  const parts = encodeSafetensors(tensors, { rows });
  const whole = Buffer.concat(parts);
  const path = `${base(folder, done.shard)}.safetensors`;
  await writeFileAtomic(path, whole, { exclusive: true });
  const onDisk = await sha256File(path);
  const record: DoneFile = {
    ...done,
    rows: content.keys.length,
    width: content.width,
    taps: content.taps,
    bytes: onDisk.bytes,
    sha256: sha256(whole),
    maxAbs,
  };
  if (onDisk.sha256 !== record.sha256) {
    throw new CorruptFileError(
      `${path}: expected the same bytes from every writer, got other ones there already. Remove the file and run the same command again`,
    );
  }
  await writeFileAtomic(`${base(folder, done.shard)}.done.json`, `${JSON.stringify(record)}\n`, { exclusive: true });
  return record;
}

/**
 * Shards of this run that are whole. A data file without done file (killed in between) or with one that does not fit is
 * removed and made again; `deep` also re-hashes every byte, because a flipped bit is otherwise silent.
 */
export async function findDone(
  folder: string,
  keyHash: string,
  shards: number,
  deep: boolean,
  now: Date,
): Promise<Map<number, DoneFile>> {
  const found = new Map<number, DoneFile>();
  if (!existsSync(join(folder, 'activations'))) return found;
  await removeOrphans(join(folder, 'activations'), now);
  for (let shard = 0; shard < shards; shard += 1) {
    const data = `${base(folder, shard)}.safetensors`;
    const donePath = `${base(folder, shard)}.done.json`;
    const drop = async (): Promise<void> => {
      for (const path of [donePath, data]) if (existsSync(path)) await unlink(path);
    };
    const text = await readFile(donePath, 'utf8').catch(() => null);
    if (text === null) {
      await drop();
      continue;
    }
    let done: DoneFile | null = null;
    try {
      done = JSON.parse(text) as DoneFile;
    } catch {
      // A done file is written whole or not at all; a damaged one is made again with its shard.
    }
    const size = existsSync(data) ? (await stat(data)).size : -1;
    if (
      done === null ||
      done.keyHash !== keyHash ||
      done.shard !== shard ||
      size !== done.bytes ||
      (deep && (await sha256File(data)).sha256 !== done.sha256)
    )
      await drop();
    else found.set(shard, done);
  }
  return found;
}

export const shardPath = (folder: string, shard: number): string => `${base(folder, shard)}.safetensors`;
