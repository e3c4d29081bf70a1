import type { Family } from '../plan/chat/family-type.ts';
import { jsonTagsFormat } from '../plan/chat/families/json-tags.ts';
import type { ReadTurn } from '../plan/chat/emission.ts';
import { readTurn } from '../plan/chat/turn-format.ts';
import type { JsonValue } from '../types.ts';
import type { ParsedTurn } from './live-agent.ts';

/**
 * Takes a generated text apart as the model's family writes it. Forgiving where a harness would be (white space, a missing
 * opening think tag when the prompt opened it), strict about calls: what cannot be read is `invalid`, and then there are
 * no calls at all.
 * @param prompt it may have opened the reasoning
 * @param tools schemas; formats without types need them to tell "5" from 5
 */
export function parseTurn(family: Family, text: string, prompt: string, tools: readonly JsonValue[]): ParsedTurn {
  return parsed(family.read(text, { prompt, tools }));
}

/** The json-tags families: `<think>\nR\n</think>\n\nC\n<tool_call>\n{…}\n</tool_call>`. */
export function parseJsonTags(text: string): ParsedTurn {
  return parsed(readTurn(jsonTagsFormat(false), text, { prompt: '' }));
}

function parsed({ emission, calls, invalid }: ReadTurn): ParsedTurn {
  const part = (stretch: { readonly start: number; readonly end: number } | null): string =>
    stretch === null ? '' : emission.text.slice(stretch.start, stretch.end);
  const content = part(emission.content).trim();
  return { reasoning: part(emission.reasoning), content: content === '' ? null : content, calls, invalid };
}
