import type { Tokenizer } from '../types.ts';

/** Where each token lies in the text it came from, in UTF-16 units, end-exclusive. */
export interface TokenOffsets {
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

/**
 * Walks the bytes of the tokens along the bytes of the text. A byte without a token (SmolLM2 lacks 21) vanishes from the
 * ids: text bytes are skipped until the token fits. A token in the middle of a character begins where that character does.
 * @throws Error when a token fits nowhere: the ids are not those of this text
 */
export function tokenOffsets(tokenizer: Tokenizer, text: string, ids: ArrayLike<number>): TokenOffsets {
  const bytes = new TextEncoder().encode(text);
  const unit = new Int32Array(bytes.length + 1);
  let at = 0;
  for (let index = 0; index < text.length;) {
    const code = text.codePointAt(index)!;
    const size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (let k = 0; k < size; k += 1) unit[at + k] = index;
    at += size;
    index += code > 0xffff ? 2 : 1;
  }
  unit[bytes.length] = text.length;
  const starts = new Int32Array(ids.length);
  const ends = new Int32Array(ids.length);
  let cursor = 0;
  const fits = (token: Uint8Array, from: number): boolean => token.every((byte, k) => bytes[from + k] === byte);
  for (let index = 0; index < ids.length; index += 1) {
    const token = tokenizer.tokenBytes(ids[index]);
    let from = cursor;
    while (from + token.length <= bytes.length && !fits(token, from)) from += 1;
    if (from + token.length > bytes.length)
      throw new Error(`token ${index} (id ${ids[index]}) does not continue the text`);
    cursor = from + token.length;
    starts[index] = unit[from]!;
    // The end of a token that stops inside a character is that character's end.
    let end = cursor;
    while (end < bytes.length && (bytes[end] & 0xc0) === 0x80) end += 1;
    ends[index] = unit[end]!;
  }
  return { starts, ends };
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
