/**
 * A matrix handed over in blocks of rows, always in the same order: in memory, rescaled on the way, or read from disk.
 * Whatever reads it touches one block at a time, so a matrix larger than memory is a matrix like any other.
 */
import type { FeatureMatrix } from '../types.ts';

export interface RowBlock {
  /** First row of the block. */
  readonly start: number;
  readonly count: number;
  /** [count × columns], row-major. Valid until the next block is asked for; not to be changed. */
  readonly data: Float32Array;
}

export interface RowBlocks {
  readonly rows: number;
  readonly columns: number;
  /** All blocks, first to last. May be walked any number of times, one walk at a time. */
  blocks(): AsyncIterable<RowBlock> | Iterable<RowBlock>;
}

/** Numbers per block: 4 MB, which stays in cache between the two products that read it. */
const BLOCK_NUMBERS = 1 << 20;
/** Least rows per block: adding up the blocks of a wide matrix would otherwise cost as much as its products. */
const MIN_BLOCK_ROWS = 512;

/** Views of a matrix in memory. */
export function matrixBlocks({ data, rows, columns }: FeatureMatrix): RowBlocks {
  const size = Math.max(MIN_BLOCK_ROWS, Math.floor(BLOCK_NUMBERS / Math.max(1, columns)));
  return {
    rows,
    columns,
    *blocks() {
      for (let start = 0; start < rows; start += size) {
        const count = Math.min(size, rows - start);
        yield { start, count, data: data.subarray(start * columns, (start + count) * columns) };
      }
    },
  };
}

/** The same rows with every column shifted and scaled: (x − mean) / scale. One block of extra memory. */
export function rescaledBlocks(x: RowBlocks, mean: Float64Array, scale: Float64Array): RowBlocks {
  const { rows, columns } = x;
  let held = new Float32Array(0);
  return {
    rows,
    columns,
    async *blocks() {
      for await (const { start, count, data } of x.blocks()) {
        if (held.length < data.length) held = new Float32Array(data.length);
        for (let i = 0, at = 0; i < count; i += 1) {
          for (let j = 0; j < columns; j += 1, at += 1) held[at] = (data[at] - mean[j]) / scale[j];
        }
        yield { start, count, data: held.subarray(0, data.length) };
      }
    },
  };
}

/** Only some rows, renumbered in order. @param rows ascending, none twice */
export function selectedBlocks(x: RowBlocks, rows: Int32Array): RowBlocks {
  const { columns } = x;
  let held = new Float32Array(0);
  return {
    rows: rows.length,
    columns,
    async *blocks() {
      let next = 0;
      for await (const { start, count, data } of x.blocks()) {
        if (held.length < data.length) held = new Float32Array(data.length);
        const first = next;
        for (; next < rows.length && rows[next] < start + count; next += 1) {
          const from = (rows[next] - start) * columns;
          held.set(data.subarray(from, from + columns), (next - first) * columns);
        }
        if (next > first) yield { start: first, count: next - first, data: held.subarray(0, (next - first) * columns) };
      }
    },
  };
}

/** XᵀX in float32, blocks added up in float64 where that is affordable. [columns × columns] */
export async function gramMatrix(
  x: RowBlocks,
  gemm: (
    a: Float32Array,
    b: Float32Array,
    m: number,
    n: number,
    k: number,
    o: { transposeA: true },
  ) => Promise<Float32Array>,
): Promise<Float32Array> {
  const d = x.columns;
  const gram = new Float32Array(d * d);
  for await (const { count, data } of x.blocks()) {
    const part = await gemm(data, data, d, d, count, { transposeA: true });
    for (let i = 0; i < part.length; i += 1) gram[i] += part[i];
  }
  return gram;
}
