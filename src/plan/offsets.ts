import type { Tokenizer } from '../types.ts';
import type { Normalise } from './normalise.ts';

/** Where each token lies in the text it came from, in UTF-16 units, end-exclusive. */
export interface TokenOffsets {
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

/** What the walk has to know of a tokenizer. */
export interface WalkedTokenizer extends Pick<Tokenizer, 'tokenBytes'> {
  /** The text as the vocabulary spells it. */
  readonly normalise?: Normalise;
  /** Bytes that no token stands for: they vanish from the ids (SmolLM2 lacks 21). */
  readonly lostBytes?: ReadonlySet<number>;
}

const SPACE = 0x20;

/**
 * Walks the bytes of the tokens along the bytes of the normalised text. A byte without a token vanishes from the ids: it is
 * skipped. A token in the middle of a character begins where that character does; one that holds what the normaliser made of
 * several characters holds all of them.
 * @throws Error when a token fits nowhere: the ids are not those of this text
 */
export function tokenOffsets(tokenizer: WalkedTokenizer, text: string, ids: ArrayLike<number>): TokenOffsets {
  const normal = tokenizer.normalise?.(text.toWellFormed()) ?? { text, starts: null, ends: null };
  const bytes = new TextEncoder().encode(normal.text);
  const unit = unitOfByte(normal.text, bytes.length);
  const lost = tokenizer.lostBytes;
  const starts = new Int32Array(ids.length);
  const ends = new Int32Array(ids.length);
  let cursor = 0;
  const fits = (token: Uint8Array, skip: number, from: number): boolean => {
    if (from + token.length - skip > bytes.length) return false;
    for (let k = skip; k < token.length; k += 1) if (bytes[from + k - skip] !== token[k]) return false;
    return true;
  };
  for (let index = 0; index < ids.length; index += 1) {
    const token = tokenizer.tokenBytes(ids[index]);
    let from = cursor;
    while (!fits(token, 0, from) && lost?.has(bytes[from]) === true) from += 1;
    let size = token.length;
    if (!fits(token, 0, from)) {
      // A tokenizer that puts a space before every text (Llama 2, Mistral) has one here that the text lacks.
      if (token[0] !== SPACE || !fits(token, 1, from))
        throw new Error(`token ${index} (id ${ids[index]}) does not continue the text`);
      size -= 1;
    }
    cursor = from + size;
    const start = unit[from];
    // The end of a token that stops inside a character is that character's end.
    let end = cursor;
    while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end += 1;
    const last = unit[end];
    starts[index] =
      normal.starts === null || start >= normal.text.length ? Math.min(start, text.length) : normal.starts[start];
    ends[index] = normal.ends === null || last === 0 ? last : normal.ends[last - 1];
  }
  return { starts, ends };
}

/** UTF-16 index of the character that each byte belongs to; at the length, the length of the text. */
function unitOfByte(text: string, byteLength: number): Int32Array {
  const unit = new Int32Array(byteLength + 1);
  let at = 0;
  for (let index = 0; index < text.length;) {
    const code = text.codePointAt(index)!;
    const size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (let k = 0; k < size; k += 1) unit[at + k] = index;
    at += size;
    index += code > 0xffff ? 2 : 1;
  }
  unit[byteLength] = text.length;
  return unit;
}

export interface TokenSpan {
  readonly first: number;
  /** End-exclusive. */
  readonly end: number;
  readonly straddlesStart: boolean;
  readonly straddlesEnd: boolean;
}

/**
 * Tokens of the text [start, end): the first whose end is beyond the start, the last whose start is before the end
 * (not "the one with the last character": a character of several tokens gives another answer). null for an empty span.
 */
export function spanTokens(offsets: TokenOffsets, start: number, end: number): TokenSpan | null {
  if (end <= start) return null;
  const first = offsets.ends.findIndex((value) => value > start);
  if (first < 0) return null;
  let last = first;
  while (last + 1 < offsets.starts.length && offsets.starts[last + 1] < end) last += 1;
  if (offsets.starts[first] >= end) return null;
  return {
    first,
    end: last + 1,
    straddlesStart: offsets.starts[first] < start,
    straddlesEnd: offsets.ends[last] > end,
  };
}
