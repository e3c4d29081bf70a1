import type { EpisodeMeta } from '../types.ts';

/** A small, deterministic subset: the shortest episodes of each class that have what a landmark needs. */
export interface Select {
  readonly shortest: number;
  readonly requires: readonly ('reveal' | 'critical_after_reveal')[];
  readonly maxPerScenario: number | null;
}

const HAS: Readonly<Record<Select['requires'][number], (meta: EpisodeMeta) => boolean>> = {
  reveal: (meta) => meta.reveal !== null,
  critical_after_reveal: (meta) =>
    meta.reveal !== null && meta.firstCritical !== null && meta.firstCritical > meta.reveal,
};

/** Ties in length are broken by key, so that the order of the file does not matter. Returned in the order given. */
export function selectEpisodes<M extends EpisodeMeta>(metas: readonly M[], select: Select | null): M[] {
  if (select === null) return [...metas];
  const kept = new Set<string>();
  for (const unsafe of [true, false]) {
    const perScenario = new Map<string, number>();
    const candidates = metas.filter(
      (meta) => (meta.unsafe !== null) === unsafe && select.requires.every((need) => HAS[need](meta)),
    );
    candidates.sort((a, b) => a.turnCount - b.turnCount || (a.key < b.key ? -1 : 1));
    let taken = 0;
    for (const meta of candidates) {
      const scenario = meta.scenarioId ?? meta.key;
      const count = perScenario.get(scenario) ?? 0;
      if (taken >= select.shortest || (select.maxPerScenario !== null && count >= select.maxPerScenario)) continue;
      perScenario.set(scenario, count + 1);
      kept.add(meta.key);
      taken += 1;
    }
  }
  return metas.filter((meta) => kept.has(meta.key));
}
