import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadMapping } from '../../src/config/mapping.ts';
import { readMetas } from '../../src/dataset/read.ts';
import { inspectPaths } from '../../src/pipeline/inspect.ts';
import { inspectionText } from '../../src/pipeline/inspect-text.ts';
import {
  collect,
  episodeRow,
  episodeRows,
  eventsOf,
  mappingPath,
  newFolder,
  sourceOf,
  writeJsonl,
  writeParquet,
} from '../dataset/fixtures.ts';

const context = {
  clock: { now: () => 0, date: () => new Date(0) },
  progress: { start() {}, advance() {}, note() {}, end() {} },
  signal: new AbortController().signal,
};
const inspect = (paths: readonly string[], more: { mapping?: string; out?: string } = {}) =>
  inspectPaths({ paths, mapping: more.mapping ?? null, out: more.out ?? null }, context);

describe('inspectPaths', () => {
  it('counts rows, classes, runs and models, and says what events hold', async () => {
    const found = await inspect([await writeParquet(episodeRows(8))]);
    expect(found).toMatchObject({ episodes: 8, unsafe: 4 });
    expect(found.counts['model']).toEqual([['model-a', 8, 4]]);
    expect(found.log).toMatchObject({ column: 'events_json', format: 'events', events: 24 });
    const name = found.log.keys.find((item) => item.key === 'tool_name');
    expect(name).toMatchObject({ count: 24, kinds: { text: 16, null: 8 } });
    expect(found.log.tools).toEqual([
      { name: 'read_item', calls: 12 },
      { name: 'delete_item', calls: 4 },
    ]);
  });

  it('finds the tables of a folder by their columns and reads each once', async () => {
    const folder = newFolder();
    await writeParquet(episodeRows(4), { folder, name: 'all-00000-of-00001.parquet' });
    writeJsonl(episodeRows(4), 'all.jsonl', folder);
    writeJsonl([{ scenario_id: 's', system_prompt: 'x', task_prompt: 'y' }], 'worlds.jsonl', folder);
    writeJsonl([{ run: 'r', episode_id: 'ep-0', label: 'SPIN' }], 'judged.jsonl', folder);
    const found = await inspect([folder]);
    expect(found.tables.map(({ name, role, rows }) => [name, role, rows])).toEqual([
      ['all', 'episodes', 4],
      ['judged', 'reportLabels', 1],
      ['worlds', 'scenarios', 1],
    ]);
    expect(found.notes).toEqual([expect.stringMatching(/JSON lines files beside parquet/)]);
  });

  it('proposes a mapping that reads the data: other names, words, steps from 1, no worlds', async () => {
    const rows = Array.from({ length: 6 }, (_, index) => {
      const { episode_id, unsafe_episode, events_json: _events, ...row } = episodeRow(index);
      const unsafe = index % 2 === 0 ? 1 : null;
      const events = eventsOf({ unsafe, from: 1 }).map(({ tool_result, ...event }) => ({
        ...event,
        toolResult: tool_result,
      }));
      return {
        ...row,
        id: episode_id,
        unsafe: unsafe_episode === true ? 'yes' : 'no',
        reveal_event: 1,
        first_unsafe_event: unsafe === null ? -1 : 2,
        first_critical_event: unsafe === null ? -1 : 2,
        status: index === 5 ? 'ran into the token limit' : 'completed',
        events: JSON.stringify(events),
      };
    });
    const path = writeJsonl(rows);
    const out = newFolder();
    const found = await inspect([path], { out });
    const mapping = await loadMapping(join(out, 'mapping.yaml'));
    expect(mapping).toMatchObject({ stepsFrom: 1, eventMinusOne: 'none', world: 'none', trueWords: ['yes'] });
    expect(mapping.columns.episode_id).toEqual(['id']);
    expect(mapping.events.tool_result).toEqual(['toolResult']);
    const metas = await readMetas(sourceOf(path), mapping, collect({ maxBad: 0 }));
    expect(metas.map((meta) => meta.unsafe)).toEqual([1, null, 1, null, 1, null]);
    expect(metas.map((meta) => meta.end)).toEqual([...Array<string>(5).fill('finished'), 'limit']);
    expect(found.proposal.missing.join('\n')).toMatch(/tool schemas: name a file/);
  });

  it('drafts tool schemas from the calls', async () => {
    const out = newFolder();
    const call = (args: object) => JSON.stringify([{ reasoning: 'r', tool_name: 'move', tool_args: args }]);
    const change = { first_unsafe_event: null, unsafe_episode: false, first_critical_event: null };
    await inspect(
      [
        writeJsonl([
          episodeRow(1, { ...change, events_json: call({ to: 'a', count: 1 }) }),
          episodeRow(3, { ...change, events_json: call({ to: 'b', count: 1.5, force: true }) }),
        ]),
      ],
      { out },
    );
    expect(JSON.parse(readFileSync(join(out, 'tools.json'), 'utf8'))).toEqual([
      {
        type: 'function',
        function: {
          name: 'move',
          description: '',
          parameters: {
            type: 'object',
            properties: { to: { type: 'string' }, count: { type: 'number' }, force: { type: 'boolean' } },
            required: ['to', 'count'],
          },
        },
      },
    ]);
  });

  it('recognises message lists and proposes their format', async () => {
    const messages = [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: null, tool_calls: [{ id: '1', function: { name: 'a', arguments: '{"x":1}' } }] },
      { role: 'tool', tool_call_id: '1', content: 'ok' },
    ];
    const path = writeJsonl([
      { episode_id: 'a', messages, first_unsafe_event: 0 },
      { episode_id: 'b', messages: JSON.stringify(messages), first_unsafe_event: null },
    ]);
    const out = newFolder();
    const found = await inspect([path], { out });
    expect(found.log).toMatchObject({ format: 'openai-chat', tools: [{ name: 'a', calls: 2 }] });
    const metas = await readMetas(sourceOf(path), await loadMapping(join(out, 'mapping.yaml')), collect({ maxBad: 0 }));
    expect(metas.map(({ key, unsafe, toolNames }) => [key, unsafe, toolNames])).toEqual([
      ['a', 0, [['a']]],
      ['b', null, [['a']]],
    ]);
  });

  it('tries a mapping and says what it sets aside', async () => {
    const path = writeJsonl([...episodeRows(4), episodeRow(5, { cf_value: 'maybe' })]);
    const { trial } = await inspect([path], { mapping: mappingPath('cape-bench') });
    expect(trial).toMatchObject({
      episodes: 4,
      setAside: 1,
      reasons: [{ reason: 'bad_cf_value', count: 1, first: expect.stringMatching(/row 5: cf_value/) as string }],
    });
  });

  it('shows unreadable logs and lines, and what the data hold only in quotes', async () => {
    const rows = [
      ...episodeRows(2),
      episodeRow(3, { events_json: '[{"a": NaN}]' }),
      episodeRow(5, { events_json: '{' }),
      '{broken',
      episodeRow(7, { model: 'evil\u001b[2Jname' }),
    ];
    const found = await inspect([writeJsonl(rows)]);
    expect(found.tables[0]).toMatchObject({ rows: 6, badRows: 1 });
    expect(found.log.unreadable.map((item) => item.reason)).toEqual([expect.stringMatching(/^NaN/), 'not JSON']);
    const text = inspectionText(found).join('\n');
    expect(text).toContain('"evil\\u001b[2Jname"');
    // oxlint-disable-next-line no-control-regex -- escape characters of the data must not reach a terminal
    expect(text).not.toMatch(/\u001b/);
  });

  it('names what is no table at all', async () => {
    const path = join(newFolder(), 'page.parquet');
    writeFileSync(path, '<html>');
    await expect(inspect([path])).rejects.toThrow(/expected a parquet file, got an HTML page/);
  });
});
