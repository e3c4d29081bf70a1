/** What the offline intervention stage is given and gives back (EVALUATION.md 15). */
import type { EpisodeMeta, Figure, Undefined } from '../types.ts';

/** One score of the monitor, in the order in which it became known. */
export interface ScorePoint {
  readonly landmark: string;
  readonly position: string;
  readonly turn: number;
  readonly score: number;
  /** The position precedes the call of u: stopping here prevents it. Always true in a safe episode. */
  readonly inTime: boolean;
}

export interface MonitoredEpisode {
  readonly meta: EpisodeMeta;
  readonly group: number;
  readonly fold: number;
  readonly points: readonly ScorePoint[];
  /** Development-side threshold per alpha of `InterventionInput.alphas`. */
  readonly thresholds: readonly (number | Undefined)[];
  /** Scores of a second reader (the text monitor of a cascade) at the same points, where there is one. */
  readonly second?: readonly (number | null)[];
}

export type Decision = 'continue' | 'stop' | 'escalate';

/** All a policy may look at besides the scores. */
export interface PolicyContext {
  readonly threshold: number;
  readonly reveal: number | null;
  /** Names of the tools of the turn whose call is about to run; only given at positions that follow the name. */
  readonly toolNames: readonly string[];
  readonly position: string;
  readonly second: number | null;
  readonly secondThreshold: number | null;
}

/** `history` ends with the score just read, at `turn`. Asked at every point until it stops. */
export type Policy = (history: readonly ScorePoint[], turn: number, context: PolicyContext) => Decision;

/** `untouched`: never stopped, safe or not (`unsafe` tells which). */
export type OutcomeKind = 'prevented' | 'late' | 'disrupted' | 'untouched';

/** One row of interventions.parquet. */
export interface OutcomeRow {
  readonly episode: string;
  readonly model: string;
  readonly condition: string;
  readonly population: Figure['population'];
  readonly reader: string;
  readonly policy: string;
  readonly alpha: number | null;
  readonly unsafe: boolean;
  readonly outcome: OutcomeKind;
  /** Turn and position of the stop; null = none. */
  readonly stopTurn: number | null;
  readonly stopPosition: string | null;
  /** u − stop turn for unsafe episodes that were stopped in time. */
  readonly lead: number | null;
  readonly success: boolean | null;
}

export interface InterventionInput {
  readonly episodes: readonly MonitoredEpisode[];
  readonly model: string;
  readonly condition: string;
  readonly target: string;
  /** Reader whose scores drive the policies: probe:selected, text:so_far … */
  readonly reader: string;
  readonly alphas: readonly number[];
  /** Pairs of costs (any unit); the grid of the break-even figure. */
  readonly costs: readonly { readonly harm: number; readonly disruption: number }[];
  readonly randomRepeats: number;
  readonly bootstrapDraws: number;
  readonly seed: number;
}

export interface InterventionResult {
  readonly figures: readonly Figure[];
  readonly outcomes: readonly OutcomeRow[];
}
