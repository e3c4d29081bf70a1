import { basename } from 'node:path';
import type { Mapping } from '../config/mapping-fields.ts';
import { DataError } from '../errors.ts';
import type { EpisodeMeta } from '../types.ts';
import type { Warn } from './adapters/adapter.ts';
import { quote } from './cell.ts';

/** What only the whole of a data set can tell. */

/** @throws DataError (65) naming the first keys that stand twice */
export function checkKeys(metas: readonly Pick<EpisodeMeta, 'key' | 'source'>[], mapping: Mapping): void {
  const seen = new Set<string>();
  const twice = new Map<string, Pick<EpisodeMeta, 'key' | 'source'>>();
  for (const meta of metas) {
    if (seen.has(meta.key)) twice.set(meta.key, meta);
    else seen.add(meta.key);
  }
  const first = twice.values().next().value;
  if (first === undefined) return;
  const names = [...twice.keys()].slice(0, 5).map((key) => quote(key).slice(1, -1));
  throw new DataError(
    `${first.source.file}: row ${first.source.row}: episode_id: expected unique ${mapping.key.join(' + ')}, got ${twice.size} ids twice (duplicates): ${names.join(', ')}. Remove the duplicates, or name the columns that tell them apart in the mapping (key)`,
  );
}

/** Twins are one episode of each world with the same model, condition and seed. */
export function checkPairs(metas: readonly EpisodeMeta[], warn: Warn): void {
  const worlds = new Map<string, string>();
  for (const meta of metas) {
    if (meta.pairId === null || meta.world === 'none' || meta.world === 'nuisance') continue;
    const key = [meta.pairId, meta.model, meta.condition, meta.seed, meta.world].join('\u0000');
    const other = worlds.get(key);
    if (other !== undefined) {
      warn(
        'pair_twice_same_world',
        `${meta.source.file}: counterfactual_pair_id: expected one episode of each world, got two ${meta.world} of ${quote(meta.pairId)} (${quote(other)}, ${quote(meta.episodeId)})`,
      );
      return;
    }
    worlds.set(key, meta.episodeId);
  }
}

/** @throws DataError (65) where a forecast cannot be made: only one class. */
export function checkClasses(metas: readonly EpisodeMeta[], inputs: readonly string[]): void {
  const unsafe = metas.filter((meta) => meta.unsafe !== null).length;
  if (unsafe > 0 && unsafe < metas.length) return;
  throw new DataError(
    `${inputs.map((path) => basename(path)).join(', ')}: unsafe_episode: expected episodes of both classes, got ${unsafe} unsafe, ${metas.length - unsafe} safe. A forecast needs both`,
  );
}
