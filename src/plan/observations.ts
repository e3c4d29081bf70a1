import { isJsonObject } from '../lib/json.ts';
import type { Episode, JsonValue } from '../types.ts';
import type { ReplaySettings } from './settings.ts';
import { spanTokens, type TokenOffsets, tokenOffsets, type TokenSpan, type WalkedTokenizer } from './offsets.ts';
import { coreOf } from './positions.ts';
import { spelledBy } from './written-positions.ts';
import { type Mark, markedStretches } from './sentinels.ts';

/** Fences around a result that a harness sent as text. */
const FENCES: readonly (readonly [string, string])[] = [
  ['```tool_output\n', '\n```'],
  ['<tool_response>\n', '\n</tool_response>'],
];

/**
 * Where the results of a turn stand in the messages of the next prompt: in its tool messages, or, where the harness sent them
 * as user text, within their fences (the whole text where it has none). Without the white space at their edges.
 */
export function observationMarks(
  messages: readonly JsonValue[],
  episode: Episode,
  turn: number,
  calls: number,
  toolText: ReplaySettings['toolText'],
): Mark[] {
  const next = turn + 1 < episode.turns.length ? episode.turns[turn + 1].before : episode.after;
  const results = episode.turns[turn].results.length;
  const contentOf = (message: number): string | null => {
    const value = messages[message];
    const content = isJsonObject(value) ? value.get('content') : undefined;
    return typeof content === 'string' ? content : null;
  };
  const mark = (message: number, text: string, start: number, end: number): Mark => ({
    message,
    ...coreOf(text, { start, end }),
  });
  const first = messages.length - next.length - results;
  if (results > 0) {
    return Array.from({ length: results }, (_, index) => {
      const text = contentOf(first + index) ?? '';
      const inner = toolText === 'native' ? null : fenced(text, 1)[0];
      return mark(first + index, text, inner?.start ?? 0, inner?.end ?? text.length);
    });
  }
  const answer = calls === 0 ? -1 : next.findIndex((message) => message.role === 'user');
  const text = answer < 0 ? null : contentOf(first + answer);
  if (text === null) return [];
  const blocks = fenced(text, calls);
  return (blocks.length > 0 ? blocks : [{ start: 0, end: text.length }]).map(({ start, end }) =>
    mark(first + answer, text, start, end),
  );
}

/** Insides of the fenced blocks of a text. One call has one result, which may itself hold fences: it ends at the last. */
function fenced(text: string, calls: number): { readonly start: number; readonly end: number }[] {
  for (const [open, close] of FENCES) {
    const first = text.indexOf(open);
    if (first < 0) continue;
    const blocks: { start: number; end: number }[] = [];
    for (let at = first; at >= 0;) {
      const start = at + open.length;
      // The line end that opens an empty block also closes it.
      const end = calls <= 1 ? text.lastIndexOf(close) : text.indexOf(close, start - 1);
      if (end < start - 1) break;
      blocks.push({ start, end: Math.max(start, end) });
      at = calls <= 1 ? -1 : text.indexOf(open, end + close.length);
    }
    if (blocks.length > 0) return blocks;
  }
  return [];
}

export interface Prompt {
  readonly messages: readonly JsonValue[];
  readonly text: string;
  readonly ids: Int32Array;
  readonly render: (messages: readonly JsonValue[]) => string;
}

/**
 * Tokens of the results of a turn in the prompt of the next one.
 * @returns one a mark; null where the template prints no such text
 */
export function observationTokens(
  tokenizer: WalkedTokenizer,
  prompt: Prompt,
  marks: readonly Mark[],
): (TokenSpan | null)[] {
  const stretches = markedStretches(prompt.render, prompt.messages, marks, prompt.text);
  const { offsets, moved } = promptOffsets(tokenizer, prompt);
  return stretches.map((stretch) => {
    if (stretch === null) return null;
    const shift = moved(stretch.start);
    return shift === null ? null : spanTokens(offsets, stretch.start + shift, stretch.end + shift);
  });
}

/** Logged ids need not be those of our rendering (another date in it, say): from a stretch on they have to say the same. */
function promptOffsets(
  tokenizer: WalkedTokenizer,
  prompt: Prompt,
): { readonly offsets: TokenOffsets; readonly moved: (start: number) => number | null } {
  try {
    return { offsets: tokenOffsets(tokenizer, prompt.text, prompt.ids), moved: () => 0 };
  } catch {
    const { text, offsets } = spelledBy(tokenizer, prompt.ids);
    return {
      offsets,
      moved: (start) => (text.endsWith(prompt.text.slice(start)) ? text.length - prompt.text.length : null),
    };
  }
}
