import { CorruptFileError, DataError } from '../errors.ts';
import { readSafetensorsHeader, readTensorBytes, type SafetensorsHeader, toFloat32 } from '../lib/safetensors.ts';
import type { FeatureKey, FeatureMatrix, Tap } from '../types.ts';
import { shardPath } from './activation-shards.ts';

export interface Features {
  readonly width: number;
  readonly taps: readonly Tap[];
  readonly rows: number;
  has(key: FeatureKey): boolean;
  /** Rows in the order of the keys. @throws DataError (65) naming the first key that was not captured */
  read(tap: Tap, keys: readonly FeatureKey[]): Promise<FeatureMatrix>;
}

const keyText = (key: FeatureKey): string => `${key.episode}\u0000${key.turn}\u0000${key.position}`;

/** Whole taps of this size are kept in memory, since a search reads each many times. */
const CACHE_BYTES = 768 << 20;

/** Opens the stored activations of a run. The index is read once; taps are read when asked for. */
export async function openFeatures(folder: string, shards: readonly number[]): Promise<Features> {
  const rowOf = new Map<string, number>();
  const parts: {
    readonly path: string;
    readonly header: SafetensorsHeader;
    readonly from: number;
    readonly rows: number;
  }[] = [];
  let total = 0;
  let width = 0;
  let taps: readonly Tap[] = [];
  for (const shard of shards) {
    const path = shardPath(folder, shard);
    const header = await readSafetensorsHeader(path);
    const rows = JSON.parse(header.metadata.get('rows') ?? '[]') as [string, number, string][];
    const names = [...header.tensors.keys()].sort();
    const first = header.tensors.get(names[0] ?? '');
    if (first && first.shape.length === 2) {
      if (width !== 0 && first.shape[1] !== width)
        throw new CorruptFileError(`${path}: expected width ${width}, got ${first.shape[1]}`);
      width = first.shape[1]!;
      taps = names;
    }
    for (const [index, [episode, turn, position]] of rows.entries())
      rowOf.set(keyText({ episode, turn, position }), total + index);
    parts.push({ path, header, from: total, rows: rows.length });
    total += rows.length;
  }
  const cache = new Map<Tap, Float32Array>();
  const load = async (tap: Tap): Promise<Float32Array> => {
    const known = cache.get(tap);
    if (known) return known;
    const all = new Float32Array(total * width);
    for (const part of parts) {
      if (part.rows === 0) continue;
      const bytes = await readTensorBytes(part.path, part.header, tap);
      all.set(toFloat32(bytes, part.header.tensors.get(tap)!.dtype), part.from * width);
    }
    if (cache.size > 0 && (cache.size + 1) * all.byteLength > CACHE_BYTES) cache.delete(cache.keys().next().value!);
    cache.set(tap, all);
    return all;
  };
  return {
    width,
    taps,
    rows: total,
    has: (key) => rowOf.has(keyText(key)),
    async read(tap, keys) {
      const all = await load(tap);
      const data = new Float32Array(keys.length * width);
      for (const [index, key] of keys.entries()) {
        const row = rowOf.get(keyText(key));
        if (row === undefined)
          throw new DataError(
            `${folder}: expected a captured state at ${key.position} of turn ${key.turn}, episode ${key.episode}, got none. Add the position to capture.positions`,
          );
        data.set(all.subarray(row * width, (row + 1) * width), index * width);
      }
      return { data, rows: keys.length, columns: width };
    },
  };
}
