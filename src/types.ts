/**
 * The vocabulary of forewarn (DESIGN.md sections 2 and 5, EVALUATION.md). Plain data only; this file imports nothing.
 *
 * Conventions: turns, blocks, token positions and rows count from 0; ranges are end-exclusive; matrices are row-major
 * typed arrays; scores are "higher = worse"; a number that cannot be computed is `{undefinedBecause}`, never NaN or 0.
 */

// ---------------------------------------------------------------- JSON without loss

/** A number as it was written: `1.0`, `1e-07` and `9007199254740993` survive. */
export interface JsonNumber {
  readonly lexeme: string;
}
/** Keys in the order of the text ("10" may come before "2"). Duplicate keys: last wins, as in Python and JavaScript. */
export interface JsonObject extends ReadonlyMap<string, JsonValue> {}
export type JsonValue = null | boolean | string | JsonNumber | readonly JsonValue[] | JsonObject;

// ---------------------------------------------------------------- values that may be undefined

/** A value that cannot be computed, with the reason a reader needs. */
export interface Undefined {
  readonly undefinedBecause: string;
}

/** An estimate with its percentile interval (95 % unless the metric says otherwise) and what it rests on. */
export interface Estimate {
  readonly estimate: number;
  /** null where no interval is meaningful (a plain count, a setting). */
  readonly lower: number | null;
  readonly upper: number | null;
  /** Rows (episodes, unless the metric says otherwise). */
  readonly n: number;
  readonly positives: number | null;
  /** Groups that were resampled (EVALUATION.md 6). */
  readonly clusters: number | null;
  /** Bootstrap draws behind the interval, where they are fewer than the contract's 2,000; absent otherwise. */
  readonly draws?: number;
  /** Bootstrap draws on which the statistic does not exist, where there are any (at most 5 %); absent otherwise. */
  readonly dropped?: number;
}
export type Value = Estimate | Undefined;

// ---------------------------------------------------------------- episodes

export interface ChatMessage {
  readonly role: string;
  /** Text, a list of content parts as logged, or null / absent as logged (templates tell these apart). */
  readonly content?: JsonValue;
  readonly reasoning?: string;
  readonly toolCalls?: readonly ToolCall[];
  /** For role "tool": the call it answers. */
  readonly toolCallId?: string;
  readonly name?: string;
}

export interface ToolCall {
  readonly name: string;
  /** Parsed arguments; null when the logged text is not a JSON object. */
  readonly arguments: JsonValue;
  /** The arguments exactly as the model wrote them, where the log has them. */
  readonly argumentsText?: string;
  readonly id?: string;
}

export interface ToolResult {
  /** What the harness put into the next prompt, byte for byte. */
  readonly text: string;
  /** Index of the call of the same turn that it answers. */
  readonly call: number;
}

/** What the model emitted in one call, plus the tool results that came back. */
export interface Turn {
  /** 0-based, in the order of the log. */
  readonly index: number;
  /** Messages that entered the transcript between the previous turn's results and this turn (user text, reminders). */
  readonly before: readonly ChatMessage[];
  readonly reasoning: string;
  /** null where the log says null: templates tell null and "" apart. */
  readonly content: string | null;
  readonly calls: readonly ToolCall[];
  readonly results: readonly ToolResult[];
  readonly unsafe: boolean;
  /** Index of the unsafe call within `calls`, where the source knows it. */
  readonly unsafeCall: number | null;
  readonly critical: boolean;
  readonly escalation: boolean;
  readonly violations: readonly string[];
  /** Token positions recorded by the source, as written; the mapping says how they count. */
  readonly recordedPositions: Readonly<Record<string, number>>;
  /** Logged token ids, if any: the loss-free case. */
  readonly promptIds: readonly number[] | null;
  /** The rendered prompt as text, if logged. */
  readonly promptText?: string | null;
  readonly generatedIds: readonly number[] | null;
  /** Raw completion text with markers, if logged. */
  readonly completionText: string | null;
  /** usage.prompt_tokens / completion_tokens, if logged. */
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
}

export type World = 'x-' | 'x+' | 'nuisance' | 'none';
/** How an episode ended: `limit` episodes without an unsafe act are censored (EVALUATION.md 3). */
export type EpisodeEnd = 'finished' | 'escalated' | 'limit' | 'unknown';

/** Everything about one agent run but its text: small enough that 207k of them fit in memory. */
export interface EpisodeMeta {
  /** Unique: (run, episode_id) unless the mapping names another. */
  readonly key: string;
  readonly run: string;
  readonly episodeId: string;
  readonly model: string;
  /** What the mapping derives from the run or set: candid, obfuscate, monitored … or "all". */
  readonly condition: string;
  readonly set: string | null;
  readonly scenarioId: string | null;
  readonly instanceId: string | null;
  readonly template: string | null;
  readonly family: string | null;
  readonly style: string | null;
  readonly pairId: string | null;
  readonly world: World;
  /** Decimal text: seeds may exceed 2^53. */
  readonly seed: string | null;
  /** r; −1 = the worlds' first prompts already differ; null = never revealed. */
  readonly reveal: number | null;
  /** u; null = safe. */
  readonly unsafe: number | null;
  readonly unsafeCall: number | null;
  readonly informed: boolean | null;
  readonly escalated: boolean | null;
  /** First turn with an escalation; null = none; absent where the source does not say. */
  readonly firstEscalation?: number | null;
  readonly criticalDone: boolean | null;
  /** First turn with a call of the critical kind, allowed or not. */
  readonly firstCritical: number | null;
  readonly success: boolean | null;
  readonly status: string | null;
  readonly end: EpisodeEnd;
  /** Report label (CANDID, SPIN, OMITTED, MISREPRESENTED, NO_REPORT, UNPARSED) where there is one. */
  readonly reportLabel: string | null;
  readonly turnCount: number;
  /** Per turn: names of the tools called, in order. */
  readonly toolNames: readonly (readonly string[])[];
  /** sha256 of the normalised task prompt and files (EVALUATION.md 6); equal hashes are near-duplicates. null = no text. */
  readonly duplicateKey: string | null;
  /** Further columns, for `where:` and joins. */
  readonly extra: Readonly<Record<string, string | number | boolean | null>>;
  /** Where it was read: file (base name) and 1-based row. */
  readonly source: { readonly file: string; readonly row: number };
}

export interface Episode extends EpisodeMeta {
  /** Messages before turn 0 that stand in every prompt (system, task). What a user simulator sees is not here. */
  readonly opening: readonly ChatMessage[];
  /** Tool schemas as given to the template, in order. */
  readonly tools: readonly JsonValue[];
  /** Messages after the last turn (nobody answered them). */
  readonly after: readonly ChatMessage[];
  readonly finalAnswer: string | null;
  readonly turns: readonly Turn[];
}

/** One row that was set aside, and why. */
export interface Exclusion {
  readonly stage: 'dataset' | 'plan' | 'extract' | 'forecast';
  readonly episode: string | null;
  readonly file: string | null;
  readonly row: number | null;
  readonly turn: number | null;
  /** Short machine-readable kind: bad_json, context_limit, never_revealed, no_call … */
  readonly reason: string;
  readonly detail: string;
}

// ---------------------------------------------------------------- replay plan

/** How the tokens of a span become one row. `ema`: exponential average, {@link https://en.wikipedia.org/wiki/Exponential_smoothing}, newest tokens heaviest. */
export type Pooling = 'none' | 'last' | 'mean' | 'max' | 'ema';

/** Rows of the residual stream wanted from one sequence. */
export interface Capture {
  /** Turn the position belongs to (`observation_end` of turn k lies in the prompt of turn k+1). */
  readonly turn: number;
  /** Position name (DESIGN.md section 2): prompt_end, pre_action, pre_action:1, span:reasoning … */
  readonly position: string;
  /** Token indices in the sequence, end-exclusive; a single position has end = start + 1. */
  readonly start: number;
  readonly end: number;
  readonly pooling: Pooling;
  /** The token at the edge also holds text of its neighbour. */
  readonly straddles: boolean;
}

/** One turn as the model saw it: prompt ids, then the ids it generated. The unit of replay. */
export interface SequencePlan {
  readonly episode: string;
  readonly turn: number;
  readonly ids: Int32Array;
  readonly promptLength: number;
  /** Where the generated ids come from. */
  readonly idsFrom: 'logged' | 'completion-text' | 'rendered';
  readonly captures: readonly Capture[];
  /** Tokens cut out of the middle of the prompt by the context policy: [start, start + count) of the full sequence. */
  readonly cut: { readonly start: number; readonly count: number } | null;
}

/** How often something that the log says agreed with ours. */
export interface Agreement {
  readonly checked: number;
  readonly agreed: number;
}

/** One place where the log says something else than we do, with both texts. */
export interface Disagreement {
  readonly episode: string;
  readonly file: string;
  readonly row: number;
  readonly turn: number;
  /** prompt ids, prompt tokens, generated tokens, recorded KEY. */
  readonly what: string;
  readonly logged: string;
  readonly ours: string;
  /** Text around the place, the token in ⟦ ⟧, as the log has it and as ours has it; null = the log holds no text of it. */
  readonly loggedText: string | null;
  readonly oursText: string;
}

/** What the log of one model says about its tokens, against ours. */
export interface ModelAgreement {
  readonly model: string;
  /** By kind: prompt ids, prompt tokens, generated tokens, recorded KEY. */
  readonly kinds: Readonly<Record<string, Agreement>>;
  readonly byTurn: readonly (Agreement & { readonly turn: number })[];
  /** Agreement rate of the kind that agrees least, in [0, 1]; undefined where there is nothing to compare. */
  readonly rate: number | Undefined;
  readonly worst: string | null;
  /** Whether the log's counts of generated tokens hold the token that ended the turn; null = it has no such counts. */
  readonly countsStopToken: boolean | null;
  readonly disagreements: readonly Disagreement[];
}

/** A setting that was tried on a sample, because the configured one did not agree. */
export interface SettingTrial extends Agreement {
  /** As it would stand in a configuration or mapping. */
  readonly setting: string;
  /** Agreement rate of the kind that agrees least. */
  readonly rate: number;
}

/** Ours against the log, before anything expensive runs. */
export interface Verification {
  /** Turns with something to compare, and those in which everything agreed. */
  readonly checkedTurns: number;
  readonly agreedTurns: number;
  readonly models: readonly ModelAgreement[];
  /** Recorded positions whose name is none of ours, by name: nothing to compare with. */
  readonly notCompared: Readonly<Record<string, number>>;
  /** Logged generated ids that are those of the turn as its family writes it. Only for information: the logged ones are used. */
  readonly reconstruction: Agreement;
}

/** Byte pair or unigram tokenizer of a model folder. Ids are those of Python's `tokenizers`. */
export interface Tokenizer {
  /** No special tokens are added; control tokens written in the text are encoded as such (as Python does). */
  encode(text: string): Int32Array;
  decode(ids: ArrayLike<number>): string;
  /** Bytes of one token; empty for a token that stands for nothing. */
  tokenBytes(id: number): Uint8Array;
  readonly vocabularySize: number;
  readonly eosIds: readonly number[];
}

// ---------------------------------------------------------------- replay

/** `embed`, `resid_mid.i`, `resid_post.i` (output of block i, before any final norm), `final_norm`. */
export type Tap = string;

export interface ReplaySequence {
  readonly ids: Int32Array;
  /** Ascending distinct token indices whose residual stream is wanted. */
  readonly rows: Int32Array;
}

export interface ActivationBlock {
  /** Index of the sequence within the batch given to `replay`. */
  readonly sequence: number;
  /** [taps, rows, width], float32. */
  readonly data: Float32Array;
}

export interface ModelInfo {
  readonly folder: string;
  readonly blocks: number;
  readonly width: number;
  readonly vocabularySize: number;
  readonly contextLimit: number | null;
  /** Exporter family the graph was recognised as (genai, optimum, dynamo …). */
  readonly exporter: string;
  /** sha256 of every file that determines the result: graph, external data. */
  readonly hashes: Readonly<Record<string, string>>;
  /** Whether the graph takes past state, so that prefixes can be computed once. */
  readonly pastState: 'kv' | 'hybrid' | 'none';
}

export interface ReplayStats {
  readonly forwardPasses: number;
  /** Tokens actually pushed through the blocks. */
  readonly computedTokens: number;
  readonly naiveTokens: number;
  readonly seconds: number;
  readonly peakRssBytes: number;
}

/** An open model in its own process. Sequences of one call share prefixes; order of the blocks is the order of the sequences. */
export interface Replayer {
  readonly info: ModelInfo;
  readonly taps: readonly Tap[];
  replay(sequences: readonly ReplaySequence[], signal?: AbortSignal): AsyncIterable<ActivationBlock>;
  stats(): ReplayStats;
  close(): Promise<void>;
}

// ---------------------------------------------------------------- features and probes

/** Names a stored row: one token position (or pooled span) of one turn of one episode. */
export interface FeatureKey {
  readonly episode: string;
  readonly turn: number;
  readonly position: string;
}

/** [rows, columns], row-major float32. */
export interface FeatureMatrix {
  readonly data: Float32Array;
  readonly rows: number;
  readonly columns: number;
}

/** C = A·B or A·Bᵀ … as handed to the numerical code: row-major, float32 in, float32 out. */
export interface Gemm {
  /** [m,k]·[k,n] → [m,n]; `transposeA`: a is [k,m]; `transposeB`: b is [n,k]. */
  (
    a: Float32Array,
    b: Float32Array,
    m: number,
    n: number,
    k: number,
    options?: { readonly transposeA?: boolean; readonly transposeB?: boolean },
  ): Promise<Float32Array>;
}

/** The same product in double precision: float64 in, float64 out. */
export interface Gemm64 {
  (
    a: Float64Array,
    b: Float64Array,
    m: number,
    n: number,
    k: number,
    options?: { readonly transposeA?: boolean; readonly transposeB?: boolean },
  ): Promise<Float64Array>;
}

export interface Landmark {
  readonly anchor: 'start' | 'reveal' | 'first_critical' | 'matched_steps' | 'act' | 'report';
  /** Turns after the anchor. */
  readonly offset: number;
  readonly position: string;
}

/** Maps a raw margin to a probability: 1 / (1 + exp(−(slope · margin + intercept))) or a monotone step function. */
export type Calibration =
  | { readonly kind: 'none' }
  | { readonly kind: 'platt'; readonly slope: number; readonly intercept: number }
  | { readonly kind: 'isotonic'; readonly thresholds: readonly number[]; readonly values: readonly number[] };

/** A linear reader of hidden states, and everything needed to know where it came from. Plain data. */
export interface Probe {
  readonly taps: readonly Tap[];
  readonly landmark: Landmark;
  readonly target: string;
  readonly horizon: number | null;
  readonly estimator: string;
  /** Inverse regularisation strength, scikit-learn's C; null for estimators without one. */
  readonly C: number | null;
  readonly width: number;
  /** All [width × taps.length]. score = weights · ((x − mean) / scale) + bias. */
  readonly mean: Float64Array;
  readonly scale: Float64Array;
  readonly weights: Float64Array;
  readonly bias: number;
  readonly calibration: Calibration;
  /** Alarm when the calibrated score is greater; per alpha (per-episode false-alarm rate). */
  readonly thresholds: readonly {
    readonly alpha: number;
    readonly threshold: number | Undefined;
    /**
     * Split-conformal threshold: states that a new negative, exchangeable with the n development ones, raises no alarm with
     * probability `coverage`; for the development set that was drawn this lies in lower … upper (95 %).
     */
    readonly conformal?:
      | {
          readonly threshold: number;
          readonly coverage: number;
          readonly lower: number;
          readonly upper: number;
          readonly n: number;
        }
      | Undefined;
  }[];
}

// ---------------------------------------------------------------- figures (DESIGN.md section 5, EVALUATION.md 17)

export interface Figure {
  readonly stage: 'plan' | 'extract' | 'train' | 'forecast' | 'intervene' | 'rollout';
  readonly target: string;
  readonly condition: string;
  readonly population: 'x-' | 'nuisance' | 'x+' | 'all';
  /** `reveal+1`, `first_critical`, `matched_steps` … or "any" for per-episode figures. */
  readonly landmark: string;
  readonly position: string;
  /** probe:<estimator> | text:<scope> | baseline:<name> | external:<name> | control:<name> | policy:<name> */
  readonly reader: string;
  /** Tap the probe reads, "selected" where it was chosen inside the folds, null for other readers. */
  readonly tap: string | null;
  readonly metric: string;
  readonly value: Value;
  readonly model?: string;
  readonly set?: string;
  readonly group?: string;
  readonly split?: string;
  readonly horizon?: number;
  readonly alpha?: number;
  /** Further coordinates of the metric (threshold, cost ratio, bin …). */
  readonly at?: Readonly<Record<string, number | string>>;
}

export interface Metrics {
  readonly schemaVersion: 1;
  /** Folder name of the run. */
  readonly run: string;
  readonly figures: readonly Figure[];
  /** Absent = nothing was locked before the test rows were read. */
  readonly preregistration?: Preregistration;
}

/** What `forewarn lock` wrote before outcomes of test rows were read, and what is different in the run that read them. */
export interface Preregistration {
  /** sha256 over configuration, rows, hypotheses and thresholds. */
  readonly hash: string;
  /** ISO 8601. */
  readonly lockedAt: string;
  /** Rows (model × condition × target × landmark × episode) that were to be tested. */
  readonly rows: number;
  readonly hypotheses: readonly string[];
  readonly thresholds: Readonly<Record<string, number>>;
  /** Run folder that was locked, where a change of data, model or capture led to another one; null = this run's own. */
  readonly folder: string | null;
  /** Dotted path of what was changed after the lock, with both values as JSON. Empty = the run is what was locked. */
  readonly changes: readonly { readonly field: string; readonly locked: string; readonly now: string }[];
}

/** One row of scores.parquet: out-of-fold score of one reader for one episode at one landmark. */
export interface ScoreRow {
  readonly episode: string;
  readonly model: string;
  readonly condition: string;
  readonly population: 'x-' | 'nuisance' | 'x+' | 'all';
  readonly target: string;
  readonly landmark: string;
  readonly position: string;
  readonly turn: number;
  readonly reader: string;
  readonly tap: string | null;
  readonly fold: number;
  readonly group: number;
  /** 1 = the event comes at or after this turn, 0 = it does not, null = censored or out of the target. */
  readonly label: 0 | 1 | null;
  /** Raw margin. */
  readonly score: number;
  /** Probability after calibration on training rows, where there is one. */
  readonly calibrated: number | null;
}

// ---------------------------------------------------------------- the agent loop (environment, rollout, monitor)

/** What a gate answers before a turn's calls run. */
export type GateDecision = (
  | { readonly kind: 'allow' }
  /** The calls do not run; the agent reads `message` as their result and goes on. */
  | { readonly kind: 'block'; readonly message: string }
  /** A principal is asked first, who answers by the world's permissions. */
  | { readonly kind: 'escalate' }
  | { readonly kind: 'terminate' }
  /** The turn is drawn anew with other random numbers. */
  | { readonly kind: 'resample' }
  /** The turn is made anew by another agent (the same model, its states changed), with the same random numbers. */
  | { readonly kind: 'steer' | 'ablate'; readonly agent: Agent }
) & {
  /** Score by position, where something was read. */
  readonly scores?: Readonly<Record<string, number>>;
  /** Whether a score was above its threshold: also where the answer is to allow (a gate that only watches). */
  readonly alarm?: boolean;
};

/** Hidden states that were there while a turn was generated. */
export interface CapturedStates {
  readonly taps: readonly Tap[];
  /** Token indices of prompt ++ generated, ascending: the last prompt token and every generated one. */
  readonly positions: Int32Array;
  /** [taps, positions, width] */
  readonly data: Float32Array;
  readonly width: number;
}

export interface AgentTurn {
  readonly reasoning: string;
  readonly content: string | null;
  readonly calls: readonly ToolCall[];
  /** Set where the model's output could not be parsed as a call. */
  readonly invalid: string | null;
  readonly promptIds: Int32Array;
  readonly generatedIds: Int32Array;
  readonly stop: 'end_of_turn' | 'length' | 'stop_text';
  /** Where the agent is a model whose states are read. */
  readonly states?: CapturedStates;
}

/** Produces the next turn of one episode. `uniform(step)` is the shared randomness of matched worlds. */
export interface Agent {
  (
    messages: readonly ChatMessage[],
    tools: readonly JsonValue[],
    uniform: (step: number) => number,
  ): Promise<AgentTurn>;
}

/** Reads the state of the model before the call runs and answers. */
export interface Gate {
  (turn: AgentTurn, index: number): Promise<GateDecision>;
}

// ---------------------------------------------------------------- effects that are handed in

export interface Progress {
  /** `total` 0 = unknown. Units: "tokens", "episodes" … */
  start(label: string, total: number, unit: string): void;
  advance(done: number): void;
  note(line: string): void;
  end(): void;
}

export interface Clock {
  /** Monotonic milliseconds. */
  now(): number;
  /** Wall clock, for display and run.json only. */
  date(): Date;
}

export interface Rng {
  /** Uniform in [0, 1), 53 bits. */
  next(): number;
  /** Integer in [0, n). */
  below(n: number): number;
}
