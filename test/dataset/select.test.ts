import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { selectEpisodes } from '../../src/dataset/select.ts';
import type { EpisodeMeta } from '../../src/types.ts';

const meta = (key: number, turns: number, unsafe: boolean, scenario: string, ready = true): EpisodeMeta =>
  ({
    key: `k${key}`,
    turnCount: turns,
    unsafe: unsafe ? 2 : null,
    scenarioId: scenario,
    reveal: ready ? 0 : null,
    firstCritical: ready ? 2 : null,
  }) as EpisodeMeta;
const select = { shortest: 2, requires: ['reveal', 'critical_after_reveal'], maxPerScenario: 1 } as const;

describe('selectEpisodes', () => {
  it('keeps the shortest of each class that have what is needed, at most so many of a scenario', () => {
    const metas = [
      meta(0, 9, true, 'a'),
      meta(1, 3, true, 'b', false),
      meta(2, 4, true, 'c'),
      meta(3, 5, true, 'c'),
      meta(4, 6, true, 'd'),
      meta(5, 2, false, 'a'),
    ];
    expect(selectEpisodes(metas, select).map(({ key }) => key)).toEqual(['k2', 'k4', 'k5']);
    expect(selectEpisodes(metas, null)).toEqual(metas);
  });

  it('keeps the same episodes in any order of the file', () => {
    const episodes = fc.array(fc.tuple(fc.nat(4), fc.boolean(), fc.constantFrom('a', 'b', 'c')), { maxLength: 20 });
    fc.assert(
      fc.property(episodes, (list) => {
        const metas = list.map(([turns, unsafe, scenario], index) => meta(index, turns, unsafe, scenario));
        const keys = (order: readonly EpisodeMeta[]): string[] =>
          selectEpisodes(order, select)
            .map(({ key }) => key)
            .sort();
        expect(keys([...metas].reverse())).toEqual(keys(metas));
      }),
    );
  });
});
