import type { World } from '../types.ts';

/**
 * A scenario world: one version of one task, with everything the mock tools need. The fields are those of CAPE-Bench's
 * `scenarios` table; `scenario-row.ts` reads and writes them as table rows. All stored values are text, so that what a
 * tool prints is what the scenario says, byte for byte.
 */
export interface Scenario {
  readonly scenarioId: string;
  readonly instanceId: string;
  /** Links the worlds of one task. */
  readonly pairId: string;
  readonly template: string;
  readonly family: string;
  /** `nuisance`: an x− copy with an irrelevant surface change. */
  readonly world: World;
  readonly set: string;
  /** Decimal text; worlds of one pair share it, and with it the randomness of the model's sampling. */
  readonly seed: string;
  readonly systemPrompt: string;
  readonly taskPrompt: string;
  readonly permissions: Permissions;
  /** Path (no leading slash) → text. Tickets are `tickets/<id>.md`, mail is `mail/<id>.txt`. */
  readonly files: Readonly<Record<string, string>>;
  /** table → row id → column → text. */
  readonly db: Database;
  /** Mocked commands beyond the built-in ones on files (cat, ls, rm, cp, mv). */
  readonly commands: readonly CommandRule[];
  /** The critical action: a call is critical when it ran and matches. */
  readonly critical: ActionMatcher;
  /** What the task asks for, as a state of the world. */
  readonly goal: Goal;
  /** The one fact that differs between x− and x+, by name and in words. */
  readonly causalVar: string;
  readonly causalDesc: string;
  /** Wording style. */
  readonly policyStyle: string;
  readonly pressure: string;
  /** candid, obfuscate, or whatever the system prompt asks of the reasoning; "all" where it asks nothing. */
  readonly condition: string;
  /** Tool failures that pass: the nth call of a tool (from 1) gets this error once. */
  readonly faults: readonly Fault[];
  /** The agent is stopped after so many turns. */
  readonly maxTurns: number;
  /** Columns of the source that the environment does not use. */
  readonly extra: Readonly<Record<string, string | number | boolean | null>>;
}

export type Database = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>;

/** Rules are tried in order on every call that ran; a match with `allowed: false` makes the call unsafe. */
export interface Permissions {
  readonly rules: readonly PermissionRule[];
  /** What the principal answers to a request for permission. Once granted, forbidden rules are lifted. */
  readonly escalation: 'granted' | 'denied';
}

export interface PermissionRule {
  /** Name of the violated permission, as it stands in an event's `violations`. */
  readonly id: string;
  readonly allowed: boolean;
  readonly match: ActionMatcher;
}

/** Matches if any call pattern or any effect matches: effects catch equivalent routes (`rm`, `mv`, overwriting). */
export interface ActionMatcher {
  readonly calls: readonly CallPattern[];
  readonly effects: readonly EffectPattern[];
}

/** All given arguments must be equal after normalisation; for `run_command` the command is compared as words. */
export interface CallPattern {
  readonly tool: string;
  readonly args: Readonly<Record<string, string>>;
}

export type EffectPattern =
  | { readonly kind: 'file_gone'; readonly path: string }
  | { readonly kind: 'file_changed'; readonly path: string }
  | { readonly kind: 'file_copied'; readonly path: string }
  | { readonly kind: 'db'; readonly table: string; readonly id: string; readonly field: string; readonly value: string }
  | { readonly kind: 'sent'; readonly to: string }
  | { readonly kind: 'flag'; readonly name: string };

/** `words` is compared with the command's words after normalisation (quotes, sudo, flags, `./`). */
export interface CommandRule {
  readonly words: string;
  readonly output: string;
  readonly effects: readonly CommandEffect[];
}

export type CommandEffect =
  | { readonly kind: 'write'; readonly path: string; readonly text: string }
  | { readonly kind: 'delete'; readonly path: string }
  | { readonly kind: 'db'; readonly table: string; readonly id: string; readonly field: string; readonly value: string }
  | { readonly kind: 'flag'; readonly name: string };

/** Reached when the state of the world satisfies one of the effects. */
export interface Goal {
  readonly any: readonly EffectPattern[];
  /** Text the agent's report can be checked for. */
  readonly report: ReportClaims;
}

/** Words by which the rule-based report label reads a report (report-label.ts). All lower case. */
export interface ReportClaims {
  /** The object acted on: a report that names it and a `done` word mentions the action. */
  readonly object: string;
  readonly done: readonly string[];
  /** Phrases that say the action was allowed: a lie in a world that forbids it. */
  readonly allowedClaims: readonly string[];
  /** Phrases that say it was not allowed. */
  readonly forbiddenClaims: readonly string[];
}

export interface Fault {
  readonly tool: string;
  readonly call: number;
  readonly error: string;
}
