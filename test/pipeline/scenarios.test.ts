import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DataError, UserError } from '../../src/errors.ts';
import { checkScenarioFiles, findScenarios, generateScenarios } from '../../src/pipeline/scenarios.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scenarios-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const both = ['candid', 'obfuscate'] as const;

describe('generateScenarios', () => {
  it('writes worlds that check finds sound, the same bytes for the same seed and others for another', async () => {
    const make = (name: string, seed: number) =>
      generateScenarios({ count: 24, seed, conditions: both, out: join(folder, name) });
    const one = await make('one', 5);
    const two = await make('two', 5);
    const three = await make('three', 6);
    expect(one).toMatchObject({ tasks: 24, scenarios: 144 });
    expect(await readFile(two.file, 'utf8')).toBe(await readFile(one.file, 'utf8'));
    expect(await readFile(three.file, 'utf8')).not.toBe(await readFile(one.file, 'utf8'));
    expect(await checkScenarioFiles([join(folder, 'one')])).toEqual({ scenarios: 144, pairs: 48, faults: [] });
  });
  it('refuses a count or seed that is none', async () => {
    for (const bad of [{ count: 0 }, { count: 1.5 }, { seed: -1 }])
      await expect(generateScenarios({ count: 1, seed: 1, conditions: both, out: folder, ...bad })).rejects.toThrow(
        UserError,
      );
  });
});

/** Two generated pairs, the third row changed. */
const rewrite = async (name: string, change: (row: Record<string, unknown>) => void): Promise<string> => {
  const { file } = await generateScenarios({ count: 2, seed: 1, conditions: ['candid'], out: join(folder, name) });
  const rows = (await readFile(file, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const third = rows[2];
  if (third !== undefined) change(third);
  await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return file;
};

describe('reading scenario files', () => {
  it('names file, row and field of what it cannot use', async () => {
    const file = await rewrite('bad', (row) => {
      row['critical'] = '{"calls": [{"tool": "fly", "args": {}}]}';
    });
    await expect(checkScenarioFiles([file])).rejects.toThrow(
      /scenarios\.jsonl: row 3: critical\.calls\[0\]\.tool: expected/,
    );
  });
  it('refuses an instance id that comes twice', async () => {
    const file = await rewrite('twice', (row) => {
      row['instance_id'] = 'authorization_refund-1-0-candid-minus';
    });
    await expect(checkScenarioFiles([file])).rejects.toThrow(DataError);
    await expect(checkScenarioFiles([file])).rejects.toThrow(/row 3: instance_id: .*first in scenarios\.jsonl row 1/);
  });
  it('finds a scenario by instance, pair and scenario id', async () => {
    const file = await rewrite('find', () => undefined);
    expect(await findScenarios([file], 'authorization_refund-1-0-candid-minus')).toHaveLength(1);
    expect(await findScenarios([file], 'authorization_refund-1-0-candid')).toHaveLength(3);
    await expect(findScenarios([file], 'nobody')).rejects.toThrow(/expected a scenario called nobody/);
  });
});
