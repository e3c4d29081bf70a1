import { CorruptFileError, DataError } from '../errors.ts';
import {
  readFloatRows,
  readSafetensorsHeader,
  readTensorRows,
  type RowRange,
  type SafetensorsHeader,
} from '../lib/safetensors.ts';
import type { FeatureKey, FeatureMatrix, Tap } from '../types.ts';
import { shardPath } from './activation-shards.ts';

export interface Features {
  readonly width: number;
  readonly taps: readonly Tap[];
  readonly rows: number;
  has(key: FeatureKey): boolean;
  /** Rows in the order of the keys. @throws DataError (65) naming the first key that was not captured */
  read(tap: Tap, keys: readonly FeatureKey[]): Promise<FeatureMatrix>;
  /**
   * The same rows, read from disk block by block on every walk: for `streamedBlocks`, where the matrix exceeds memory. Half
   * floats stay half floats until they are used. @throws DataError (65) as `read`
   */
  stream(tap: Tap, keys: readonly FeatureKey[]): RowSource;
}

/** As math/streamed-blocks.ts takes it: rows in the order of the keys; Uint16Array = bits of IEEE half floats. */
export interface RowSource {
  readonly rows: number;
  readonly columns: number;
  read(start: number, count: number): Promise<Float32Array | Uint16Array>;
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
 * fit `cacheBytes`, else only the rows wanted.
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

  const readTap = async (tap: Tap): Promise<Float32Array> => {
    const known = cache.get(tap);
    if (known) return known;
    const all = new Float32Array(total * width);
    for (const part of parts) {
      const [data] = await readFloatRows(part.path, part.header, tap, [null]);
      all.set(data, part.from * width);
    }
    if (cache.size >= kept) cache.delete(cache.keys().next().value ?? '');
    cache.set(tap, all);
    return all;
  };

  /** Hands over stretches of rows that hold the rows wanted (ascending), and where each stretch begins. */
  const readWanted = async <T>(
    wanted: readonly number[],
    readRanges: (part: Shard, ranges: readonly RowRange[]) => Promise<readonly T[]>,
    take: (data: T, first: number, index: number) => void,
  ): Promise<void> => {
    let index = 0;
    for (const part of parts) {
      const from = index;
      while (index < wanted.length && wanted[index] < part.from + part.rows) index += 1;
      const ranges = stretches(wanted.slice(from, index).map((row) => row - part.from));
      const read = ranges.length === 0 ? [] : await readRanges(part, ranges);
      let at = from;
      for (const [k, range] of ranges.entries()) {
        for (; at < index && wanted[at] < part.from + range.to; at += 1) take(read[k], part.from + range.from, at);
      }
    }
  };

  const rowsOf = (tap: Tap, keys: readonly FeatureKey[]): number[] => {
    const rows = keys.map((key) => {
      const row = rowOf.get(keyText(key));
      if (row !== undefined) return row;
      throw new DataError(
        `${folder}: expected a captured state at ${key.position} of turn ${key.turn}, episode ${key.episode}, got none. Add the position to capture.positions`,
      );
    });
    if (taps.includes(tap)) return rows;
    throw new DataError(
      `${folder}: expected the tap ${tap}, got ${taps.join(', ')}. Add it to capture.kinds and capture.layers`,
    );
  };

  /** Fills `out` [rows, width] with rows in any order, reading each file from front to back. */
  const readInto = async <T extends Float32Array | Uint16Array>(
    out: T,
    rows: readonly number[],
    readRanges: (part: Shard, ranges: readonly RowRange[]) => Promise<readonly T[]>,
  ): Promise<T> => {
    const order = Array.from(rows, (_, index) => index).sort((a, b) => rows[a] - rows[b]);
    const ascending = order.map((index) => rows[index]);
    await readWanted(ascending, readRanges, (stretch, first, index) => {
      const at = (ascending[index] - first) * width;
      out.set(stretch.subarray(at, at + width), order[index] * width);
    });
    return out;
  };

  return {
    width,
    taps,
    rows: total,
    has: (key) => rowOf.has(keyText(key)),
    async read(tap, keys) {
      const rows = rowsOf(tap, keys);
      const data = new Float32Array(rows.length * width);
      if (kept >= 1) {
        const all = await readTap(tap);
        for (const [index, row] of rows.entries())
          data.set(all.subarray(row * width, (row + 1) * width), index * width);
      } else await readInto(data, rows, (part, ranges) => readFloatRows(part.path, part.header, tap, ranges));
      return { data, rows: rows.length, columns: width };
    },
    stream(tap, keys) {
      const rows = rowsOf(tap, keys);
      const half = parts.every(({ header }) => header.tensors.get(tap)?.dtype === 'F16');
      return {
        rows: rows.length,
        columns: width,
        read: (start, count) => {
          const wanted = rows.slice(start, start + count);
          return half
            ? readInto(new Uint16Array(wanted.length * width), wanted, async (part, ranges) =>
                (await readTensorRows(part.path, part.header, tap, ranges)).map(
                  (bytes) => new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2),
                ),
              )
            : readInto(new Float32Array(wanted.length * width), wanted, (part, ranges) =>
                readFloatRows(part.path, part.header, tap, ranges),
              );
        },
      };
    },
  };
}
/** Reading a few rows too many costs less than another call. */
const GAP_ROWS = 16;

/** Ranges that cover the rows (ascending, repeats allowed). */
function stretches(rows: readonly number[]): RowRange[] {
  const out: { from: number; to: number }[] = [];
  for (const row of rows) {
    const last = out.at(-1);
    if (last !== undefined && row <= last.to + GAP_ROWS) last.to = Math.max(last.to, row + 1);
    else out.push({ from: row, to: row + 1 });
  }
  return out;
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
