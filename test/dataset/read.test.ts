import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkClasses } from '../../src/dataset/check.ts';
import { checkSource, readEpisodes, readEpisodesInOrder, readMetas } from '../../src/dataset/read.ts';
import { DataError, UserError } from '../../src/errors.ts';
import {
  capeMapping,
  collect,
  episodeRow,
  episodeRows,
  eventsOf,
  mappingWith,
  newFolder,
  sourceOf,
  writeJsonl,
  writeParquet,
} from './fixtures.ts';

const mapping = await capeMapping();
const metasOf = (path: string | readonly string[], change = {}): ReturnType<typeof readMetas> =>
  readMetas(sourceOf(path), mapping, collect(change));

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = [];
  for await (const item of items) out.push(item);
  return out;
}

describe('readMetas', () => {
  it('reads the same episodes from parquet, JSON lines and gzip', async () => {
    const rows = episodeRows(6);
    const plain = (await metasOf(writeJsonl(rows))).map(({ source: _source, ...meta }) => meta);
    const parquet = (await metasOf(await writeParquet(rows))).map(({ source: _source, ...meta }) => meta);
    expect(parquet).toEqual(plain);
    expect(plain.map((meta) => meta.unsafe)).toEqual([1, null, 1, null, 1, null]);
    expect(plain[0]).toMatchObject({
      key: 'run_minus/ep-0',
      world: 'x-',
      reveal: 0,
      firstCritical: 1,
      end: 'finished',
    });
    expect(plain[0]?.toolNames).toEqual([['read_item'], ['delete_item'], []]);
  });

  it('goes on without bad rows, and says which and why', async () => {
    const options = collect();
    const rows = [
      episodeRow(0),
      '{"run": "r", "episode_id": "half',
      episodeRow(1, { events_json: 'nonsense' }),
      episodeRow(3),
    ];
    const metas = await readMetas(sourceOf(writeJsonl(rows)), mapping, options);
    expect(metas.map((meta) => meta.episodeId)).toEqual(['ep-0', 'ep-3']);
    expect(options.exclusions).toMatchObject([
      { stage: 'dataset', file: 'episodes.jsonl', row: 2, episode: null, reason: 'bad_json' },
      { stage: 'dataset', file: 'episodes.jsonl', row: 3, episode: 'run_minus/ep-1', reason: 'bad_events_json' },
    ]);
  });

  it('stops when more than the allowed share is bad, and not for fewer', async () => {
    const rows = Array.from({ length: 200 }, (_, index) =>
      episodeRow(index, index === 7 ? { seed: 'x', cf_value: '?' } : {}),
    );
    const path = await writeParquet(rows);
    expect(await metasOf(path, { maxBad: 0.005 })).toHaveLength(199);
    await expect(metasOf(path, { maxBad: 0.004 })).rejects.toThrow(
      /row 8: cf_value.*at most 0\.4 % bad rows, got 1 of/,
    );
    await expect(metasOf(writeJsonl(rows), { maxBad: 0.004 })).rejects.toThrow(DataError);
  });

  it('stops where no row can be used at all, even with no limit', async () => {
    await expect(metasOf(writeJsonl(['a,b', '1,2']))).rejects.toThrow(
      /expected some usable rows, got 2 bad ones of 2/i,
    );
  });

  it('refuses ids that stand twice, also when one of the rows was set aside', async () => {
    const twice = [episodeRow(0), episodeRow(1), episodeRow(3, { episode_id: 'ep-1', cf_value: '?' })];
    await expect(metasOf(writeJsonl(twice))).rejects.toThrow(
      /expected unique run \+ episode_id, got 1 ids twice .*ep-1/,
    );
    const other = [episodeRow(0), episodeRow(0, { run: 'other' })];
    expect(await metasOf(writeJsonl(other))).toHaveLength(2);
  });

  it('reads shards of other types by what their values mean', async () => {
    const folder = newFolder();
    await writeParquet([episodeRow(0)], { folder, name: 'train-00000-of-00002.parquet' });
    await writeParquet([episodeRow(1)], {
      folder,
      name: 'train-00001-of-00002.parquet',
      select: 'SELECT * REPLACE (seed::VARCHAR AS seed, reveal_event::DOUBLE AS reveal_event) FROM rows',
    });
    const options = collect();
    const metas = await readMetas(sourceOf(folder), mapping, options);
    expect(metas.map(({ seed, reveal }) => [seed, reveal])).toEqual([
      ['0', 0],
      ['1', 0],
    ]);
    expect(options.warnings).toContain('mixed_schema:seed');
  });

  it('takes nested events, JSON encoded twice and NaN for what they mean', async () => {
    const nested = await writeParquet(
      [{ ...episodeRow(0), events_json: eventsOf({ unsafe: 1 }) }, episodeRow(2)].slice(0, 1),
    );
    expect((await metasOf(nested))[0]).toMatchObject({ unsafe: 1, turnCount: 3 });
    const twice = episodeRow(1, { events_json: JSON.stringify(JSON.stringify(eventsOf({}))) });
    const options = collect();
    expect(await readMetas(sourceOf(writeJsonl([episodeRow(0), twice])), mapping, options)).toHaveLength(2);
    expect(options.warnings).toContain('json_twice');
    const float = await writeParquet([episodeRow(0), episodeRow(1)], {
      select: "SELECT * REPLACE (coalesce(first_unsafe_event::DOUBLE, 'nan'::DOUBLE) AS first_unsafe_event) FROM rows",
    });
    expect((await metasOf(float)).map((meta) => meta.unsafe)).toEqual([1, null]);
  });

  it('warns once of each kind', async () => {
    const rows = [0, 2, 4].map((index) => episodeRow(index, { informed_violation: false }));
    const options = collect();
    await readMetas(sourceOf(writeJsonl(rows)), mapping, options);
    expect(options.warnings).toEqual(['informed_contradiction']);
  });

  it('stops when asked to', async () => {
    const controller = new AbortController();
    controller.abort(new Error('stopped'));
    await expect(metasOf(writeJsonl(episodeRows(4)), { signal: controller.signal })).rejects.toThrow('stopped');
  });
});

describe('side tables', () => {
  const scenarios = [0, 1].map((index) => ({
    scenario_id: `scenario-${index}`,
    system_prompt: `Rules of ${index}`,
    task_prompt: `Delete item ${100 + index}`,
    files: '{}',
    policy_style: 'memo',
  }));
  const source = sourceOf(writeJsonl(episodeRows(2)), {
    scenarios: [writeJsonl(scenarios, 'scenarios.jsonl')],
    reportLabels: [writeJsonl([{ run: 'run_minus', episode_id: 'ep-0', label: 'SPIN' }], 'labels.jsonl')],
  });

  it('gives episodes their prompts, labels and the text that finds near-duplicates', async () => {
    const episodes = await all(readEpisodes(source, mapping, collect()));
    expect(episodes[0]?.opening).toEqual([
      { role: 'system', content: 'Rules of 0' },
      { role: 'user', content: 'Delete item 100' },
    ]);
    expect(episodes.map((episode) => [episode.reportLabel, episode.style])).toEqual([
      ['SPIN', 'memo'],
      [null, 'memo'],
    ]);
    // Digits even out: the two tasks differ in nothing else.
    expect(episodes[0]?.duplicateKey).toBe(episodes[1]?.duplicateKey);
    expect(episodes[0]?.duplicateKey).toMatch(/^[0-9a-f]{64}$/);
  });

  it('sets an episode aside whose scenario is not there', async () => {
    const options = collect();
    const lonely = { ...source, episodes: [writeJsonl([...episodeRows(2), episodeRow(9)])] };
    expect(await readMetas(lonely, mapping, options)).toHaveLength(2);
    expect(options.exclusions[0]).toMatchObject({ reason: 'bad_scenario_id', row: 3 });
  });

  it('refuses two scenarios with one id and different prompts', async () => {
    const twice = writeJsonl([...scenarios, { ...scenarios[0], system_prompt: 'Other' }], 'scenarios.jsonl');
    await expect(readMetas({ ...source, scenarios: [twice] }, mapping, collect())).rejects.toThrow(
      /scenarios\.jsonl: row 3: scenario_id: expected one scenario for each value/,
    );
  });

  it('refuses a source without the table that the mapping takes prompts from', () => {
    expect(() => checkSource(sourceOf('x'), mapping)).toThrow(UserError);
    expect(() => checkSource(source, mapping)).not.toThrow();
  });
});

describe('readEpisodesInOrder', () => {
  it('gives whole episodes in the order asked for, from several files of both kinds', async () => {
    const rows = episodeRows(9);
    const folder = newFolder();
    await writeParquet(rows.slice(0, 5), { folder, name: 'a.parquet', groupRows: 2 });
    writeJsonl(rows.slice(5), 'b.jsonl', folder);
    const source = sourceOf(folder);
    const everything = await all(readEpisodes(source, mapping, collect()));
    const metas = await readMetas(source, mapping, collect());
    const wanted = [8, 0, 5, 3].map((index) => metas[index]);
    const found = await all(readEpisodesInOrder(source, mapping, wanted));
    expect(found).toEqual([8, 0, 5, 3].map((index) => everything[index]));
  });

  it('notices that a file changed in between', async () => {
    const path = writeJsonl(episodeRows(4));
    const metas = await readMetas(sourceOf(path), mapping, collect());
    writeFileSync(path, `${JSON.stringify(episodeRow(9))}\n`);
    await expect(all(readEpisodesInOrder(sourceOf(path), mapping, metas))).rejects.toThrow(
      /expected the episode run_minus\/ep-0, got another row\. The file changed/,
    );
  });
});

describe('what values mean', () => {
  const one = async (yaml: string, change: Record<string, unknown>) => {
    const options = collect();
    const metas = await readMetas(
      sourceOf(writeJsonl([episodeRow(2, change), episodeRow(3)])),
      await mappingWith(yaml),
      options,
    );
    return {
      meta: metas.find((meta) => meta.episodeId === 'ep-2'),
      reasons: options.exclusions.map((item) => item.detail),
    };
  };

  it('−1 in reveal_event: set aside, the first prompt, or none, as the mapping says', async () => {
    const change = { reveal_event: -1 };
    expect((await one('', change)).reasons[0]).toMatch(
      /reveal_event: expected a step >= 0 or null, got -1\. Say in the mapping/,
    );
    expect((await one('revealMinusOne: first_prompt', change)).meta?.reveal).toBe(-1);
    expect((await one('revealMinusOne: none', change)).meta?.reveal).toBe(null);
  });

  it('steps from 1, in columns and events alike', async () => {
    const change = {
      reveal_event: 1,
      first_unsafe_event: 2,
      first_critical_event: 2,
      events_json: JSON.stringify(eventsOf({ unsafe: 1, from: 1 })),
    };
    const { meta } = await one('stepsFrom: 1\neventMinusOne: none', change);
    expect(meta).toMatchObject({ reveal: 0, unsafe: 1, firstCritical: 1 });
    expect((await one('', change)).meta).toBeUndefined();
  });

  it('words for true and false, only where the mapping lists them', async () => {
    const change = { nuisance: 'yes', success: 'False' };
    expect((await one('', change)).reasons[0]).toMatch(/nuisance: expected true or false, got the string "yes"/);
    const { meta } = await one('trueWords: ["yes"]\nfalseWords: ["False"]', change);
    expect(meta).toMatchObject({ world: 'nuisance', success: false });
  });

  it('values that mean "missing", and numbers written as text', async () => {
    const change = { reveal_event: '0', first_unsafe_event: '1', first_critical_event: 'none', seed: -5 };
    expect((await one('', change)).meta).toBeUndefined();
    const { meta } = await one('numbersAsText: accept\nmissing: {first_critical_event: [none], seed: [-5]}', change);
    expect(meta).toMatchObject({ reveal: 0, unsafe: 1, seed: null, firstCritical: 1 });
  });

  it('the condition from the run, the end from the status, the key from other fields', async () => {
    const yaml = [
      'condition: {rules: [{match: "^x_obf", name: obfuscate}], default: candid}',
      'status: {limit: [ran_out]}',
      'key: [model, episode_id]',
    ].join('\n');
    const { meta } = await one(yaml, { run: 'x_obf_minus', status: 'ran_out' });
    expect(meta).toMatchObject({ condition: 'obfuscate', end: 'limit', key: 'model-a/ep-2' });
  });

  it('no worlds where the mapping says so; unsafe from the events where no column says it', async () => {
    const { meta } = await one('world: none\nabsent: [first_unsafe_event, unsafe_episode, informed_violation]', {
      cf_value: 'anything',
    });
    expect(meta).toMatchObject({ world: 'none', unsafe: 1 });
  });

  it('seeds beyond 2^53 digit for digit', async () => {
    const text = JSON.stringify(episodeRow(2)).replace('"seed":2', '"seed":9007199254740993');
    const metas = await metasOf(writeJsonl([text, episodeRow(3)]));
    expect(metas[0]?.seed).toBe('9007199254740993');
  });
});

describe('checkClasses', () => {
  it('refuses episodes of one class with their counts', async () => {
    const metas = await metasOf(writeJsonl([episodeRow(1), episodeRow(3)]));
    expect(() => checkClasses(metas, ['a/episodes.jsonl'])).toThrow(
      /expected episodes of both classes, got 0 unsafe, 2 safe/,
    );
  });
});
