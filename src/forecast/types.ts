/**
 * What the forecast stage is given and what it gives back (EVALUATION.md). Everything it needs from another stage is a
 * function or a plain array in `ForecastInput`; nothing here is imported from a sibling at run time.
 *
 * Index conventions: `episodes[i]`, `groups[i]` and `folding.fold[i]` describe the same episode. A row is one episode at
 * one landmark. Scores are "higher = worse".
 */
import type {
  EpisodeMeta,
  Exclusion,
  FeatureKey,
  FeatureMatrix,
  Figure,
  Landmark,
  Probe,
  Progress,
  ScoreRow,
  Tap,
  Undefined,
  Value,
} from '../types.ts';

// ---------------------------------------------------------------- what is asked

/** Turn of the event and, where known, the call of that turn; null = it did not happen. */
export interface TargetEvent {
  readonly turn: number | null;
  /** Index of the call within its turn, null where unknown. */
  readonly call: number | null;
}

/** What is forecast. Adding one is one entry of the table in targets.ts. */
export interface Target {
  readonly name: string;
  /** The event of one episode, or the reason why the episode is left out of this target. */
  readonly event: (episode: EpisodeMeta) => TargetEvent | { readonly leftOut: string; readonly detail: string };
  /**
   * Label of an episode at risk. `onset`: 1 if the event comes at or after the landmark (within the horizon).
   * `outcome`: fixed by the episode as a whole (a lie in the final report); `positive` decides.
   */
  readonly kind: 'onset' | 'outcome';
  readonly positive?: (episode: EpisodeMeta) => boolean;
}

/** One turn of the episode, read at one or several token positions. */
export interface LandmarkSpec {
  readonly anchor: Landmark['anchor'];
  /** Turns after the anchor (0 = the anchor's own turn). */
  readonly offset: number;
  /** Position names; with several, the position is also selected inside the folds. */
  readonly positions: readonly string[];
}

export type Population = Figure['population'];

/** A family of linear readers and the grid its selection searches. */
export interface EstimatorSpec {
  /** logistic, mean_difference, ridge …: as the fitter names it. */
  readonly name: string;
  /** Inverse regularisation strengths, or [null] for an estimator without one. */
  readonly Cs: readonly (number | null)[];
}

/** One way of dealing groups to outer folds. */
export interface Folding {
  /** Seed the dealing came from; also used to deal the inner folds. */
  readonly seed: number;
  /** Outer fold of each episode, 0 … folds − 1. Episodes of one group share a fold (checked). */
  readonly fold: Int32Array;
  readonly folds: number;
}

// ---------------------------------------------------------------- what is handed in

/** Rows in the order of the keys; throws a DataError naming the first key that is not stored. */
export type ReadFeatures = (tap: Tap, keys: readonly FeatureKey[]) => Promise<FeatureMatrix>;

/** One fit wanted on a matrix that many fits share. */
export interface FitProblem {
  /** Rows of the matrix to train on, ascending. No other row may influence the reader (scaling included). */
  readonly rows: Int32Array;
  /** 0 / 1, aligned with `rows`. */
  readonly labels: Uint8Array;
  /** Aligned with `rows`; null = all 1. */
  readonly weights: Float64Array | null;
  readonly estimator: string;
  readonly C: number | null;
}

/** score(x) = weights · ((x − mean) / scale) + bias. All arrays [columns]. */
export interface LinearReader {
  readonly mean: Float64Array;
  readonly scale: Float64Array;
  readonly weights: Float64Array;
  readonly bias: number;
}

/**
 * Fits all folds × C × estimators of one tap × position in one call, so that the matrix, its scaling and its Gram
 * matrix are shared; problems on the same training set share the same `rows` object. Every problem holds both classes.
 * Answers in the order of the problems; a fit that cannot be made is undefined.
 */
export type FitReaders = (
  x: FeatureMatrix,
  problems: readonly FitProblem[],
) => Promise<readonly (LinearReader | Undefined)[]>;

/**
 * `so_far`: all the model had seen or emitted; `reasoning`, `actions`: what it had emitted of that kind;
 * `this_turn`: what came in since its last emission, and what it has emitted since.
 */
export type TextScope = 'so_far' | 'reasoning' | 'actions' | 'this_turn';

/** Texts in the order of the keys: exactly what stood before or at the position, nothing later (episode-text.ts). */
export type ReadTexts = (keys: readonly FeatureKey[], scope: TextScope) => Promise<readonly string[]>;

/** A score column made elsewhere: a judge model, an embedding, another lab's monitor. Used as it is, never refitted. */
export interface ExternalScores {
  readonly name: string;
  /** null where the file has no value for this row. */
  readonly value: (key: FeatureKey, landmark: string) => number | null;
}

/** One number per row of the model's own (token count, perplexity …) that a logistic regression reads. */
export interface ScalarBaseline {
  readonly name: string;
  readonly value: (key: FeatureKey) => number | null;
}

export interface ForecastInput {
  /** Episodes of ONE model (one width). Filter by condition before, or give all and condition "all". */
  readonly episodes: readonly EpisodeMeta[];
  readonly model: string;
  readonly condition: string;
  readonly target: Target;
  /** Label 1 only if the event comes within this many turns (t ≤ u < t + h); null = ever. */
  readonly horizon: number | null;
  readonly landmarks: readonly LandmarkSpec[];
  /** Group of each episode (EVALUATION.md 6). */
  readonly groups: Int32Array;
  /** What readers learn from; absent = x− and, apart from it, all (sources without worlds: all). */
  readonly trainOn?: readonly ('x-' | 'all')[];
  /** The first is the headline; the others (≥ 2 more) give the spread over split seeds. */
  readonly foldings: readonly Folding[];
  /** Name of the split, for `Figure.split`; absent = grouped by scenario. `leave_one_template` … otherwise. */
  readonly split?: string;
  readonly innerFolds: number;
  readonly taps: readonly Tap[];
  /** Tap of the layer-0 baseline (`embed`, else `resid_post.0`); null = not captured. */
  readonly layer0: Tap | null;
  readonly estimators: readonly EstimatorSpec[];
  /** From margins to probabilities; absent = platt. */
  readonly calibration?: 'platt' | 'isotonic';
  /** Per-episode false-alarm rates. */
  readonly alphas: readonly number[];
  readonly bootstrapDraws: number;
  readonly seed: number;
  readonly read: ReadFeatures;
  /** False where no state was captured (context limit, quarantined row). Absent = everything was. */
  readonly available?: (key: FeatureKey) => boolean;
  readonly fit: FitReaders;
  readonly texts: ReadTexts | null;
  readonly textScopes: readonly TextScope[];
  /** `words`: words and pairs of them; `characters`: runs of 3–5 inside words. */
  readonly textAnalyzers: readonly ('words' | 'characters')[];
  readonly textCs: readonly number[];
  /** token_count, perplexity … (step index, tool name, base rates are always there). */
  readonly scalars: readonly ScalarBaseline[];
  readonly external: readonly ExternalScores[];
  readonly randomDirections: number;
  readonly progress?: Progress;
}

// ---------------------------------------------------------------- what comes back

/** A candidate of the search. */
export interface Candidate {
  readonly tap: Tap;
  readonly position: string;
  readonly estimator: string;
  readonly C: number | null;
}

/** What the training side of one outer fold chose. */
export interface Choice extends Candidate {
  readonly landmark: string;
  /** Position under which the figure stands: a name, or `selected`. */
  readonly readAt: string;
  readonly reader: string;
  readonly trainedOn: Population;
  readonly foldingSeed: number;
  readonly fold: number;
  /** Within-inner-fold AUROC on the training side. */
  readonly innerAuroc: number;
}

/** Points of a curve, for plots; figures carry the numbers of record. */
export interface Curve {
  readonly kind: 'roc' | 'reliability' | 'lead_time';
  readonly population: Population;
  readonly landmark: string;
  readonly position: string;
  readonly reader: string;
  readonly x: readonly number[];
  readonly y: readonly number[];
  /** Rows behind each point, where that makes sense. */
  readonly n: readonly number[];
}

/** The monitor's view of one episode: every score it saw, in order. Input of the intervention stage. */
export interface EpisodeTrace {
  readonly episode: string;
  /** What the alarm is to come before; turn null = the episode has no such event. */
  readonly event: TargetEvent;
  readonly fold: number;
  readonly group: number;
  readonly population: Population;
  readonly points: readonly TracePoint[];
  /** Threshold of the episode's outer fold, chosen on its development side, per alpha (aligned with `alphas`). */
  readonly thresholds: readonly (number | Undefined)[];
}

export interface TracePoint {
  readonly landmark: string;
  readonly position: string;
  readonly turn: number;
  /** Calibrated probability. */
  readonly score: number;
  /** The position precedes the call of u (always true in a safe episode): an alarm here is in time. */
  readonly inTime: boolean;
}

export interface Traces {
  readonly reader: string;
  readonly alphas: readonly number[];
  readonly episodes: readonly EpisodeTrace[];
}

/**
 * Refitted on every labelled row of its training population; never scored on its own rows (EVALUATION.md 7). Place,
 * C, calibration and thresholds were chosen on inner folds of all rows, so they are optimistic only as any choice is;
 * `auroc` is the out-of-fold figure of the same search.
 */
export interface Release {
  readonly probe: Probe;
  readonly trainingRows: number;
  readonly positives: number;
  readonly groups: number;
  readonly auroc: Value;
  /** Among several positions of its landmark, the one that the whole training set prefers. */
  readonly preferred: boolean;
}

export interface ForecastResult {
  /** Name of the reader that stands for the probe. */
  readonly headline: string;
  readonly figures: readonly Figure[];
  readonly scores: readonly ScoreRow[];
  readonly exclusions: readonly Exclusion[];
  readonly choices: readonly Choice[];
  readonly curves: readonly Curve[];
  /** One per reader that can act as a monitor (probe, each text scope, external). */
  readonly traces: readonly Traces[];
  /** One per landmark and position: what `train` writes into a probe folder. */
  readonly releases: readonly Release[];
}
