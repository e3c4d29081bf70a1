import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Columns, readParquet, type Row, writeParquet } from '../../src/store/tables.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder("tables-'quoted'");
});

const COLUMNS: Columns = { text: 'VARCHAR', 'a "b" c': 'INTEGER', score: 'DOUBLE', yes: 'BOOLEAN' };
const row: fc.Arbitrary<Row> = fc.record({
  text: fc.option(fc.string({ unit: 'grapheme' })),
  'a "b" c': fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
  score: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
  yes: fc.option(fc.boolean()),
});

describe('a table', () => {
  it('gives its rows back in order, with nulls, quotes and any text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 12 }), async (rows) => {
        const path = join(folder, 'scores.parquet');
        await writeParquet(path, COLUMNS, rows);
        expect(await readParquet(path)).toEqual(rows.map((item) => ({ ...item })));
      }),
      { numRuns: 15 },
    );
    expect(readdirSync(folder)).toEqual(['scores.parquet']);
  });

  it('keeps the order of many rows', async () => {
    const path = join(folder, 't.parquet');
    await writeParquet(
      path,
      { i: 'INTEGER' },
      Array.from({ length: 5000 }, (_, i) => ({ i })),
    );
    expect((await readParquet(path)).map((item) => item['i'])).toEqual(Array.from({ length: 5000 }, (_, i) => i));
  });

  it('has null where a row leaves a column out', async () => {
    await writeParquet(join(folder, 't.parquet'), { a: 'INTEGER', b: 'VARCHAR' }, [{ a: 1 }]);
    expect(await readParquet(join(folder, 't.parquet'))).toEqual([{ a: 1, b: null }]);
  });

  it('refuses a cell of another type instead of writing another value, and leaves the old file', async () => {
    const path = join(folder, 't.parquet');
    await writeParquet(path, { x: 'DOUBLE' }, [{ x: 1 }]);
    const bad: [Columns, unknown][] = [
      [{ x: 'DOUBLE' }, Number.NaN],
      [{ x: 'DOUBLE' }, Infinity],
      [{ x: 'INTEGER' }, 1.5],
      [{ x: 'INTEGER' }, 2 ** 31],
      [{ x: 'VARCHAR' }, 1],
      [{ x: 'BOOLEAN' }, 'false'],
      [{ x: 'DOUBLE' }, { undefinedBecause: 'no rows' }],
    ];
    for (const [columns, value] of bad)
      await expect(writeParquet(path, columns, [{ x: value } as Row])).rejects.toThrow(/row 0, x: expected/);
    expect(await readParquet(path)).toEqual([{ x: 1 }]);
    expect(readdirSync(folder)).toEqual(['t.parquet']);
  });

  it('can be written beside others at the same time', async () => {
    const names = ['scores.parquet', 'interventions.parquet', 'exclusions.parquet'];
    await Promise.all(names.map((name) => writeParquet(join(folder, name), { name: 'VARCHAR' }, [{ name }])));
    for (const name of names) expect(await readParquet(join(folder, name))).toEqual([{ name }]);
    expect(readdirSync(folder)).toHaveLength(3);
  });

  it('that cannot be written is a fault of the disk', async () => {
    await expect(writeParquet(join(folder, 'nowhere', 't.parquet'), { x: 'DOUBLE' }, [])).rejects.toMatchObject({
      exitCode: 74,
    });
    mkdirSync(join(folder, 'taken.parquet'));
    await expect(writeParquet(join(folder, 'taken.parquet'), { x: 'DOUBLE' }, [])).rejects.toMatchObject({
      exitCode: 74,
    });
    expect(readdirSync(folder)).toEqual(['taken.parquet']);
  });

  it('that is missing or damaged is named', async () => {
    await expect(readParquet(join(folder, 'none.parquet'))).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringMatching(/none\.parquet: expected a table, got ENOENT/) as string,
    });
    writeFileSync(join(folder, 'bad.parquet'), 'PAR1 and no more PAR1');
    await expect(readParquet(join(folder, 'bad.parquet'))).rejects.toMatchObject({ exitCode: 65 });
  });
});
