import { expect, test } from 'vitest';
import { toFloat16, toFloat32 } from '../../src/lib/float-formats.ts';
import { matrixBlocks, rescaledBlocks, type RowBlocks, selectedBlocks } from '../../src/math/row-blocks.ts';
import { halfToFloat, streamedBlocks } from '../../src/math/streamed-blocks.ts';

/** All rows of a walk, checked to come in order without gaps. */
async function walk(x: RowBlocks): Promise<number[]> {
  const out: number[] = [];
  let next = 0;
  for await (const { start, count, data } of x.blocks()) {
    expect(start).toBe(next);
    expect(data.length).toBe(count * x.columns);
    for (const value of data) out.push(value);
    next += count;
  }
  expect(next).toBe(x.rows);
  return out;
}

test('half floats become the same floats as by the bit-wise conversion, all 65,536 of them', () => {
  const half = Uint16Array.from({ length: 65_536 }, (_, i) => i);
  const out = new Float32Array(65_536);
  halfToFloat(half, out);
  const expected = toFloat32(new Uint8Array(half.buffer), 'F16');
  for (let i = 0; i < 65_536; i += 1) expect(Object.is(out[i], expected[i])).toBe(true);
});

test('streamed rows are the rows, on every walk, with one block read ahead', async () => {
  const [rows, columns] = [3000, 2048];
  const half = toFloat16(Float32Array.from({ length: rows * columns }, (_, i) => (i % 997) / 8));
  const asked: number[] = [];
  const x = streamedBlocks({
    rows,
    columns,
    read(start, count) {
      asked.push(start);
      return Promise.resolve(half.subarray(start * columns, (start + count) * columns));
    },
  });
  for (let repeat = 0; repeat < 2; repeat += 1) {
    let sum = 0;
    let next = 0;
    asked.length = 0;
    for await (const { start, count, data } of x.blocks()) {
      expect(start).toBe(next);
      next += count;
      if (next < rows) expect(asked[asked.length - 1]).toBe(next);
      for (const value of data) sum += value;
    }
    expect(next).toBe(rows);
    let expected = 0;
    for (let i = 0; i < rows * columns; i += 1) expected += (i % 997) / 8;
    expect(sum).toBe(expected);
  }
});

test('a source that answers with too few numbers is named by its rows', async () => {
  const x = streamedBlocks({ rows: 5, columns: 2, read: () => Promise.resolve(new Uint16Array(9)) });
  await expect(walk(x)).rejects.toThrow('rows 0 … 4: expected 10 numbers, got 9');
});

test('a read that fails while its block is not yet wanted surfaces on the walk that wants it', async () => {
  const x = streamedBlocks({
    rows: 3000,
    columns: 2048,
    read: (start, count) =>
      start === 0 ? Promise.resolve(new Uint16Array(count * 2048)) : Promise.reject(new Error('disk gone')),
  });
  await expect(walk(x)).rejects.toThrow('disk gone');
});

test('rescaled and selected blocks are the arithmetic on the rows', async () => {
  const data = Float32Array.from({ length: 3000 * 400 }, (_, i) => i % 1013);
  const x = matrixBlocks({ data, rows: 3000, columns: 400 });
  const rows = Int32Array.from([0, 5, 2620, 2621, 2999]);
  const picked = await walk(selectedBlocks(x, rows));
  expect(picked).toEqual(Array.from(rows, (row) => Array.from(data.subarray(row * 400, (row + 1) * 400))).flat());
  const mean = Float64Array.from({ length: 400 }, (_, k) => k);
  const scale = Float64Array.from({ length: 400 }, (_, k) => 1 + k);
  const scaled = await walk(rescaledBlocks(selectedBlocks(x, rows), mean, scale));
  picked.forEach((value, i) => expect(scaled[i]).toBe(Math.fround((value - (i % 400)) / (1 + (i % 400)))));
});
