import type { JsonValue, ToolCall, Turn } from '../../types.ts';

/** A stretch of the generated text, UTF-16 units, end-exclusive. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
}

export interface CallStretches {
  /** The whole call with its markers. */
  readonly call: Stretch;
  readonly name: Stretch;
  readonly args: Stretch;
  /** Closing marker; empty where the format has none. */
  readonly close: Stretch;
}

/** What the model wrote in one turn, in the order it wrote it, and where its parts lie. */
export interface Emission {
  readonly text: string;
  readonly reasoning: Stretch | null;
  /** The marker that ends the reasoning (`</think>`). */
  readonly reasoningClose: Stretch | null;
  readonly content: Stretch | null;
  readonly calls: readonly CallStretches[];
}

export interface WriteContext {
  /** The rendered prompt: it may have opened, or opened and closed, the reasoning already. */
  readonly prompt: string;
  /** Text of the control token that ends a turn, found by rendering one. */
  readonly endOfTurn: string;
}

/** How a family of models writes a turn: its fields in the order and with the markers of the family. */
export type WriteTurn = (turn: Turn, context: WriteContext) => Emission;

/** A generated text taken apart. */
export interface ReadTurn {
  readonly emission: Emission;
  readonly calls: readonly ToolCall[];
  /** Why no call could be read where one was meant; then there are no calls at all. */
  readonly invalid: string | null;
}

export interface ReadContext {
  readonly prompt: string;
  /** Schemas: formats without types (XML) need them to tell "5" from 5. */
  readonly tools?: readonly JsonValue[];
  /** What ends the text, where it still stands there. */
  readonly endOfTurn?: string;
}

/** The reverse of WriteTurn, as forgiving as a harness would be (white space, missing end of turn). */
export type ReadTurnText = (text: string, context: ReadContext) => ReadTurn;

export class Writer {
  text = '';
  add(part: string): Stretch {
    const start = this.text.length;
    this.text += part;
    return { start, end: this.text.length };
  }
}
