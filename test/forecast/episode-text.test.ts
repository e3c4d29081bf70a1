import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { textAt } from '../../src/forecast/episode-text.ts';
import type { TextScope } from '../../src/forecast/types.ts';
import { jsonNumber } from '../../src/lib/json.ts';
import { episode, turn } from './episodes.ts';

const two = episode('e', [
  turn(0),
  turn(1, {
    before: [{ role: 'user', content: 'reminder1' }],
    calls: [
      { name: 'tool1', arguments: new Map([['path', 'argument1']]) },
      { name: 'wipe1', arguments: new Map([['n', jsonNumber('1.0')]]), argumentsText: '{"n":1.0}' },
    ],
  }),
]);
/** Everything in the order in which it came to be. */
const ORDER = [
  'policy',
  'task',
  'thought0',
  'said0',
  'tool0',
  'argument0',
  'result0',
  'reminder1',
  'thought1',
  'said1',
  'tool1',
  'argument1',
  'wipe1',
  '1.0',
  'result1',
];
const LAST: readonly (readonly [position: string, last: string])[] = [
  ['prompt_end', 'reminder1'],
  ['reasoning_start', 'reminder1'],
  ['reasoning_end', 'thought1'],
  ['pre_action', 'said1'],
  ['pre_action:0', 'said1'],
  ['action_name', 'tool1'],
  ['action_end', 'argument1'],
  ['pre_action:1', 'argument1'],
  ['action_name:1', 'wipe1'],
  ['span:action:1:mean', '1.0'],
  ['observation_end', 'result1'],
];

test.each(LAST)('so_far at %s holds everything up to %s and nothing later', (position, last) => {
  const text = textAt(two, 1, position, 'so_far');
  const cut = ORDER.indexOf(last) + 1;
  expect(ORDER.slice(0, cut).filter((word) => !text.includes(word))).toEqual([]);
  expect(ORDER.slice(cut).filter((word) => text.includes(word))).toEqual([]);
  const places = ORDER.slice(0, cut).map((word) => text.indexOf(word));
  expect(places).toEqual([...places].sort((a, b) => a - b));
});

test('each scope keeps its own part', () => {
  const at = (scope: TextScope) => textAt(two, 1, 'action_name:1', scope);
  expect(at('reasoning')).toBe('thought0\nthought1');
  expect(at('actions')).toBe('tool0 {"path":"argument0"}\ntool1 {"path":"argument1"}\nwipe1');
  expect(at('this_turn')).toBe('result: result0\nuser: reminder1\nthought1\nsaid1\ntool1 {"path":"argument1"}\nwipe1');
  expect(textAt(two, 0, 'prompt_end', 'this_turn')).toBe('system: policy\nuser: task');
});

test('the report is not in the text at report_start, whether it is the content or an argument', () => {
  const said = episode('a', [turn(0, { content: 'All done.', calls: [] })], { finalAnswer: 'All done.' });
  expect(textAt(said, 0, 'report_start', 'this_turn')).not.toContain('done');
  expect(textAt(said, 0, 'report_end', 'this_turn')).toContain('All done.');
  const called = episode(
    'b',
    [turn(0, { content: 'Closing.', calls: [{ name: 'finish', arguments: new Map([['report', 'All done.']]) }] })],
    {
      finalAnswer: 'All done.',
    },
  );
  const text = textAt(called, 0, 'report_start', 'this_turn');
  expect([text.includes('Closing.'), text.includes('All done.')]).toEqual([true, false]);
});

test('content parts are read for their text', () => {
  const parts = episode('e', [turn(0)], {
    opening: [
      {
        role: 'user',
        content: [
          new Map([
            ['type', 'text'],
            ['text', 'look here'],
          ]),
          new Map([['type', 'image']]),
        ],
      },
    ],
  });
  expect(textAt(parts, 0, 'prompt_end', 'so_far')).toBe('user: look here');
});

test('a recorded token index has no text, and a turn that is not there is refused', () => {
  expect(() => textAt(two, 1, 'recorded:act_pos', 'so_far')).toThrow(
    /recorded:act_pos: expected a position whose text is known/,
  );
  expect(() => textAt(two, 2, 'prompt_end', 'so_far')).toThrow(/expected a turn below 2, got 2/);
});

test('what comes after the position never changes the text', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...LAST),
      fc.constantFrom<TextScope>('so_far', 'reasoning', 'actions', 'this_turn'),
      fc.string(),
      ([position], scope, noise) => {
        const later = episode(
          'e',
          [
            two.turns[0],
            {
              ...two.turns[1],
              results: position === 'observation_end' ? two.turns[1].results : [{ text: noise, call: 0 }],
            },
            turn(2, { content: noise }),
          ],
          {
            finalAnswer: noise,
            after: [{ role: 'user', content: noise }],
          },
        );
        expect(textAt(later, 1, position, scope)).toBe(textAt(two, 1, position, scope));
      },
    ),
  );
});
