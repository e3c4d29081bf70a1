import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { permuteStops } from '../../src/intervention/random-stops.ts';
import { type Stop, stopAt } from '../../src/intervention/simulate.ts';
import { seededRng } from '../../src/lib/rng.ts';
import { positions, watched } from './watched.ts';

test('dealing stops at random keeps their timing, stays inside templates and never adds one', () => {
  const stopArbitrary = fc.option(fc.record({ turn: fc.integer({ min: 0, max: 6 }) }));
  fc.assert(
    fc.property(
      fc.array(fc.tuple(stopArbitrary, fc.integer({ min: 0, max: 2 }), fc.integer({ min: 1, max: 7 })), {
        minLength: 1,
      }),
      fc.integer(),
      (rows, seed) => {
        const episodes = rows.map(([, template, turnCount], i) =>
          watched(`e${i}`, [], null, { template: `t${template}`, turnCount }),
        );
        const stops = rows.map(([stop]): Stop | null =>
          stop ? { turn: stop.turn, position: 'pre_action', inTime: true } : null,
        );
        const dealt = permuteStops(episodes, stops, positions, seededRng(seed));
        for (const template of ['t0', 't1', 't2']) {
          const turns = (list: readonly (Stop | null)[]) =>
            list
              .flatMap((stop, i) => (episodes[i].meta.template === template && stop ? [stop.turn] : []))
              .sort((a, b) => a - b);
          const given = turns(stops);
          for (const turn of turns(dealt)) expect(given.splice(given.indexOf(turn), 1)).toEqual([turn]);
        }
        dealt.forEach((stop, i) => expect(!stop || stop.turn < episodes[i].meta.turnCount).toBe(true));
      },
    ),
  );
});

test('a dealt stop past the end of its episode is no stop', () => {
  expect(stopAt(watched('a', [], null, { turnCount: 2 }), 2, 'pre_action', positions)).toBe(null);
});
