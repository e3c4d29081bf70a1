import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readMetas } from '../../src/dataset/read.ts';
import type { Where } from '../../src/dataset/where.ts';
import { UserError } from '../../src/errors.ts';
import { capeMapping, collect, episodeRow, sourceOf, writeJsonl, writeParquet } from './fixtures.ts';

const mapping = await capeMapping();
const rows = Array.from({ length: 24 }, (_, index) =>
  episodeRow(index, {
    model: index % 3 === 0 ? 'model-a' : 'model-b',
    seed: index,
    score: index % 4 === 0 ? null : index / 2,
    note: index % 5 === 0 ? '50 %' : `note_${index}`,
  }),
);
const jsonl = writeJsonl(rows);
const parquet = await writeParquet(rows);

async function keys(path: string, where: Where): Promise<string[]> {
  try {
    return (await readMetas(sourceOf(path), mapping, collect({ where }))).map((meta) => meta.episodeId);
  } catch (error) {
    if (/0 rows that pass where/.test((error as Error).message)) return [];
    throw error;
  }
}
const both = async (where: Where): Promise<string[]> => {
  const found = await keys(jsonl, where);
  expect(await keys(parquet, where)).toEqual(found);
  return found;
};
const expected = (test: (row: Record<string, unknown>) => boolean): string[] =>
  rows.filter(test).map((row) => row['episode_id'] as string);

describe('where', () => {
  it('takes a value, a list, null and comparisons, all of which have to hold', async () => {
    expect(await both({ model: 'model-a' })).toEqual(expected((row) => row['model'] === 'model-a'));
    expect(await both({ seed: [3, 5, 99] })).toEqual(['ep-3', 'ep-5']);
    expect(await both({ score: null })).toEqual(expected((row) => row['score'] === null));
    expect(await both({ unsafe_episode: true, seed: { gte: 4, lt: 9 } })).toEqual(['ep-4', 'ep-6', 'ep-8']);
    expect(await both({ model: { not: 'model-a' }, seed: { lte: 2 } })).toEqual(['ep-1', 'ep-2']);
    expect(await both({ score: { not: [null, 0.5] }, seed: { lt: 4 } })).toEqual(['ep-2', 'ep-3']);
    expect(await both({ note: { like: '50 \\%' } })).toEqual([]);
    expect(await both({ note: { like: 'note_1_' } })).toEqual(
      expected((row) => /^note.1.$/.test(row['note'] as string)),
    );
  });

  it('compares numbers as numbers, whatever the column calls them', async () => {
    expect(await both({ score: 1 })).toEqual(['ep-2']);
    expect(await both({ score: [1.5, 2.5] })).toEqual(['ep-3', 'ep-5']);
  });

  it('selects the same rows of parquet and of JSON lines', async () => {
    const condition = fc.oneof(
      fc.constantFrom('model-a', 'model-b', null, 3, 1.5),
      fc.array(fc.constantFrom('model-a', 3, 2.5, null), { minLength: 1, maxLength: 3 }),
      fc.record({ gte: fc.integer({ min: -1, max: 12 }) }),
      fc.record({ lt: fc.integer({ min: -1, max: 12 }), not: fc.constantFrom<(number | null)[]>([null], [2, 3], []) }),
      fc.record({ like: fc.constantFrom('%', 'model_%', 'note%', '1_') }),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('model', 'seed', 'score', 'note'), condition, async (column, value) => {
        await both({ [column]: value });
      }),
      { numRuns: 40 },
    );
  });

  it('refuses a column that no file has, naming the columns there are', async () => {
    for (const path of [jsonl, parquet])
      await expect(readMetas(sourceOf(path), mapping, collect({ where: { modle: 'x' } }))).rejects.toThrow(UserError);
    await expect(readMetas(sourceOf(parquet), mapping, collect({ where: { modle: 'x' } }))).rejects.toThrow(
      /dataset\.where\.modle: expected a column of episodes\.parquet.*model/,
    );
  });

  it('says that nothing passed, where nothing did', async () => {
    await expect(readMetas(sourceOf(parquet), mapping, collect({ where: { seed: 99 } }))).rejects.toThrow(
      /got 0 rows that pass where/,
    );
  });
});
