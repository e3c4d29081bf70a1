import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  encodeSafetensors,
  readFloatRows,
  readSafetensorsHeader,
  readTensorBytes,
  readTensorRows,
  type TensorToWrite,
} from '../../src/lib/safetensors.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

const folder = temporaryFolder('safetensors');
let count = 0;
function put(...parts: readonly Uint8Array[]): string {
  const path = join(folder, `${(count += 1)}.safetensors`);
  writeFileSync(path, Buffer.concat(parts));
  return path;
}
function raw(header: string, data: Uint8Array = new Uint8Array(0)): string {
  const json = Buffer.from(header);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return put(length, json, data);
}

const tensors = fc.uniqueArray(
  fc.record({
    name: fc.string({ unit: 'grapheme' }).filter((name) => name !== '__metadata__'),
    rows: fc.integer({ min: 0, max: 5 }),
    columns: fc.integer({ min: 0, max: 4 }),
    dtype: fc.constantFrom('F32' as const, 'F64' as const, 'I32' as const, 'U8' as const, 'BF16' as const),
  }),
  { selector: (item) => item.name, maxLength: 6 },
);

function fill({
  name,
  rows,
  columns,
  dtype,
}: {
  name: string;
  rows: number;
  columns: number;
  dtype: TensorToWrite['dtype'];
}): TensorToWrite {
  const size = { F32: 4, F64: 8, I32: 4, U8: 1, BF16: 2, F16: 2, I64: 8 }[dtype];
  const data = Uint8Array.from({ length: rows * columns * size }, (_, i) => (i * 37 + name.length) % 251);
  return { name, dtype, shape: [rows, columns], data };
}

describe('writing and reading back', () => {
  it('gives names, types, shapes, bytes and metadata back, whatever the names', async () => {
    await fc.assert(
      fc.asyncProperty(tensors, fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }), async (list, metadata) => {
        const written = list.map(fill);
        const path = put(...encodeSafetensors(written, metadata));
        const header = await readSafetensorsHeader(path);
        expect([...header.tensors.keys()].sort()).toEqual(list.map((item) => item.name).sort());
        expect(header.metadata).toEqual(new Map(Object.entries(metadata)));
        expect(header.dataStart % 64).toBe(0);
        for (const { name, dtype, shape, data } of written) {
          expect(header.tensors.get(name)).toMatchObject({ dtype, shape });
          expect([...(await readTensorBytes(path, header, name))]).toEqual([...(data as Uint8Array)]);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('writes the same bytes whatever the order of the tensors', () => {
    fc.assert(
      fc.property(tensors, (list) => {
        const one = Buffer.concat(encodeSafetensors(list.map(fill)));
        const other = Buffer.concat(encodeSafetensors([...list].reverse().map(fill)));
        expect(one.equals(other)).toBe(true);
      }),
    );
  });

  it('never writes white space before the header and begins with an open brace', () => {
    const [head] = encodeSafetensors([]);
    expect(String.fromCharCode(head[8])).toBe('{');
  });

  it('takes views into larger buffers', async () => {
    const whole = Float32Array.of(9, 1, 2, 9);
    const path = put(...encodeSafetensors([{ name: 'a', dtype: 'F32', shape: [2], data: whole.subarray(1, 3) }]));
    const [data] = await readFloatRows(path, await readSafetensorsHeader(path), 'a', [null]);
    expect([...data]).toEqual([1, 2]);
  });

  it('refuses a shape that does not fit, a name twice, and the reserved name', () => {
    const data = new Float32Array(2);
    expect(() => encodeSafetensors([{ name: 'a', dtype: 'F32', shape: [3], data }])).toThrow(/8 bytes for F32 \[3\]/);
    const a: TensorToWrite = { name: 'a', dtype: 'F32', shape: [2], data };
    expect(() => encodeSafetensors([a, a])).toThrow(/"a" is taken/);
    expect(() => encodeSafetensors([{ ...a, name: '__metadata__' }])).toThrow(/taken/);
  });
});

describe('reading a part', () => {
  const path = put(
    ...encodeSafetensors([
      { name: 'm', dtype: 'F32', shape: [4, 3], data: Float32Array.from({ length: 12 }, (_, i) => i) },
      { name: 'none', dtype: 'F32', shape: [0, 3], data: new Float32Array(0) },
      { name: 'ids', dtype: 'U8', shape: [3], data: Uint8Array.of(1, 2, 3) },
    ]),
  );

  it('reads ranges of rows', async () => {
    const header = await readSafetensorsHeader(path);
    const [middle, none, first] = await readTensorRows(path, header, 'm', [
      { from: 1, to: 3 },
      { from: 4, to: 4 },
      { from: 0, to: 1 },
    ]);
    expect([...new Float32Array(middle.buffer)]).toEqual([3, 4, 5, 6, 7, 8]);
    expect(none).toHaveLength(0);
    expect([...new Float32Array(first.buffer)]).toEqual([0, 1, 2]);
    expect(await readTensorRows(path, header, 'none', [{ from: 0, to: 0 }])).toEqual([new Uint8Array(0)]);
  });

  it('refuses rows that are not there, as a mistake of the caller', async () => {
    const header = await readSafetensorsHeader(path);
    for (const range of [
      { from: 3, to: 5 },
      { from: 2, to: 1 },
      { from: -1, to: 1 },
    ])
      await expect(readTensorRows(path, header, 'm', [range])).rejects.toThrow(RangeError);
  });

  it('names the tensors there are when one is missing', async () => {
    const header = await readSafetensorsHeader(path);
    await expect(readTensorBytes(path, header, 'x')).rejects.toThrow(/expected the tensor "x", got .*m/);
  });

  it('gives floats of rows, and refuses integers and what is not finite', async () => {
    const header = await readSafetensorsHeader(path);
    const [rows, all] = await readFloatRows(path, header, 'm', [{ from: 3, to: 4 }, null]);
    expect([...rows]).toEqual([9, 10, 11]);
    expect(all).toHaveLength(12);
    await expect(readFloatRows(path, header, 'ids', [null])).rejects.toThrow(/floating tensor, got U8/);
    const bad = put(
      ...encodeSafetensors([
        { name: 'x', dtype: 'F32', shape: [3, 1], data: Float32Array.of(1, Infinity, Number.NaN) },
      ]),
    );
    const other = await readSafetensorsHeader(bad);
    expect(await readFloatRows(bad, other, 'x', [{ from: 0, to: 1 }])).toEqual([Float32Array.of(1)]);
    await expect(readFloatRows(bad, other, 'x', [null])).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringMatching(/finite values in tensor "x", got 2 that are not/) as string,
    });
  });

  it('notices a file that is cut after its header was read', async () => {
    const cut = put(readFileSync(path));
    const header = await readSafetensorsHeader(cut);
    truncateSync(cut, header.fileBytes - 20);
    await expect(readTensorBytes(cut, header, 'm')).rejects.toMatchObject({ exitCode: 65 });
  });
});

describe('refusals', () => {
  const refused: [string, () => string, RegExp][] = [
    ['a file that is not there', () => join(folder, 'nothing.safetensors'), /nothing\.safetensors: .*ENOENT/],
    ['a folder', () => folder, /folder/],
    [
      'an unknown field of a tensor',
      () => raw('{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}}'),
      /field "x"/,
    ],
    ['a negative offset', () => raw('{"a":{"dtype":"U8","shape":[0],"data_offsets":[-1,-1]}}'), /data_offsets/],
    [
      'a type that is a property of objects',
      () => raw('{"a":{"dtype":"constructor","shape":[],"data_offsets":[0,0]}}'),
      /known dtype/,
    ],
    ['a metadata key given twice', () => raw('{"__metadata__":{"k":"1","k":"2"}}'), /the key "k" twice/],
    ['text after the header', () => raw('{} x'), /text after the value/],
    [
      'NaN in a header',
      () => raw('{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}}', new Uint8Array(4)),
      /JSON/,
    ],
    ['a header nested 100,000 deep', () => raw('['.repeat(100_000)), /nested deeper/],
    ['a tensor that is a list', () => raw('{"a":[]}'), /object under "a"/],
    [
      'a half byte of data',
      () => raw('{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}', new Uint8Array(2)),
      /fits/,
    ],
  ];
  for (const [what, make, message] of refused) {
    it(what, async () => {
      await expect(readSafetensorsHeader(make())).rejects.toMatchObject({
        exitCode: 65,
        message: expect.stringMatching(message) as string,
      });
    });
  }

  it('stays quick with many tensors', async () => {
    const many = Array.from(
      { length: 20_000 },
      (_, i) => `"t${i}":{"dtype":"U8","shape":[1],"data_offsets":[${i},${i + 1}]}`,
    );
    const header = await readSafetensorsHeader(raw(`{${many.join(',')}}`, new Uint8Array(20_000)));
    expect(header.tensors.size).toBe(20_000);
  });
});
