import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError } from '../../errors.ts';
import { sha256 } from '../../lib/content-hash.ts';
import { fromPlain } from '../../lib/json.ts';
import type { JsonValue } from '../../types.ts';
import type { OpenTokenizer } from '../tokenizer.ts';
import { TRIAL_LIMITS } from './jinja/budget.ts';
import { probeTemplate } from './probe-template.ts';
import { type CompiledTemplate, compileTemplate } from './python-jinja.ts';

export interface ChatTemplate {
  /** Where it was read: for messages. */
  readonly path: string;
  readonly text: string;
  readonly sha256: string;
  /** What a reader of the run should know: a clock, no generation prompt, reasoning that it drops … */
  readonly warnings: readonly string[];
  /**
   * The prompt text. `messages` in the shape of Python dictionaries.
   * @throws PythonError with Python's own reason, or TemplateLimitError (the caller quarantines that row)
   */
  render(messages: readonly JsonValue[], tools: readonly JsonValue[] | null, addGenerationPrompt: boolean): string;
  /** Ids of a prompt, where they are not those of its text as a whole (harmony: text that reads like a control token is text). */
  readonly encode?: (
    tokenizer: OpenTokenizer,
    messages: readonly JsonValue[],
    tools: readonly JsonValue[] | null,
  ) => Int32Array;
}

export interface TemplateOptions {
  /** bos_token, eos_token …, as transformers hands them in. */
  readonly specialTokens: Readonly<Record<string, unknown>>;
  /** Further variables (enable_thinking, reasoning_effort …); they win over the special tokens. */
  readonly kwargs: Readonly<Record<string, unknown>>;
  /** ISO day, or local time, that the template's clock shows. A day means its noon. */
  readonly date: string;
}

interface Source {
  readonly path: string;
  readonly text: string;
}

async function readSource(folder: string): Promise<Source> {
  const file = join(folder, 'chat_template.jinja');
  if (existsSync(file)) return { path: file, text: await readFile(file, 'utf8') };
  const config = join(folder, 'tokenizer_config.json');
  if (existsSync(config)) {
    const text = await readFile(config, 'utf8');
    let value: unknown;
    try {
      value = (JSON.parse(text) as { chat_template?: unknown }).chat_template;
    } catch (error) {
      throw new DataError(`${config}: expected JSON, got ${(error as Error).message}. Fetch the file again`, {
        cause: error,
      });
    }
    if (typeof value === 'string') return { path: config, text: value };
    if (Array.isArray(value)) {
      const named = value as readonly { readonly name: string; readonly template: string }[];
      const chosen = named.find((item) => item.name === 'tool_use') ?? named.find((item) => item.name === 'default');
      if (chosen) return { path: config, text: chosen.template };
    }
  }
  throw new DataError(
    `${file}: expected a chat template there or in tokenizer_config.json, got none. Take the file from the model's repository`,
  );
}

/**
 * The chat template of a model folder (chat_template.jinja, else chat_template of tokenizer_config.json).
 * @param date ISO day its clock shows
 * @throws DataError (65)
 */
export async function openTemplate(
  folder: string,
  specialTokens: Readonly<Record<string, unknown>>,
  kwargs: Readonly<Record<string, unknown>>,
  date: string,
): Promise<ChatTemplate> {
  const { path, text } = await readSource(folder);
  return templateFromText(path, text, { specialTokens, kwargs, date });
}

/**
 * A template that has been tried on an invented transcript: one that does not end, grows without bound or prints no
 * message is refused before any row is read.
 * @param path for messages
 * @throws DataError (65)
 */
export function templateFromText(path: string, text: string, options: TemplateOptions): ChatTemplate {
  const refuse = (got: string, cause?: unknown): DataError =>
    new DataError(
      `${path}: expected a Jinja chat template, got ${got}. Take the file from the model's repository`,
      cause === undefined ? undefined : { cause },
    );
  if (text.startsWith('version https://git-lfs')) throw refuse('a Git LFS pointer (run git lfs pull)');
  if (text.trim() === '') throw refuse('an empty file');
  if (/^\s*<(?:!doctype|html)/i.test(text)) throw refuse('an HTML page');
  if (!/\{[{%]/.test(text)) throw refuse('a text without tags');
  let compiled: CompiledTemplate;
  try {
    compiled = compileTemplate(text, options.date.includes('T') ? options.date : `${options.date}T12:00:00`);
  } catch (error) {
    throw refuse((error as Error).message, error);
  }
  const plain = (values: Readonly<Record<string, unknown>>): (readonly [string, JsonValue])[] =>
    Object.entries(values).map(([key, value]) => [key, fromPlain(value)] as const);
  const fixed = [...plain(options.specialTokens), ['documents', null] as const, ...plain(options.kwargs)];
  const variables = (
    messages: readonly JsonValue[],
    tools: readonly JsonValue[] | null,
    addGenerationPrompt: boolean,
  ): ReadonlyMap<string, JsonValue> =>
    new Map<string, JsonValue>([
      ...fixed,
      ['messages', messages],
      ['tools', tools],
      ['add_generation_prompt', addGenerationPrompt],
    ]);
  const warnings = probeTemplate(
    path,
    text,
    (messages, tools, prompt) => compiled.render(variables(messages, tools, prompt), TRIAL_LIMITS),
    options.date,
  );
  return {
    path,
    text,
    sha256: sha256(text),
    warnings,
    render: (messages, tools, addGenerationPrompt) => compiled.render(variables(messages, tools, addGenerationPrompt)),
  };
}

/**
 * Ids never get special tokens added, so a template that writes the first one itself is right; Python code that encodes
 * its text again with the tokenizer's defaults would have seen two.
 * @param added text of the token that the tokenizer puts before every text by default; null = none
 */
export function bosWarning(template: ChatTemplate, added: string | null): readonly string[] {
  if (added === null) return [];
  let prompt: string;
  try {
    prompt = template.render([fromPlain({ role: 'user', content: 'x' })], null, true);
  } catch {
    return [];
  }
  return prompt.startsWith(added)
    ? [
        `${template.path}: expected exactly one ${added} (BOS), got one in the template and one that the tokenizer adds by default; ours are encoded without the second`,
      ]
    : [];
}
