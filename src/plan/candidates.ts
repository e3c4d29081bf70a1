import type { Episode } from '../types.ts';
import type { RecordedOrigin } from './recorded.ts';
import type { ReplaySettings } from './settings.ts';

/** What is known of a replay when it is looked for the settings that a log was made with. */
export interface Configured {
  readonly settings: ReplaySettings;
  readonly recorded: RecordedOrigin;
}

export interface Surroundings {
  /** Text of the model's chat template. */
  readonly template: string;
  /** Whether the tokenizer has the control tokens of harmony. */
  readonly knowsHarmony: boolean;
  readonly sample: readonly Episode[];
  /** Text of logged prompt ids, where the sample has any: a date stands in it. */
  readonly loggedPrompt: string | null;
}

/** Variables of public templates that change a prompt, with the values they know. `null` = left out. */
const KWARGS: Readonly<Record<string, readonly (string | boolean | null)[]>> = {
  enable_thinking: [true, false, null],
  thinking: [true, false, null],
  preserve_thinking: [true, false, null],
  clear_thinking: [true, false, null],
  reasoning_effort: ['low', 'medium', 'high', null],
  thinking_mode: ['on', 'off', null],
};
const HARMONY_KWARGS: Readonly<Record<string, readonly (string | null)[]>> = {
  reasoning_effort: ['low', 'medium', 'high'],
  system_as: ['developer', 'system'],
};

const HISTORY: readonly ReplaySettings['historyReasoning'][] = ['template', 'none', 'all', 'empty-block'];
const ORIGINS: readonly RecordedOrigin[] = [
  { origin: 'sequence', from: 0 },
  { origin: 'sequence', from: 1 },
  { origin: 'generation', from: 0 },
  { origin: 'generation', from: 1 },
];

/** Every single change worth trying: settings that cannot matter here (a stack without its ids, a variable the template lacks) are left out. */
export function candidates(configured: Configured, around: Surroundings): Configured[] {
  const { settings, recorded } = configured;
  const out: Configured[] = [];
  const add = (over: Partial<ReplaySettings>): void => {
    out.push({ settings: { ...settings, ...over }, recorded });
  };
  const turns = around.sample.flatMap((episode) => episode.turns);
  for (const stack of ['hf-template', ...(around.knowsHarmony ? (['harmony'] as const) : [])] as const) {
    if (stack === settings.stack) continue;
    // The two know different variables.
    const templateKwargs = settings.stack === 'raw' && stack === 'hf-template' ? settings.templateKwargs : {};
    add({ stack, templateKwargs });
  }
  if (turns.some((turn) => turn.recordedPositions !== null && Object.keys(turn.recordedPositions).length > 0)) {
    for (const other of ORIGINS) {
      const same = (recorded.origin === 'generation') === (other.origin === 'generation');
      if (same && recorded.from === other.from) continue;
      out.push({ settings, recorded: other });
    }
  }
  if (settings.stack === 'raw') return out;
  addRendering(configured, around, add);
  // Last: where a setting explains the log as well, it says more.
  if (turns.some((turn) => turn.promptIds !== null || typeof turn.promptText === 'string')) add({ stack: 'raw' });
  return out;
}

/** Changes of what a template is given. */
function addRendering(
  { settings }: Configured,
  around: Surroundings,
  add: (over: Partial<ReplaySettings>) => void,
): void {
  if (around.sample.some((episode) => episode.turns.some((turn) => turn.reasoning !== ''))) {
    for (const historyReasoning of HISTORY)
      if (historyReasoning !== settings.historyReasoning) add({ historyReasoning });
  }
  if (around.sample.some((episode) => episode.tools.length > 0)) {
    add({ tools: settings.tools === 'none' ? 'column' : 'none' });
  }
  const known = settings.stack === 'harmony' ? HARMONY_KWARGS : KWARGS;
  for (const [name, values] of Object.entries(known)) {
    if (settings.stack !== 'harmony' && !new RegExp(`\\b${name}\\b`).test(around.template)) continue;
    for (const value of values) {
      if ((settings.templateKwargs[name] ?? null) === value) continue;
      const { [name]: _old, ...rest } = settings.templateKwargs;
      add({ templateKwargs: value === null ? rest : { ...rest, [name]: value } });
    }
  }
  for (const date of datesIn(around.loggedPrompt ?? '')) if (date !== settings.date) add({ date });
}

/** What one setup has other than another, as it would stand in a configuration and a mapping. */
export function describeChange(from: Configured, to: Configured): string {
  const parts: string[] = [];
  for (const key of ['stack', 'historyReasoning', 'tools', 'templateKwargs', 'date'] as const) {
    const [before, after] = [from.settings[key], to.settings[key]];
    if (JSON.stringify(before) !== JSON.stringify(after))
      parts.push(`replay.${key}: ${typeof after === 'string' ? after : JSON.stringify(after)}`);
  }
  const { origin, from: first } = to.recorded;
  if (from.recorded.origin !== origin || from.recorded.from !== first)
    parts.push(`positions: { origin: ${origin}, from: ${first} } (mapping)`);
  return parts.length === 0 ? 'as configured' : parts.join(', ');
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Days that a prompt names, in the forms that templates print: 2025-09-05, 05 Sep 2025. At most a handful. */
export function datesIn(text: string): string[] {
  const found = new Set<string>();
  const date = /\b(?<iso>\d{4}-\d{2}-\d{2})\b|\b(?<day>\d{1,2}) (?<month>[A-Z][a-z]{2})[a-z]* (?<year>\d{4})\b/g;
  for (const { groups } of text.matchAll(date)) {
    const month = MONTHS.indexOf(groups!['month'] ?? '') + 1;
    const iso =
      groups!['iso'] ??
      (month === 0 ? null : `${groups!['year']}-${String(month).padStart(2, '0')}-${groups!['day'].padStart(2, '0')}`);
    if (iso !== null && /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/.test(iso)) found.add(iso);
    if (found.size >= 4) break;
  }
  return [...found];
}
