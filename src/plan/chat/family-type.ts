import type { ReadTurnText, WriteTurn } from './emission.ts';
import { readTurn, type ThinkFormat, type TurnFormat, writeTurn } from './turn-format.ts';

/** How an earlier turn's reasoning stands in a prompt that keeps it. */
export interface HistoryBlock {
  readonly text: (reasoning: string) => string;
  /** From what the template writes before an assistant's words. */
  readonly place: 'behind header' | 'before header';
  /** What templates write where there was no reasoning, longest first: the block takes its place. */
  readonly empties: readonly string[];
  /** What a generation prompt may end with: the reasoning opened, or opened and closed. */
  readonly open: string;
  readonly close: string;
}

/** What has to be known of a model family beyond its template. */
export interface Family {
  readonly name: string;
  /** Message field its template reads reasoning from; null = reasoning is not rendered. */
  readonly reasoningField: string | null;
  /** false: the template prints no call that the log holds apart from the content. */
  readonly rendersCalls: boolean;
  /** The reasoning of an earlier turn where the template drops it; null = the family writes none. */
  readonly historyBlock: HistoryBlock | null;
  readonly write: WriteTurn;
  readonly read: ReadTurnText;
}

/** A row of the table: the first whose test holds for a template's text is its family. */
export interface FamilyRow {
  readonly name: string;
  readonly test: (template: string) => boolean;
  readonly family: (template: string) => Family;
}

export function thinkBlock({ open, beforeClose, close, after }: ThinkFormat): HistoryBlock {
  const text = (reasoning: string): string => `${open}${reasoning}${beforeClose}${close}${after}`;
  return {
    text,
    place: 'behind header',
    empties: [text(''), `${open}${close}`, close].filter((item, index, all) => all.indexOf(item) === index),
    open,
    close,
  };
}

/** A family that is described by a format alone. */
export function formatFamily(name: string, reasoningField: string | null, format: TurnFormat): Family {
  return {
    name,
    reasoningField,
    rendersCalls: true,
    historyBlock: format.think === null ? null : thinkBlock(format.think),
    write: (turn, context) => writeTurn(format, turn, context),
    read: (text, context) => readTurn(format, text, context),
  };
}
