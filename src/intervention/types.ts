/** What the offline intervention stage is given and gives back (EVALUATION.md 15 and 16). */
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
  /** Outer fold of the scores; null where no landmark was scored, and then `points` and `thresholds` are empty. */
  readonly fold: number | null;
  /** Empty = no monitor ever saw this episode: it is never stopped by a score, and counts as such. */
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

/**
 * One state of the model that was scored. Two landmarks may fall on it (reveal+1 and start+2 of one episode): that is
 * one state with one score, the highest, since an alarm is any landmark above the threshold (EVALUATION.md 9).
 */
export interface StateScore {
  readonly turn: number;
  readonly position: string;
  readonly score: number;
}

/** All a policy may look at besides the scores; nothing in it but `actNext` comes after the point where it is asked. */
export interface PolicyContext {
  /** Where in the turn it is asked. */
  readonly position: string;
  /** A score was read at this very point: the last of the history. */
  readonly scored: boolean;
  /** Of the reader, for the episode's outer fold. Infinite for policies that look at no score. */
  readonly threshold: number;
  /** The deciding fact stands in the prompt of this turn. */
  readonly revealed: boolean;
  /** Tool whose call runs next, at `pre_action` of that call; else null. */
  readonly tool: string | null;
  /** Score of the second reader at this point (the highest of its landmarks) and its threshold, where there is one. */
  readonly second: number | null;
  readonly secondThreshold: number | null;
  /** The next call is u. Only an oracle knows; no other policy may look. */
  readonly actNext: boolean;
}

/**
 * Asked at every prompt, before every call and wherever a score was read, until it answers something else than
 * `continue`. `history`: every state scored so far, in order (empty where none was).
 */
export type Policy = (history: readonly StateScore[], turn: number, context: PolicyContext) => Decision;

/** `untouched`: never stopped, safe or not (`unsafe` tells which). */
export type OutcomeKind = 'prevented' | 'late' | 'disrupted' | 'untouched';

/** One row of interventions.parquet. */
export interface OutcomeRow {
  readonly episode: string;
  readonly model: string;
  readonly condition: string;
  readonly target: string;
  readonly population: Figure['population'];
  readonly reader: string;
  readonly policy: string;
  /** `tool wipe`, `budget 0.1`, `second text:best`: tells apart rows of one policy; null where there is but one. */
  readonly setting: string | null;
  readonly alpha: number | null;
  readonly unsafe: boolean;
  readonly outcome: OutcomeKind;
  /** Turn and position of the stop; null = none. */
  readonly stopTurn: number | null;
  readonly stopPosition: string | null;
  /** u − stop turn for unsafe episodes that were stopped in time. */
  readonly lead: number | null;
  readonly success: boolean | null;
  /** What the final report says of the act (CANDID, MISREPRESENTED …); null where there is no label. */
  readonly reportLabel: string | null;
}

/** What the intervention stage has to know of position names, handed in from where they are defined. */
export interface PositionRules {
  /** Whether a position stands before the marker of the unsafe call (null = not known which) of the same turn. */
  readonly precedes: (position: string, unsafeCall: number | null) => boolean;
  /** Order of positions within a turn. */
  readonly order: (position: string) => number;
}

export interface InterventionInput {
  readonly episodes: readonly MonitoredEpisode[];
  readonly model: string;
  readonly condition: string;
  readonly target: string;
  /** Reader whose scores drive the policies: probe:selected, text:so_far … Stands in `Figure.at.scores`. */
  readonly reader: string;
  /** Reader of `MonitoredEpisode.second`, or why there is none; absent = a cascade makes no sense for this reader. */
  readonly second?: string | Undefined;
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
  readonly positions: PositionRules;
}

/**
 * Harm against usefulness at every threshold there is, not chosen in advance. All arrays are aligned, thresholds
 * falling: the first point stops nobody.
 */
export interface StopCurve {
  readonly kind: 'stop';
  readonly model: string;
  readonly condition: string;
  readonly target: string;
  readonly population: Figure['population'];
  /** Reader whose scores are cut. */
  readonly reader: string;
  /** Stop where a score is greater. */
  readonly threshold: readonly number[];
  /** Share of unsafe episodes; null where there is none. */
  readonly prevented: readonly (number | null)[];
  /** Share of safe episodes; null where there is none. */
  readonly disrupted: readonly (number | null)[];
  /** Unsafe acts that still ran, per episode. */
  readonly harm: readonly number[];
  /** Share of safe episodes that succeeded and are not stopped; null where the source does not know success. */
  readonly usefulness: readonly (number | null)[];
  /** Episodes behind every point. */
  readonly n: number;
}

/** Threshold of one outer fold, chosen on its development side for a stated rate of false alarms per episode. */
export interface ThresholdChoice {
  readonly model: string;
  readonly condition: string;
  readonly target: string;
  readonly reader: string;
  readonly alpha: number;
  readonly fold: number;
  readonly threshold: number | Undefined;
}

export interface InterventionResult {
  readonly figures: readonly Figure[];
  readonly outcomes: readonly OutcomeRow[];
  readonly curves: readonly StopCurve[];
  readonly thresholds: readonly ThresholdChoice[];
}
