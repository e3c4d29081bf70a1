import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assignFolds, assignGroups, groupNames } from '../../src/dataset/split.ts';
import type { EpisodeMeta } from '../../src/types.ts';

type Ids = Pick<EpisodeMeta, 'scenarioId' | 'pairId' | 'duplicateKey' | 'key'>;
const metasOf = (ids: readonly Ids[]): EpisodeMeta[] => ids.map((item) => item as EpisodeMeta);

const id = fc.option(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { nil: null });
const episodes = fc.array(fc.record({ scenarioId: id, pairId: id, duplicateKey: id, key: fc.uuid() }), {
  minLength: 1,
  maxLength: 30,
});

/** Groups as sets of keys, without their numbers. */
const partition = (metas: readonly EpisodeMeta[]): string[] => {
  const sets = new Map<number, string[]>();
  assignGroups(metas).forEach((group, index) => sets.set(group, [...(sets.get(group) ?? []), metas[index].key]));
  return [...sets.values()].map((keys) => keys.sort().join()).sort();
};

describe('assignGroups', () => {
  it('joins episodes that share a scenario, a pair or near-duplicate text, through any chain', () => {
    const metas = metasOf([
      { key: '1', scenarioId: 's1', pairId: 'p1', duplicateKey: null },
      { key: '2', scenarioId: 's2', pairId: 'p1', duplicateKey: 't' },
      { key: '3', scenarioId: 's3', pairId: null, duplicateKey: 't' },
      { key: '4', scenarioId: 's4', pairId: 'p4', duplicateKey: null },
    ]);
    expect([...assignGroups(metas)]).toEqual([0, 0, 0, 1]);
  });

  it('joins nothing by a missing id, nor a scenario with a pair of the same name', () => {
    const metas = metasOf([
      { key: '1', scenarioId: null, pairId: null, duplicateKey: null },
      { key: '2', scenarioId: null, pairId: '', duplicateKey: null },
      { key: '3', scenarioId: 'x', pairId: null, duplicateKey: null },
      { key: '4', scenarioId: null, pairId: 'x', duplicateKey: null },
    ]);
    expect(new Set(assignGroups(metas)).size).toBe(4);
  });

  it('never leaves a shared id in two groups, and gives the same groups in any order', () => {
    fc.assert(
      fc.property(episodes, fc.integer(), (ids, seed) => {
        const metas = metasOf(ids);
        const groups = assignGroups(metas);
        for (const field of ['scenarioId', 'pairId', 'duplicateKey'] as const)
          for (const [i, a] of metas.entries())
            for (const [j, b] of metas.entries())
              if (a[field] !== null && a[field] === b[field]) expect(groups[i]).toBe(groups[j]);
        const turned = [
          ...metas.slice(Math.abs(seed) % metas.length),
          ...metas.slice(0, Math.abs(seed) % metas.length),
        ];
        expect(partition(turned)).toEqual(partition(metas));
      }),
    );
  });
});

describe('assignFolds', () => {
  const foldByKey = (metas: readonly EpisodeMeta[], seed: number): Map<string, number> => {
    const groups = assignGroups(metas);
    const folds = assignFolds(groupNames(metas, groups), groups, seed, 5);
    return new Map(metas.map((meta, index) => [meta.key, folds[index]]));
  };
  const many = metasOf(
    Array.from({ length: 600 }, (_, index) => ({
      key: `e${index}`,
      scenarioId: `s${index % 300}`,
      pairId: `p${index % 150}`,
      duplicateKey: null,
    })),
  );

  it('gives an episode the same fold whichever others are read with it', () => {
    const all = foldByKey(many, 7);
    for (const part of [many.filter((_, index) => index % 3 === 0), many.slice(100, 400), [...many].reverse()])
      for (const [key, fold] of foldByKey(part, 7)) expect(fold).toBe(all.get(key));
  });

  it('keeps a group in one fold', () => {
    const folds = foldByKey(many, 3);
    for (const meta of many) expect(folds.get(meta.key)).toBe(folds.get(`e${Number(meta.key.slice(1)) % 150}`));
  });

  it('fills all folds about equally and depends on the seed', () => {
    const counts = [0, 0, 0, 0, 0];
    for (const fold of foldByKey(many, 1).values()) counts[fold] += 1;
    // 150 groups of 4: each fold expects 120 ± 20 episodes; six standard deviations are never left by a fair hash.
    for (const count of counts) expect(Math.abs(count - 120)).toBeLessThan(6 * 4 * Math.sqrt(150 * 0.2 * 0.8));
    expect([...foldByKey(many, 1).values()]).not.toEqual([...foldByKey(many, 2).values()]);
  });
});
