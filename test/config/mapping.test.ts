import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { writeMapping } from '../../src/config/draft-mapping.ts';
import { loadMapping } from '../../src/config/mapping.ts';
import { positionsOf } from '../../src/config/mapping-fields.ts';
import { UserError } from '../../src/errors.ts';
import { mappingWith, newFolder } from '../dataset/fixtures.ts';

const folder = fileURLToPath(new URL('../../mappings', import.meta.url));

describe('loadMapping', () => {
  for (const file of readdirSync(folder))
    it(`reads mappings/${file}`, async () => {
      const mapping = await loadMapping(join(folder, file));
      expect(mapping.name).toBe(file.replace('.yaml', ''));
      expect(mapping.required.every((field) => mapping.columns[field].length > 0)).toBe(true);
    });

  it('fills in what a file leaves out, inside its objects too', async () => {
    const mapping = await mappingWith(
      'positions: {origin: prompt}\nstatus: {limit: [cut]}\ncolumns: {episode_id: [id, uuid]}',
    );
    expect(mapping.positions).toMatchObject({ origin: 'prompt', from: 0, keys: {} });
    expect(mapping.status.finished).toContain('completed');
    expect(mapping.status.limit).toEqual(['cut']);
    expect(mapping.columns.episode_id).toEqual(['id', 'uuid']);
    expect(mapping.columns.run).toEqual(['run']);
    expect(mapping.events.reasoning[0]).toBe('reasoning');
  });

  it('has no column for an absent field, and does not require it', async () => {
    const mapping = await mappingWith('absent: [first_unsafe_event, run]');
    expect(mapping.columns.run).toEqual([]);
    expect(mapping.required).toEqual(['episode_id', 'events_json']);
  });

  it('says how the positions of a model count', async () => {
    const mapping = await mappingWith(
      'positions: {origin: sequence, perModel: [{match: "^gpt-oss", origin: generation, from: 1}]}',
    );
    expect(positionsOf(mapping, 'gpt-oss-20b')).toMatchObject({ origin: 'generation', from: 1 });
    expect(positionsOf(mapping, 'Qwen3.8-27B')).toMatchObject({ origin: 'sequence', from: 0 });
  });

  it('refuses what it does not know, naming file, line, key and what is near', async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['wrld: none', /mapping\.yaml:2: wrld: expected one of .*got the unknown key "wrld".*Did you mean world/],
      ['events: {tool_nam: x}', /events\.tool_nam.*Did you mean tool_name/],
      ['columns: {seed: [], run: 3}', /columns\.run/],
      ['condition: {rules: [{match: "(", name: x}]}', /a regular expression/],
      ['stepsFrom: 2', /stepsFrom/],
      ['opening: {system: prompt}', /episodes\.COLUMN or scenarios\.COLUMN/],
    ];
    for (const [yaml, message] of cases) {
      const error: unknown = await mappingWith(yaml).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(UserError);
      expect((error as Error).message).toMatch(message);
    }
  });
});

describe('writeMapping', () => {
  it('writes a file that reads back, with its comments', async () => {
    const text = writeMapping({ name: 'x', world: 'none', trueWords: ['yes'] }, { world: 'no twins' }, ['Proposed.']);
    expect(text).toMatch(/^# Proposed\.\n\nname: x\n# no twins\nworld: none\n/);
    const path = join(newFolder(), 'mapping.yaml');
    writeFileSync(path, text);
    expect(await loadMapping(path)).toMatchObject({ world: 'none', trueWords: ['yes'] });
  });
});
