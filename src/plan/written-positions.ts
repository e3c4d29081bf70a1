import type { Tokenizer } from '../types.ts';
import type { Family } from './chat/family-type.ts';
import type { TokenOffsets } from './offsets.ts';
import { type FoundPosition, generatedPositions, turnTokens } from './positions.ts';

/** Length of the UTF-8 character that begins at `at`; 0 where the bytes are none. */
function characterSize(bytes: Uint8Array, at: number): number {
  const lead = bytes[at];
  const size =
    lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : (lead & 0xf0) === 0xe0 ? 3 : (lead & 0xf8) === 0xf0 ? 4 : 0;
  for (let k = 1; k < size; k += 1) if (at + k >= bytes.length || (bytes[at + k] & 0xc0) !== 0x80) return 0;
  return size;
}

/**
 * The text that ids spell, and where each of them lies in it. Bytes that are no text (a sampled model may write them)
 * are one U+FFFD each; a token that ends inside a character ends with it.
 */
export function spelledBy(
  tokenizer: Pick<Tokenizer, 'tokenBytes'>,
  ids: ArrayLike<number>,
): { readonly text: string; readonly offsets: TokenOffsets } {
  const tokens = Array.from(ids, (id) => tokenizer.tokenBytes(id));
  const bytes = Buffer.concat(tokens);
  // UTF-16 index of the character that each byte belongs to, and of the one after it.
  const first = new Int32Array(bytes.length + 1);
  const next = new Int32Array(bytes.length + 1);
  const parts: string[] = [];
  let unit = 0;
  for (let at = 0; at < bytes.length;) {
    const size = characterSize(bytes, at);
    const char = size === 0 ? '\ufffd' : bytes.toString('utf8', at, at + size);
    const end = at + Math.max(1, size);
    for (; at < end; at += 1) {
      first[at] = unit;
      next[at] = unit + char.length;
    }
    parts.push(char);
    unit += char.length;
  }
  first[bytes.length] = unit;
  const starts = new Int32Array(tokens.length);
  const ends = new Int32Array(tokens.length);
  let at = 0;
  for (const [index, token] of tokens.entries()) {
    starts[index] = first[at];
    at += token.length;
    ends[index] = token.length === 0 ? starts[index] : next[at - 1];
  }
  return { text: parts.join(''), offsets: { starts, ends } };
}

/**
 * Positions of a turn (DESIGN.md section 2), as indices of prompt ++ generated, found in the ids themselves. They need no
 * parsed turn, so they are there before the turn's call runs, and for output that could not be parsed.
 * @param turn which parts it really has: without calls what looks like one is no action
 */
export function writtenPositions(
  family: Pick<Family, 'read'>,
  tokenizer: Pick<Tokenizer, 'tokenBytes'>,
  ids: { readonly promptLength: number; readonly generated: ArrayLike<number> },
  turn: {
    /** The prompt or its end: it may have opened the reasoning. */
    readonly prompt: string;
    readonly endOfTurn: string;
    readonly hasCalls: boolean;
    readonly isReport: boolean;
  },
): Map<string, FoundPosition> {
  const { text, offsets } = spelledBy(tokenizer, ids.generated);
  const { emission } = family.read(text, { prompt: turn.prompt, endOfTurn: turn.endOfTurn });
  const own = turn.hasCalls ? emission : { ...emission, calls: [] };
  const found = generatedPositions(turnTokens(own, offsets), ids.promptLength, turn.isReport);
  found.set('prompt_end', { start: ids.promptLength - 1, end: ids.promptLength, straddles: false });
  return found;
}
