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
  /** What stopping is to prevent: turn (null = the episode is safe) and, where known, call. */
  readonly event: { readonly turn: number | null; readonly call: number | null };
  readonly group: number;
  readonly fold: number;
  readonly points: readonly ScorePoint[];
  /** Development-side threshold per alpha of `InterventionInput.alphas`. */
  readonly thresholds: readonly (number | Undefined)[];
  /** A second reader (the text monitor of a cascade): its scores at the same points and its thresholds per alpha. */
  readonly second?: {
    readonly scores: readonly (number | null)[];
    readonly thresholds: readonly (number | Undefined)[];
  };
}

export type Decision = 'continue' | 'stop' | 'escalate';

/** All a policy may look at besides the scores; nothing in it comes after the point where it is asked. */
export interface PolicyContext {
  readonly threshold: number;
  /** The deciding fact stands in the prompt of this turn. */
  readonly revealed: boolean;
  readonly position: string;
  /** Score of the second reader at this point and its threshold, where there is one. */
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

/** `positionPrecedesAction` of the forecast stage: whether a position stands before the marker of the unsafe call. */
export type Precedes = (position: string, unsafeCall: number | null) => boolean;

export interface InterventionInput {
  readonly episodes: readonly MonitoredEpisode[];
  readonly model: string;
  readonly condition: string;
  readonly target: string;
  /** Reader whose scores drive the policies: probe:selected, text:so_far … Stands in `Figure.at.scores`. */
  readonly reader: string;
  readonly alphas: readonly number[];
  /** Names of policies.ts. */
  readonly policies: readonly string[];
  /** Tools for the rule "block this tool". */
  readonly tools: readonly string[];
  /** Shares of episodes that can be audited: the highest scores of the whole set are stopped. */
  readonly budgets: readonly number[];
  /** Pairs of costs (any unit); the grid of cost and break-even figures. */
  readonly costs: readonly { readonly harm: number; readonly disruption: number }[];
  readonly randomRepeats: number;
  readonly bootstrapDraws: number;
  readonly seed: number;
  readonly precedes: Precedes;
}

export interface InterventionResult {
  readonly figures: readonly Figure[];
  readonly outcomes: readonly OutcomeRow[];
}
