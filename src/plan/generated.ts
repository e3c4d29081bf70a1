import type { SequencePlan, Turn } from '../types.ts';
import type { Emission } from './chat/emission.ts';
import type { Family } from './chat/family-type.ts';
import { tokenOffsets } from './offsets.ts';
import { type TurnTokens, turnTokens } from './positions.ts';
import type { OpenTokenizer } from './tokenizer.ts';
import { spelledBy } from './written-positions.ts';

/** What the model generated in one turn. */
export interface Generated {
  readonly ids: Int32Array;
  readonly idsFrom: SequencePlan['idsFrom'];
  readonly emission: Emission;
  readonly tokens: TurnTokens;
  /** The logged ids spell the turn as its family writes it; null where there is nothing to compare. */
  readonly checked: boolean | null;
}

interface TurnSetup {
  readonly tokenizer: OpenTokenizer;
  readonly family: Family;
  readonly endOfTurn: string;
}

export const sameIds = (a: Int32Array, b: Int32Array): boolean =>
  a.length === b.length && a.every((id, index) => id === b[index]);

/**
 * Ids of the generated part: the logged ones, else those of the raw completion, else those of the turn as its family writes
 * it. The prompt's and these are encoded apart: the model never saw tokens across that seam.
 * @param written the turn as its family writes it
 * @throws Error in one line: the ids do not spell the logged text, or the text holds fewer calls than the log
 */
export function generatedTurn(turn: Turn, written: Emission, prompt: string, setup: TurnSetup): Generated {
  const { tokenizer } = setup;
  const raw = turn.completionText;
  if (turn.generatedIds === null) {
    const emission =
      raw === null ? written : located(completed(raw, written.text, setup.endOfTurn), turn, written, prompt, setup);
    const ids = tokenizer.encode(emission.text);
    const idsFrom = raw === null ? 'rendered' : 'completion-text';
    return {
      ids,
      idsFrom,
      emission,
      checked: null,
      tokens: turnTokens(emission, tokenOffsets(tokenizer, emission.text, ids)),
    };
  }
  const ids = Int32Array.from(turn.generatedIds);
  // Positions come from what the ids spell: that is what the model wrote, whatever the log says beside them.
  const spelled = spelledBy(tokenizer, ids);
  const ownWords = raw !== null && raw !== written.text;
  if (ownWords && spelled.text !== raw && spelled.text !== completed(raw, written.text, setup.endOfTurn))
    throw new Error(
      `the logged ids are not those of the logged text (they spell ${JSON.stringify(spelled.text.slice(0, 80))})`,
    );
  // A sampler may spell the same text in other tokens than the tokenizer would: the logged ids are then still what was written.
  const canonical = sameIds(ids, tokenizer.encode(written.text));
  const agreed = canonical || spelled.text === written.text;
  const emission = agreed ? written : located(spelled.text, turn, written, prompt, setup);
  return {
    ids,
    idsFrom: 'logged',
    emission,
    checked: ownWords ? null : agreed,
    tokens: turnTokens(emission, canonical ? tokenOffsets(tokenizer, written.text, ids) : spelled.offsets),
  };
}

function located(
  text: string,
  turn: Turn,
  written: Emission,
  prompt: string,
  { family, endOfTurn }: TurnSetup,
): Emission {
  if (text === written.text) return written;
  const { emission } = family.read(text, { prompt, endOfTurn });
  if (emission.calls.length < turn.calls.length)
    throw new Error(
      `the generated text holds ${emission.calls.length} of the ${turn.calls.length} calls of the log, as ${family.name} writes them`,
    );
  // Where the log holds no call, what looks like one was none for the harness.
  return family.rendersCalls && turn.calls.length === 0 ? { ...emission, calls: [] } : emission;
}

/** Servers cut the control token that ended the generation off the text; it is what the turn would be written with. */
function completed(raw: string, written: string, endOfTurn: string): string {
  const end = /<[^<>\s]+>$/.exec(written)?.[0] ?? endOfTurn;
  return raw.endsWith(end) || raw.endsWith(endOfTurn) ? raw : `${raw}${end}`;
}
