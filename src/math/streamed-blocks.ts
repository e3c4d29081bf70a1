/**
 * Rows that are read anew on every walk, because the matrix does not fit in memory. The next block is asked for while the
 * last is being used, so a disk that keeps up costs little more than the conversion.
 */
import type { RowBlocks } from './row-blocks.ts';

export interface RowSource {
  readonly rows: number;
  readonly columns: number;
  /** Rows start … start + count − 1, [count × columns], as float32 or as the bits of IEEE half floats. It is not kept. */
  read(start: number, count: number): Promise<Float32Array | Uint16Array>;
}

/** Numbers per block: three blocks are alive at once (one read ahead), 24 MB together. */
const BLOCK_NUMBERS = 1 << 21;

/** @throws RangeError where the source answers with another number of values */
export function streamedBlocks(source: RowSource): RowBlocks {
  const { rows, columns } = source;
  const size = Math.max(64, Math.floor(BLOCK_NUMBERS / Math.max(1, columns)));
  const held = new Float32Array(Math.min(rows, size) * columns); // of half floats only; untouched pages cost nothing
  const read = (start: number): Promise<Float32Array | Uint16Array> | null =>
    start < rows ? source.read(start, Math.min(size, rows - start)) : null;
  return {
    rows,
    columns,
    async *blocks() {
      let ahead = read(0);
      for (let start = 0; ahead !== null; start += size) {
        const values = await ahead;
        const count = Math.min(size, rows - start);
        if (values.length !== count * columns) {
          throw new RangeError(
            `rows ${start} … ${start + count - 1}: expected ${count * columns} numbers, got ${values.length}`,
          );
        }
        ahead = read(start + size);
        // A walk that is left early must not leave a rejection behind that nobody awaits.
        ahead?.catch(() => undefined);
        if (values instanceof Uint16Array) halfToFloat(values, held);
        yield { start, count, data: values instanceof Uint16Array ? held.subarray(0, values.length) : values };
      }
    },
  };
}

let table: Float32Array | null = null;

/** Half floats to float32 by table (256 KB), about one nanosecond each. */
export function halfToFloat(half: Uint16Array, out: Float32Array): void {
  table ??= Float32Array.from({ length: 65_536 }, (_, bits) => {
    const exponent = (bits >> 10) & 0x1f;
    const fraction = bits & 0x3ff;
    const size =
      exponent === 0x1f
        ? fraction === 0
          ? Infinity
          : Number.NaN
        : exponent === 0
          ? fraction * 2 ** -24
          : (1024 + fraction) * 2 ** (exponent - 25);
    return bits & 0x8000 ? -size : size;
  });
  const values = table;
  for (let i = 0; i < half.length; i += 1) out[i] = values[half[i]];
}
