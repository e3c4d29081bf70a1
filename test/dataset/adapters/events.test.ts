import { describe, expect, it } from 'vitest';
import { ADAPTERS } from '../../../src/dataset/adapters/table.ts';
import type { Mapping } from '../../../src/config/mapping-fields.ts';
import type { Turn } from '../../../src/types.ts';
import { capeMapping, eventsOf, mappingWith, type Row } from '../fixtures.ts';

const cape = await capeMapping();
const read = (events: readonly unknown[], mapping: Mapping = cape, warnings: string[] = []) =>
  ADAPTERS.events(JSON.stringify(events), 'events_json', mapping, (kind) => warnings.push(kind));
const first = (event: Row, mapping?: Mapping): Turn => read([{ reasoning: 'r', ...event }], mapping).turns[0];

describe('events', () => {
  it('keep content null and "" apart, and messages between turns', () => {
    const { turns, after } = read([
      { content: null, user_before: ['Hi', { role: 'system', content: 'Reminder' }] },
      { content: '', user_after: ['Bye'] },
    ]);
    expect(turns.map((turn) => turn.content)).toEqual([null, '']);
    expect(turns[0].before).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'Reminder' },
    ]);
    expect(after).toEqual([{ role: 'user', content: 'Bye' }]);
  });

  it('hold one call, several calls, or lists of them side by side', () => {
    const results = [
      { call: 0, text: 'A' },
      { call: 1, text: 'B' },
    ];
    const several = first({
      calls: [
        { name: 'a', arguments: { x: 1 }, tool_result: 'A' },
        { name: 'b', arguments: {}, tool_result: 'B', unsafe_action: true },
      ],
      unsafe_action: true,
    });
    expect(several.calls.map((call) => call.name)).toEqual(['a', 'b']);
    expect(several).toMatchObject({ results, unsafe: true, unsafeCall: 1 });
    const side = first({ tool_name: ['a', 'b'], tool_args: [{ x: 1 }, {}], tool_result: ['A', 'B'] });
    expect(side).toMatchObject({ results, unsafe: false });
    expect(side.calls).toEqual(several.calls);
  });

  it('keep number lexemes of arguments, and results that are no text as Python dumps them', () => {
    const text = '[{"tool_name":"a","tool_args":{"n":1.0,"10":1e-07},"tool_result":{"é":[1.0,null,true]}}]';
    const { turns } = ADAPTERS.events(text, 'events_json', cape, () => undefined);
    const args = turns[0].calls[0].arguments as ReadonlyMap<string, { readonly lexeme: string }>;
    expect(Array.from(args, ([key, value]) => [key, value.lexeme])).toEqual([
      ['n', '1.0'],
      ['10', '1e-07'],
    ]);
    expect(turns[0].results[0].text).toBe('{"\\u00e9": [1.0, null, true]}');
  });

  it('hold token positions as a dictionary, a flat list, stretches, or keys of their own', async () => {
    expect({ ...first({ positions: { prompt_end: 3, act: 9, span: [4, 6] } }).recordedPositions }).toEqual({
      prompt_end: 3,
      act: 9,
      'span.0': 4,
      'span.1': 6,
    });
    expect({ ...first({ token_positions: [3, 4, 5, 6] }).recordedPositions }).toEqual({
      prompt_end: 3,
      reasoning_end: 4,
      action_start: 5,
      action_end: 6,
    });
    const flat = await mappingWith('positions: {keys: {pre_action: act_tok}}');
    expect({ ...first({ act_tok: 12 }, flat).recordedPositions }).toEqual({ pre_action: 12 });
  });

  it('are refused for positions that fall, are outside, or below the first', async () => {
    expect(() => first({ positions: { action_end: 4, prompt_end: 9 } })).toThrow(/action_end = 4 after prompt_end = 9/);
    expect(() => first({ positions: { prompt_end: 99999999 } })).toThrow(/inside the transcript/);
    expect(() => first({ positions: { prompt_end: 1.5 } })).toThrow(/whole numbers >= 0/);
    const fromOne = await mappingWith('positions: {from: 1}');
    expect(() => first({ positions: { prompt_end: 0 } }, fromOne)).toThrow(/whole numbers >= 1/);
    const mixed = await mappingWith('positions: {from: 1, perModel: [{match: other, origin: generation, from: 0}]}');
    expect(first({ positions: { prompt_end: 0 } }, mixed).recordedPositions['prompt_end']).toBe(0);
  });

  it('take names that are data as data', () => {
    const text =
      '[{"reasoning":"r","positions":{"__proto__":1,"constructor":2},"tool_name":"a","tool_args":{"__proto__":{"polluted":1}}}]';
    const { turns } = ADAPTERS.events(text, 'events_json', cape, () => undefined);
    expect(Object.keys(turns[0].recordedPositions).sort()).toEqual(['__proto__', 'constructor']);
    expect([...(turns[0].calls[0].arguments as ReadonlyMap<string, unknown>).keys()]).toEqual(['__proto__']);
    expect(({} as Row)['polluted']).toBeUndefined();
  });

  it('know logged ids, counts and raw text', () => {
    const turn = first({
      prompt_ids: [1, 2],
      completion_ids: [3],
      completion_text: '<x>',
      prompt_tokens: 2,
      completion_tokens: 1,
    });
    expect(turn).toMatchObject({
      promptIds: [1, 2],
      generatedIds: [3],
      completionText: '<x>',
      promptTokens: 2,
      completionTokens: 1,
    });
  });

  it('mark unsafe turns only where they have the key', () => {
    expect(read(eventsOf({ unsafe: 1 })).marksUnsafe).toBe(true);
    expect(read(eventsOf({ unsafe: null })).marksUnsafe).toBe(true);
    expect(read([{ reasoning: 'r', tool_name: 'a' }]).marksUnsafe).toBe(false);
  });

  it('are numbered without a gap', () => {
    expect(() => read([{ step: 0 }, { step: 2 }])).toThrow(/expected step 1, got step 2 as event 1/);
  });
});
