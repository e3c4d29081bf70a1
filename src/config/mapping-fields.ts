import type { EpisodeEnd } from '../types.ts';

/**
 * How one source's columns and event keys become the canonical episode. Parsed from mappings/*.yaml by
 * config/mapping.ts, where every key is described; here it is plain data.
 */
export interface Mapping {
  readonly name: string;
  /** How the log of one episode is written; the formats are the adapters of dataset/adapters/. */
  readonly format: LogFormat;
  /** Canonical episode field → column names, the first one present counts. An empty list = the source has none. */
  readonly columns: Readonly<Record<EpisodeField, readonly string[]>>;
  /** Columns that have to exist, by canonical name. */
  readonly required: readonly EpisodeField[];
  /** Columns whose values together name an episode. */
  readonly key: readonly EpisodeField[];
  readonly world: 'none' | { readonly unsafe: readonly string[]; readonly safe: readonly string[] };
  /** First rule whose pattern matches the value of `from`; else `default`. */
  readonly condition: {
    readonly from: EpisodeField;
    readonly rules: readonly { readonly match: string; readonly name: string }[];
    readonly default: string;
  };
  /** Values of the status column; a value that is not listed is `unknown`. */
  readonly status: Readonly<Record<Exclude<EpisodeEnd, 'unknown'>, readonly string[]>>;
  /** What −1 means in reveal_event: the first prompts differ already, no such event, or nobody knows (quarantined). */
  readonly revealMinusOne: 'first_prompt' | 'none' | 'unknown';
  /** Number of the first step in the log. */
  readonly stepsFrom: 0 | 1;
  /** NaN written in JSON text: a missing value, or a damaged line. */
  readonly nanLiteral: 'missing' | 'refuse';
  /** How −1 in first_unsafe_event and first_critical_event reads. */
  readonly eventMinusOne: 'none' | 'refuse';
  /** What a step of a message list counts: turns of the assistant, or messages. */
  readonly stepsCount: 'turns' | 'messages';
  /** Order of the results of several calls in a turn of a message list. */
  readonly resultOrder: 'calls' | 'log';
  /** Further values that mean "no value" in a field (null and NaN always do), compared as text. */
  readonly missing: Readonly<Partial<Record<EpisodeField, readonly string[]>>>;
  /** Whole numbers written as text ("3"), as in tables whose fields are all strings. */
  readonly numbersAsText: 'accept' | 'refuse';
  /** Texts that stand for a truth value where the column is text; empty = text is refused. */
  readonly trueWords: readonly string[];
  readonly falseWords: readonly string[];
  /** `episodes.COLUMN` or `scenarios.COLUMN`; null = the prompt has no such message. */
  readonly opening: { readonly system: string | null; readonly user: string | null };
  readonly tools: string | null;
  /** Columns whose normalised text finds near-duplicates (EVALUATION.md 6). */
  readonly duplicateText: readonly string[];
  /** What joins the side tables: a field or column of the episodes, and the side table's column where it differs. */
  readonly join: { readonly scenarios: readonly JoinColumn[]; readonly reportLabels: readonly JoinColumn[] };
  readonly events: Readonly<Record<EventField, readonly string[]>>;
  readonly positions: {
    /** What recorded token positions count from, and whether from 0 or 1; `perModel` where models differ. */
    readonly origin: PositionOrigin;
    readonly from: 0 | 1;
    readonly perModel: readonly { readonly match: string; readonly origin: PositionOrigin; readonly from: 0 | 1 }[];
    /** Names of the entries of a flat list, in their order within a turn. */
    readonly names: readonly string[];
    /** Position name → event key, where positions are keys of the event itself. */
    readonly keys: Readonly<Record<string, string>>;
  };
  readonly reportLabel: string;
  /** Weak points of the labels, for the report. */
  readonly limits: readonly string[];
}

export interface JoinColumn {
  readonly episodes: string;
  readonly other: string;
}

export type PositionOrigin = 'sequence' | 'prompt' | 'generation' | 'transcript';

/** How the positions recorded for a model's episodes count. */
export function positionsOf(
  mapping: Mapping,
  model: string,
): { readonly origin: PositionOrigin; readonly from: 0 | 1 } {
  return mapping.positions.perModel.find((rule) => new RegExp(rule.match).test(model)) ?? mapping.positions;
}

export const LOG_FORMATS = ['events', 'openai-chat', 'anthropic-messages'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export const EPISODE_FIELDS = [
  'run',
  'model',
  'episode_id',
  'scenario_id',
  'instance_id',
  'template',
  'scenario_family',
  'policy_style',
  'counterfactual_pair_id',
  'cf_value',
  'nuisance',
  'set',
  'seed',
  'reveal_event',
  'first_unsafe_event',
  'unsafe_episode',
  'informed_violation',
  'escalated',
  'critical_done',
  'first_critical_event',
  'success',
  'status',
  'final_answer',
  'events_json',
] as const;
export type EpisodeField = (typeof EPISODE_FIELDS)[number];

export const EVENT_FIELDS = [
  'step',
  'reasoning',
  'content',
  'tool_name',
  'tool_args',
  'tool_args_text',
  'tool_result',
  'tool_call_id',
  'calls',
  'before',
  'after',
  'unsafe_action',
  'unsafe_call',
  'critical',
  'escalation',
  'violations',
  'positions',
  'prompt_ids',
  'prompt_text',
  'generated_ids',
  'completion_text',
  'prompt_tokens',
  'completion_tokens',
] as const;
export type EventField = (typeof EVENT_FIELDS)[number];
