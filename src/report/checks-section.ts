/** Whether the test was fair, and where the run asked for less than the contract does. */
import type { Figure } from '../types.ts';
import { details, figureTable, note } from './tables.ts';

const CHECKS: ReadonlySet<string> = new Set([
  'leaks',
  'looser_duplicates',
  'states_identical',
  'states_difference',
  'split_auroc',
]);

/** What a mark of `at.contract` counts, by the reader that carries it. */
const COUNTED: Readonly<Record<string, readonly [what: string, coordinate: string | null]>> = {
  'control:random_direction': ['random directions', 'directions'],
  'control:permutation': ['permutations', null],
};

/**
 * One sentence for every setting below EVALUATION.md's: intervals from fewer than 2,000 draws, controls from fewer than 20
 * directions or 1,000 permutations; and how many values lost draws.
 */
export function contractNotes(figures: readonly Figure[]): readonly string[] {
  const notes = new Set<string>();
  let [intervals, dropped] = [0, 0];
  for (const { reader, value, at } of figures) {
    if ('undefinedBecause' in value) continue;
    if (value.draws !== undefined) {
      notes.add(
        `Intervals rest on ${value.draws} bootstrap draws; the contract asks for 2,000, so their ends are rough.`,
      );
    }
    if (value.lower !== null) intervals += 1;
    if (value.dropped !== undefined) dropped += 1;
    const contract = at?.['contract'];
    const counted = COUNTED[reader];
    if (contract === undefined || counted === undefined) continue;
    const [what, coordinate] = counted;
    const used = coordinate === null ? value.n : at![coordinate];
    notes.add(`Controls rest on ${used} ${what}; the contract asks for ${Number(contract).toLocaleString('en')}.`);
  }
  if (dropped > 0) {
    notes.add(
      `${dropped} of ${intervals} intervals leave out bootstrap draws on which their figure does not exist (at most 5 % of them).`,
    );
  }
  return [...notes];
}

export function contractBlock(figures: readonly Figure[]): string {
  return contractNotes(figures).map(note).join('');
}

/** Searches for leaks, look-alike tasks, the replay check and the adversary's view of the split. */
export function checksBlock(figures: readonly Figure[]): string {
  const shown = figures.filter(({ metric }) => CHECKS.has(metric));
  if (shown.length === 0) return '';
  const found = shown.filter(({ metric, value }) => metric === 'leaks' && 'estimate' in value && value.estimate > 0);
  const lead =
    found.length === 0
      ? 'No leak was found by the searches below.'
      : `${found.length} searches found something: ${found.map(({ landmark, at }) => `${at?.['leak']} at ${landmark} (${at?.['detail'] ?? ''})`).join('; ')}. A candid agent that announces its act is found too; judge it.`;
  return `${note(lead)}${details(`Was the test fair? (${shown.length})`, figureTable(shown))}`;
}
