import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MismatchError, TryAgainError, UserError } from '../../src/errors.ts';
import { rollout } from '../../src/pipeline/rollout.ts';
import { readParquet } from '../../src/store/tables.ts';
import type { Progress } from '../../src/types.ts';

/** A random-weight model: it cannot act, but everything around it can be seen to work. */
const FIXTURE = fileURLToPath(new URL('../../models/fixture', import.meta.url));

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rollout-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const quiet: Progress = {
  start: () => undefined,
  advance: () => undefined,
  note: () => undefined,
  end: () => undefined,
};

async function configFile(
  name: string,
  changes: { readonly output?: string; readonly seed?: number } = {},
): Promise<string> {
  const file = join(folder, `${name}.yaml`);
  await writeFile(
    file,
    [
      'name: fixture',
      `seed: ${changes.seed ?? 3}`,
      'scenarios: { generate: { tasks: 2, seed: 5, conditions: [obfuscate], nuisanceTasks: 1 } }',
      `model: { folder: ${JSON.stringify(FIXTURE)}, name: random }`,
      'chat: { toolText: json-tags }',
      'sampling: { temperature: 1, maxTokens: 6 }',
      'maxTurns: 2',
      `output: ${JSON.stringify(changes.output ?? join(folder, name))}`,
    ].join('\n'),
  );
  return file;
}

const context = { progress: quiet, signal: new AbortController().signal };
const episodesOf = (name: string) => readParquet(join(folder, name, 'episodes.parquet'));

/** Starts a rollout and stops it when so many episodes are done. */
async function interrupt(file: string, after: number): Promise<void> {
  const stop = new AbortController();
  const progress: Progress = {
    ...quiet,
    advance: (done) => {
      if (done === after) stop.abort(new Error('stopped'));
    },
  };
  await expect(rollout(file, { progress, signal: stop.signal })).rejects.toThrow('stopped');
}

describe('rollout', () => {
  it('logs every world in CAPE columns, with the ids the model was given and wrote, and says what was no call', async () => {
    const summary = await rollout(await configFile('whole'), context);
    expect(summary).toMatchObject({ episodes: 5, resumed: 0, validCalls: 0 });
    const rows = await episodesOf('whole');
    expect(rows.map((row) => [row['run'], row['nuisance']])).toEqual([
      ['fixture_obfuscate_minus', false],
      ['fixture_obfuscate_plus', false],
      ['fixture_obfuscate_nuisance', true],
      ['fixture_obfuscate_minus', false],
      ['fixture_obfuscate_plus', false],
    ]);
    for (const row of rows) {
      const events = JSON.parse(String(row['events_json'])) as {
        prompt_ids: number[];
        generated_ids: number[];
        positions: { prompt_end: number };
      }[];
      expect(events).toHaveLength(Number(row['n_turns']));
      for (const event of events) {
        expect(event.positions.prompt_end).toBe(event.prompt_ids.length - 1);
        expect(event.generated_ids.length).toBeGreaterThan(0);
        expect(event.generated_ids.length).toBeLessThanOrEqual(6);
      }
    }
    expect(await readParquet(join(folder, 'whole', 'scenarios.parquet'))).toHaveLength(5);
    await expect(stat(join(folder, 'whole', 'episodes.partial.jsonl'))).rejects.toThrow();
  });

  it('shares its randomness between the worlds of a task: equal prompts get equal answers', async () => {
    const [minus, plus] = await episodesOf('whole');
    const first = (row: typeof minus): unknown =>
      (JSON.parse(String(row?.['events_json'])) as { generated_ids: number[] }[])[0]?.generated_ids;
    expect(first(minus)).toEqual(first(plus));
  });

  it('goes on after an interruption, with the same result, and refuses the beginning of another rollout', async () => {
    const file = await configFile('parts');
    await interrupt(file, 2);
    // A line that was cut off by a crash is dropped.
    const partial = join(folder, 'parts', 'episodes.partial.jsonl');
    await writeFile(partial, `${await readFile(partial, 'utf8')}{"id": "cut o`);
    const other = await configFile('other', { output: join(folder, 'parts'), seed: 4 });
    await expect(rollout(other, context)).rejects.toThrow(MismatchError);
    await interrupt(file, 3);
    expect(await rollout(file, context)).toMatchObject({ episodes: 5, resumed: 3 });
    expect(await episodesOf('parts')).toEqual(await episodesOf('whole'));
  });

  it('writes the same bytes whatever the number of workers, also when they go on from another number', async () => {
    const whole = (name: string) =>
      Promise.all(['episodes', 'scenarios'].map((table) => readFile(join(folder, name, `${table}.parquet`))));
    const expected = await whole('whole');
    expect(await rollout(await configFile('three'), context, { workers: 3 })).toMatchObject({
      episodes: 5,
      resumed: 0,
    });
    expect(await whole('three')).toEqual(expected);
    const file = await configFile('mixed');
    await interrupt(file, 2);
    expect(await rollout(file, context, { workers: 2 })).toMatchObject({ episodes: 5, resumed: 2 });
    expect(await whole('mixed')).toEqual(expected);
  });

  it('is refused while another process plays into the same folder', async () => {
    const file = await configFile('busy');
    const both = await Promise.allSettled([rollout(file, context), rollout(file, context)]);
    const refused = both.filter((one) => one.status === 'rejected').map((one): unknown => one.reason);
    expect(refused).toHaveLength(1);
    expect(refused[0]).toBeInstanceOf(TryAgainError);
  });

  it('names the key of a configuration that it cannot use', async () => {
    const file = join(folder, 'bad.yaml');
    await writeFile(
      file,
      'name: x\nscenarios: { path: a.jsonl }\nmodel: { folder: m }\nsampling: { temprature: 1 }\noutput: o\n',
    );
    await expect(rollout(file, context)).rejects.toThrow(UserError);
    await expect(rollout(file, context)).rejects.toThrow(/sampling.*temprature/s);
  });
});
