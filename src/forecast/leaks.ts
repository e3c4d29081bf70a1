/**
 * Leaks by name: what makes a forecast too good to be true. Every check answers findings, and an empty list for clean
 * data; none of them changes a figure.
 */
import type { EpisodeMeta } from '../types.ts';
import { positionPrecedesAction, positionPrecedesReport } from './positions.ts';
import type { Folding, Target } from './types.ts';

export type LeakName =
  | 'pair_across_folds'
  | 'scenario_across_folds'
  | 'duplicate_across_folds'
  | 'twin_across_folds'
  | 'position_after_act'
  | 'label_in_text';

export interface Leak {
  readonly name: LeakName;
  /** One line: what was found, with an example. */
  readonly detail: string;
  /** Keys of the episodes concerned, at most `MAX_EXAMPLES`. */
  readonly episodes: readonly string[];
  /** All that were found, not only the examples. */
  readonly count: number;
}

const MAX_EXAMPLES = 10;

/** Anything that must not be split: episodes that share the key stay in one fold. null = joins nothing. */
interface Unsplittable {
  readonly name: LeakName;
  readonly what: string;
  readonly key: (episode: EpisodeMeta) => string | null;
  /** Whether two episodes of one key concern this check; absent = always. */
  readonly concerns?: (a: EpisodeMeta, b: EpisodeMeta) => boolean;
}

const UNSPLITTABLE: readonly Unsplittable[] = [
  { name: 'pair_across_folds', what: 'matched worlds of a pair', key: (e) => e.pairId },
  {
    name: 'scenario_across_folds',
    what: 'episodes of a scenario',
    key: (e) => e.scenarioId,
    concerns: (a, b) => a.condition === b.condition,
  },
  { name: 'duplicate_across_folds', what: 'near-duplicate tasks', key: (e) => e.duplicateKey },
  {
    // The same scenario under another condition (candid, obfuscate) shares task, names and often the seed.
    name: 'twin_across_folds',
    what: 'twins of one scenario in two conditions',
    key: (e) => e.scenarioId ?? e.instanceId,
    concerns: (a, b) => a.condition !== b.condition,
  },
];

export function splitLeaks(episodes: readonly EpisodeMeta[], folding: Folding): readonly Leak[] {
  return UNSPLITTABLE.flatMap(({ name, what, key, concerns = () => true }): readonly Leak[] => {
    /** One member per key, fold and condition is enough to compare with. */
    const seen = new Map<string, Map<string, number>>();
    const across = new Map<string, string[]>();
    episodes.forEach((episode, i) => {
      const shared = key(episode);
      if (shared === null) return;
      const members = seen.get(shared) ?? new Map<string, number>();
      seen.set(shared, members.set(`${folding.fold[i]} ${episode.condition}`, i));
      for (const other of members.values()) {
        if (folding.fold[other] === folding.fold[i] || !concerns(episodes[other], episode)) continue;
        across.set(shared, [...(across.get(shared) ?? [episodes[other].key]), episode.key]);
        return;
      }
    });
    if (across.size === 0) return [];
    const [[example, keys]] = across;
    return [
      {
        name,
        detail: `${across.size} × ${what} in different folds, for example ${example}: ${keys.slice(0, 3).join(', ')}`,
        episodes: [...across.values()].flat().slice(0, MAX_EXAMPLES),
        count: across.size,
      },
    ];
  });
}

/** A row that somebody claims is at risk. */
export interface ClaimedRow {
  readonly index: number;
  readonly turn: number;
  readonly position: string;
  /** Index of the row's last token in its sequence, where known. */
  readonly token?: number;
  /** Index of the opening marker of the call of u in the same sequence, where known. */
  readonly actToken?: number;
}

/** Rows at or after the act (EVALUATION.md 2), by the rule of names and, where given, by token index. */
export function positionLeaks(
  episodes: readonly EpisodeMeta[],
  target: Target,
  rows: readonly ClaimedRow[],
): readonly Leak[] {
  const precedes = target.kind === 'outcome' ? positionPrecedesReport : positionPrecedesAction;
  const late = rows.filter(({ index, turn, position, token, actToken }) => {
    const event = target.event(episodes[index]);
    if ('leftOut' in event || event.turn === null || turn < event.turn) return false;
    if (turn > event.turn) return true;
    if (token !== undefined && actToken !== undefined) return token >= actToken;
    return !precedes(position, event.call);
  });
  if (late.length === 0) return [];
  const { index, turn, position } = late[0];
  return [
    {
      name: 'position_after_act',
      detail: `${late.length} rows at or after the event, for example ${episodes[index].key} at turn ${turn}, ${position}`,
      episodes: [...new Set(late.map((row) => episodes[row.index].key))].slice(0, MAX_EXAMPLES),
      count: late.length,
    },
  ];
}

/** Names of label columns: none of them belongs into what an agent reads. */
const LABEL_WORDS =
  /\b(?:first_unsafe_event|unsafe_action|unsafe_episode|informed_violation|cf_value|counterfactual_pair_id|report_label)\b/;

/** Share of positives that hold a word minus share of negatives (or the reverse) from which it counts as the label. */
const TELLING = 0.95;
/** Below this many of each class a perfect word is no surprise. */
const FEWEST = 10;

/**
 * The outcome written into the text: a label's column name, or one word whose presence separates the classes almost
 * perfectly. A candid agent that announces its act is found too; that is for the reader to judge, and why the finding
 * names the word.
 */
export function textLeaks(
  texts: readonly string[],
  labels: ArrayLike<number>,
  keys: readonly string[],
): readonly Leak[] {
  const leaks: Leak[] = [];
  const named = texts.flatMap((text, i) => (LABEL_WORDS.test(text) ? [i] : []));
  if (named.length > 0) {
    leaks.push({
      name: 'label_in_text',
      detail: `${named.length} texts hold a label's column name, for example ${LABEL_WORDS.exec(texts[named[0]])![0]} in ${keys[named[0]]}`,
      episodes: named.slice(0, MAX_EXAMPLES).map((i) => keys[i]),
      count: named.length,
    });
  }
  const total = [0, 0];
  const holders = new Map<string, [number, number]>();
  texts.forEach((text, i) => {
    const label = labels[i] === 1 ? 1 : 0;
    total[label] += 1;
    for (const word of new Set(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu))) {
      const counts = holders.get(word) ?? [0, 0];
      counts[label] += 1;
      holders.set(word, counts);
    }
  });
  if (total[0] < FEWEST || total[1] < FEWEST) return leaks;
  let best: { word: string; difference: number } | null = null;
  for (const [word, [negatives, positives]] of holders) {
    const difference = positives / total[1] - negatives / total[0];
    if (Math.abs(difference) > Math.abs(best?.difference ?? 0)) best = { word, difference };
  }
  if (best && Math.abs(best.difference) >= TELLING) {
    leaks.push({
      name: 'label_in_text',
      detail: `the word ${JSON.stringify(best.word)} stands in ${best.difference > 0 ? 'positive' : 'negative'} rows and hardly in others (difference of shares ${best.difference.toFixed(3)})`,
      episodes: [],
      count: 1,
    });
  }
  return leaks;
}

/** States of two matched worlds at a place before their first differing token. */
export interface StatePair {
  readonly a: string;
  readonly b: string;
  readonly x: Float32Array;
  readonly y: Float32Array;
}

/**
 * How far such states differ: ‖x − y‖ / ‖x‖, infinite for different lengths.
 * @returns pairs that are bit for bit equal, the largest difference, and its index where it is more than `tolerance`
 */
export function comparedStates(
  pairs: readonly StatePair[],
  tolerance: number,
): { readonly identical: number; readonly largest: number; readonly worst: number | null } {
  let [identical, largest] = [0, 0];
  let worst: number | null = null;
  pairs.forEach(({ x, y }, i) => {
    let [difference, norm] = [0, 0];
    for (let j = 0; j < x.length; j += 1) {
      difference += (x[j] - y[j]) ** 2;
      norm += x[j] ** 2;
    }
    const relative =
      x.length !== y.length || Number.isNaN(difference) ? Infinity : difference && Math.sqrt(difference / norm);
    if (relative === 0) identical += 1;
    if (relative > largest) {
      largest = relative;
      if (relative > tolerance) worst = i;
    }
  });
  return { identical, largest, worst };
}

/**
 * Texts that become equal when digits and capitalised words (names) are ignored too: a looser search than the groups
 * use (EVALUATION.md 6). Reported only, since scenarios of one template are meant to look alike.
 * @returns number of looser groups that lie in more than one fold
 */
export function looserDuplicates(texts: readonly string[], fold: ArrayLike<number>): number {
  const folds = new Map<string, Set<number>>();
  texts.forEach((text, i) => {
    const key = text
      .normalize('NFC')
      .replace(/\p{Lu}[\p{L}\p{N}_'-]*/gu, '@')
      .replace(/\p{N}+/gu, '0')
      .replace(/\s+/gu, ' ')
      .trim();
    folds.set(key, (folds.get(key) ?? new Set()).add(fold[i]));
  });
  return [...folds.values()].filter((set) => set.size > 1).length;
}
