import { sha256 } from '../lib/content-hash.ts';
import type { EpisodeMeta } from '../types.ts';

/**
 * Groups are the connected components of shared scenario, pair and near-duplicate text (EVALUATION.md 6): nothing that
 * shares one of them may stand on both sides of a split. A missing id joins nothing.
 * @returns for each episode the index of its group, 0 … groups − 1, in order of first appearance
 */
export function assignGroups(metas: readonly EpisodeMeta[]): Int32Array {
  const parent = metas.map((_, index) => index);
  const root = (index: number): number => {
    let at = index;
    while (parent[at] !== at) {
      parent[at] = parent[parent[at]]!;
      at = parent[at]!;
    }
    return at;
  };
  const first = new Map<string, number>();
  for (const [index, meta] of metas.entries()) {
    for (const [kind, id] of [
      ['scenario', meta.scenarioId],
      ['pair', meta.pairId],
      ['text', meta.duplicateKey],
    ] as const) {
      if (id === null || id === '') continue;
      const key = `${kind}\u0000${id}`;
      const other = first.get(key);
      if (other === undefined) first.set(key, index);
      else parent[root(index)] = root(other);
    }
  }
  const numbers = new Map<number, number>();
  return Int32Array.from(metas, (_, index) => {
    const at = root(index);
    if (!numbers.has(at)) numbers.set(at, numbers.size);
    return numbers.get(at)!;
  });
}

/**
 * A name of each group that does not depend on the order of the episodes: the smallest id that holds it together. In a
 * part of a data set a group may lack the episode that names it; scenarios of a pair share the pair, so it rarely does.
 */
export function groupNames(metas: readonly EpisodeMeta[], groups: Int32Array): string[] {
  const names: string[] = [];
  for (const [index, meta] of metas.entries()) {
    const name = meta.pairId ?? meta.scenarioId ?? meta.duplicateKey ?? meta.key;
    const group = groups[index];
    const known = names[group];
    if (known === undefined || name < known) names[group] = name;
  }
  return names;
}

/** 48 bits of a hash are a whole number that doubles hold exactly. */
const HEX_DIGITS = 12;

/**
 * The fold of each episode: a seeded hash of its group's name and nothing else, so that a group has the same fold in
 * every run, condition, world and model (EVALUATION.md 6), whatever else was read with it. Folds of few groups differ
 * in size for that, and one may be empty.
 * @returns per episode, 0 … folds − 1
 */
export function assignFolds(names: readonly string[], groups: Int32Array, seed: number, folds: number): Int32Array {
  const foldOf = names.map((name) => {
    const hash = Number.parseInt(sha256(`${seed}\u0000${name}`).slice(0, HEX_DIGITS), 16);
    return Math.floor((hash / 16 ** HEX_DIGITS) * folds);
  });
  return Int32Array.from(groups, (group) => foldOf[group]);
}
