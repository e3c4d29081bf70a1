import type { Tokenizer } from '../types.ts';
import type { Emission } from './chat/emission.ts';
import type { EmissionReader, ReadingOptions } from './chat/read-emission.ts';
import type { TokenOffsets } from './offsets.ts';
import { generatedPositions, type Found } from './generated-positions.ts';

/** Generated ids as bytes read as latin1, so that a token is its bytes even where they are no text, and where each lies. */
export function idsAsText(
  tokenizer: Pick<Tokenizer, 'tokenBytes'>,
  ids: ArrayLike<number>,
): { readonly text: string; readonly offsets: TokenOffsets } {
  const parts: Uint8Array[] = [];
  const starts = new Int32Array(ids.length);
  const ends = new Int32Array(ids.length);
  let at = 0;
  for (let index = 0; index < ids.length; index += 1) {
    const bytes = tokenizer.tokenBytes(ids[index]);
    starts[index] = at;
    at += bytes.length;
    ends[index] = at;
    parts.push(bytes);
  }
  return { text: Buffer.concat(parts).toString('latin1'), offsets: { starts, ends } };
}

/**
 * Positions of a turn (DESIGN.md section 2), as indices of prompt ++ generated, found in the ids themselves. They need no
 * parsed turn, so they are there before the turn's call runs, and for output that could not be parsed.
 * @param parts which parts the turn really has: without calls what looks like one is no action
 */
export function writtenPositions(
  reader: EmissionReader,
  tokenizer: Pick<Tokenizer, 'tokenBytes'>,
  ids: { readonly promptLength: number; readonly generated: ArrayLike<number> },
  options: ReadingOptions & { readonly hasCalls: boolean; readonly isReport: boolean },
): Found {
  const { text, offsets } = idsAsText(tokenizer, ids.generated);
  const read = reader(text, { ...options, endOfTurn: Buffer.from(options.endOfTurn).toString('latin1') });
  const emission: Emission = options.hasCalls ? read : { ...read, calls: [] };
  const found = generatedPositions(emission, offsets, ids.promptLength, options.isReport);
  found.set('prompt_end', { start: ids.promptLength - 1, end: ids.promptLength, straddles: false });
  return found;
}
