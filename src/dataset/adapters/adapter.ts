import type { Mapping } from '../../config/mapping-fields.ts';
import type { ChatMessage, JsonValue, Turn } from '../../types.ts';

/** Warnings are shown once each, with the first row they are about; the row goes on. */
export type Warn = (kind: string, detail: string) => void;

/** What a log of one episode says, whatever its format. */
export interface ParsedLog {
  /** Messages before turn 0, where the log holds them; null = they come from other columns (mapping: opening). */
  readonly opening: readonly ChatMessage[] | null;
  readonly turns: readonly Turn[];
  /** Messages after the last turn. */
  readonly after: readonly ChatMessage[];
  /** Tool schemas, where the log holds them. */
  readonly tools: readonly JsonValue[] | null;
  /** Whether the log itself marks unsafe turns, so that columns and log can be compared. */
  readonly marksUnsafe: boolean;
  /** Turn of a step as the label columns count it (from 0); null = there is no such step. */
  turnOf(step: number): number | null;
}

/** Reads the log column of one row. @throws FieldProblem for the first thing that cannot be used */
export type LogAdapter = (value: JsonValue | undefined, field: string, mapping: Mapping, warn: Warn) => ParsedLog;
