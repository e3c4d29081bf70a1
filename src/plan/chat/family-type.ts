import type { ReadTurnText, WriteTurn } from './emission.ts';
import { readTurn, type TurnFormat, writeTurn } from './turn-format.ts';

/** What has to be known of a model family beyond its template. */
export interface Family {
  readonly name: string;
  /** Message field its template reads reasoning from; null = reasoning is not rendered. */
  readonly reasoningField: string | null;
  /** false: the template prints no call that the log holds apart from the content. */
  readonly rendersCalls: boolean;
  readonly write: WriteTurn;
  readonly read: ReadTurnText;
}

/** A row of the table: the first whose test holds for a template's text is its family. */
export interface FamilyRow {
  readonly name: string;
  readonly test: (template: string) => boolean;
  readonly family: (template: string) => Family;
}

/** A family that is described by a format alone. */
export function formatFamily(name: string, reasoningField: string | null, format: TurnFormat): Family {
  return {
    name,
    reasoningField,
    rendersCalls: true,
    write: (turn, context) => writeTurn(format, turn, context),
    read: (text, context) => readTurn(format, text, context),
  };
}
