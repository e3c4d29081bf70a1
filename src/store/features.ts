import { CorruptFileError, DataError } from '../errors.ts';
import { toFloat32 } from '../lib/float-formats.ts';
import { readSafetensorsHeader, readTensorBytes, type SafetensorsHeader } from '../lib/safetensors.ts';
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

interface Shard {
  readonly path: string;
  readonly header: SafetensorsHeader;
  /** Number of its first row among the rows of all shards. */
  readonly from: number;
  readonly rows: number;
}

/** Whole taps up to this size together are kept in memory, since a search reads each many times. */
const CACHE_BYTES = 768 * 2 ** 20;

const keyText = ({ episode, turn, position }: FeatureKey): string => `${episode}\u0000${turn}\u0000${position}`;

/**
 * Opens the stored activations of a run. The index is read once, taps when they are asked for: whole and kept where they
 * fit `cacheBytes`, else one shard at a time.
 * @throws CorruptFileError (65) when the shards do not fit together
 */
export async function openFeatures(
  folder: string,
  shards: readonly number[],
  cacheBytes: number = CACHE_BYTES,
): Promise<Features> {
  const rowOf = new Map<string, number>();
  const parts: Shard[] = [];
  let total = 0;
  let shape: { readonly width: number; readonly taps: readonly Tap[] } | null = null;
  for (const shard of shards) {
    const path = shardPath(folder, shard);
    const header = await readSafetensorsHeader(path);
    const keys = readKeys(path, header);
    const own = checkShape(path, header, keys.length);
    shape ??= own;
    if (own.width !== shape.width || own.taps.join() !== shape.taps.join()) {
      throw new CorruptFileError(
        `${path}: expected ${shape.taps.length} taps of width ${shape.width} as in the shards before, got ${own.taps.length} of ${own.width}. Remove it and its .done.json and run the same command again`,
      );
    }
    for (const key of keys) {
      const text = keyText(key);
      if (rowOf.has(text)) {
        throw new CorruptFileError(
          `${path}: expected each state once, got ${key.position} of turn ${key.turn}, episode ${key.episode} again`,
        );
      }
      rowOf.set(text, rowOf.size);
    }
    parts.push({ path, header, from: total, rows: keys.length });
    total += keys.length;
  }
  const { width, taps } = shape ?? { width: 0, taps: [] };
  const cache = new Map<Tap, Float32Array>();
  const kept = Math.floor(cacheBytes / Math.max(1, total * width * 4));

  const readShard = async (tap: Tap, part: Shard): Promise<Float32Array> =>
    toFloat32(await readTensorBytes(part.path, part.header, tap), part.header.tensors.get(tap)?.dtype ?? 'nothing');

  const readTap = async (tap: Tap): Promise<Float32Array> => {
    const known = cache.get(tap);
    if (known) return known;
    const all = new Float32Array(total * width);
    for (const part of parts) all.set(await readShard(tap, part), part.from * width);
    if (cache.size >= kept) cache.delete(cache.keys().next().value ?? '');
    cache.set(tap, all);
    return all;
  };

  return {
    width,
    taps,
    rows: total,
    has: (key) => rowOf.has(keyText(key)),
    async read(tap, keys) {
      const rows = keys.map((key) => {
        const row = rowOf.get(keyText(key));
        if (row !== undefined) return row;
        throw new DataError(
          `${folder}: expected a captured state at ${key.position} of turn ${key.turn}, episode ${key.episode}, got none. Add the position to capture.positions`,
        );
      });
      if (!taps.includes(tap)) {
        throw new DataError(
          `${folder}: expected the tap ${tap}, got ${taps.join(', ')}. Add it to capture.kinds and capture.layers`,
        );
      }
      const data = new Float32Array(rows.length * width);
      const copy = (from: Float32Array, first: number, count: number): void => {
        for (const [index, row] of rows.entries()) {
          const at = (row - first) * width;
          if (row >= first && row < first + count) data.set(from.subarray(at, at + width), index * width);
        }
      };
      if (kept >= 1) copy(await readTap(tap), 0, total);
      else for (const part of parts) copy(await readShard(tap, part), part.from, part.rows);
      return { data, rows: rows.length, columns: width };
    },
  };
}

function readKeys(path: string, header: SafetensorsHeader): FeatureKey[] {
  const text = header.metadata.get('rows');
  try {
    const rows = JSON.parse(text ?? '') as readonly (readonly [string, number, string])[];
    return rows.map(([episode, turn, position]) => {
      if (typeof episode !== 'string' || !Number.isSafeInteger(turn) || typeof position !== 'string') throw new Error();
      return { episode, turn, position };
    });
  } catch {
    throw new CorruptFileError(
      `${path}: expected metadata "rows" with [episode, turn, position] of every row, got ${JSON.stringify(text?.slice(0, 60) ?? null)}. See docs/shard-format.md`,
    );
  }
}

function checkShape(
  path: string,
  header: SafetensorsHeader,
  rows: number,
): { readonly width: number; readonly taps: readonly Tap[] } {
  const taps = [...header.tensors.keys()].sort();
  const width = header.tensors.get(taps[0] ?? '')?.shape[1] ?? 0;
  for (const [tap, { shape }] of header.tensors) {
    if (shape.length !== 2 || shape[0] !== rows || shape[1] !== width) {
      throw new CorruptFileError(
        `${path}: expected ${tap} of shape [${rows}, ${width}], got [${shape.join(', ')}]. See docs/shard-format.md`,
      );
    }
  }
  return { width, taps };
}
