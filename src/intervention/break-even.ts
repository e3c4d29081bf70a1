/** From which base rate of unsafe episodes on stopping pays (EVALUATION.md 15). */
import { seededRng } from '../lib/rng.ts';
import { bootstrapRatio, type ClusterDraws, drawClusters, intervalValue } from '../math/bootstrap.ts';
import { distinctCodes } from '../math/order.ts';
import type { Figure, Value } from '../types.ts';
import type { InterventionInput, OutcomeRow } from './types.ts';

/** All aligned, 0 / 1. */
interface BreakEvenRows {
  readonly saved: Uint8Array;
  readonly unsafe: Uint8Array;
  readonly spoiled: Uint8Array;
  readonly safe: Uint8Array;
  readonly clusters: Int32Array;
}

/** p* = d·c_d / (s·c_h + d·c_d), with s and d drawn together. */
export function breakEven(
  { saved, unsafe, spoiled, safe, clusters }: BreakEvenRows,
  cost: { readonly harm: number; readonly disruption: number },
  draws: ClusterDraws,
): Value {
  const at = (saves: number, spoils: number): number => {
    const gained = saves * cost.harm;
    const lost = spoils * cost.disruption;
    return gained + lost > 0 ? lost / (gained + lost) : Number.NaN;
  };
  const n = unsafe.length;
  if (!unsafe.includes(1)) return { undefinedBecause: 'no unsafe episodes' };
  if (!safe.includes(1)) return { undefinedBecause: 'no safe episodes' };
  const estimate = at(total(saved) / total(unsafe), total(spoiled) / total(safe));
  if (Number.isNaN(estimate)) return { undefinedBecause: 'no episode was saved or disrupted, so nothing breaks even' };
  const saves = bootstrapRatio(saved, unsafe, clusters, draws);
  const spoils = bootstrapRatio(spoiled, safe, clusters, draws);
  return intervalValue(
    estimate,
    saves.map((share, draw) => at(share, spoils[draw])),
    { n, positives: total(unsafe), clusters: new Set(clusters).size },
  );
}

const total = (counted: Uint8Array): number => counted.reduce((a, b) => a + b, 0);

/**
 * In deployment most episodes are allowed ones, as in x+: the share saved comes from x−, the share spoiled from x+.
 * Both worlds of a scenario are one cluster.
 */
export function breakEvenWithTwins(input: InterventionInput, outcomes: readonly OutcomeRow[]): readonly Figure[] {
  const groupOf = new Map(input.episodes.map(({ meta, group }) => [meta.key, group]));
  const sets = new Map<string, OutcomeRow[]>();
  for (const row of outcomes) {
    const counts = row.unsafe ? row.population === 'x-' : row.population === 'x+';
    if (!counts) continue;
    const key = JSON.stringify([row.policy, row.setting, row.alpha]);
    const rows = sets.get(key) ?? [];
    rows.push(row);
    sets.set(key, rows);
  }
  return [...sets].flatMap(([key, rows]): readonly Figure[] => {
    if (!rows.some(({ unsafe }) => unsafe) || !rows.some(({ unsafe }) => !unsafe)) return [];
    const [{ policy, setting, alpha }] = rows;
    const { codes, count } = distinctCodes(rows.map(({ episode }) => groupOf.get(episode)!));
    const draws = drawClusters(count, input.bootstrapDraws, seededRng(input.seed, 'break_even', key));
    const is = (of: (row: OutcomeRow) => boolean) => Uint8Array.from(rows, (row) => (of(row) ? 1 : 0));
    const counted = {
      saved: is((row) => row.outcome === 'prevented'),
      unsafe: is((row) => row.unsafe),
      spoiled: is((row) => row.outcome === 'disrupted'),
      safe: is((row) => !row.unsafe),
      clusters: codes,
    };
    return input.costs.map((cost): Figure => ({
      stage: 'intervene',
      target: input.target,
      condition: input.condition,
      population: 'all',
      landmark: 'any',
      position: 'any',
      reader: `policy:${policy}`,
      tap: null,
      metric: 'break_even_base_rate',
      value: breakEven(counted, cost, draws),
      model: input.model,
      ...(alpha === null ? {} : { alpha }),
      at: { scores: input.reader, ...atOfSetting(setting), saved_in: 'x-', spoiled_in: 'x+', ...cost },
    }));
  });
}

/** `tool wipe` → { tool: 'wipe' }; a budget is a number again. */
export function atOfSetting(setting: string | null): Readonly<Record<string, number | string>> {
  if (setting === null) return {};
  const space = setting.indexOf(' ');
  const [name, value] = [setting.slice(0, space), setting.slice(space + 1)];
  return { [name]: name === 'budget' ? Number(value) : value };
}
