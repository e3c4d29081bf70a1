import type { Family } from '../plan/chat/family-type.ts';
import type { OpenTokenizer } from '../plan/tokenizer.ts';
import { textOf } from './live-agent.ts';

/** How the turns of a model are read and written. */
export interface TurnFormat {
  readonly tokenizer: OpenTokenizer;
  readonly family: Family;
  readonly endOfTurn: string;
}

/** Enough of a prompt to see whether it has opened the reasoning. */
export function promptEnd(tokenizer: OpenTokenizer, promptIds: Int32Array): string {
  return textOf(tokenizer, promptIds.slice(-8));
}
