import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError } from '../../errors.ts';
import { sha256 } from '../../lib/content-hash.ts';
import { fromPlain } from '../../lib/json.ts';
import type { JsonValue } from '../../types.ts';
import { compileTemplate } from './python-jinja.ts';

export interface ChatTemplate {
  readonly text: string;
  readonly sha256: string;
  /**
   * The prompt text. `messages` in the shape of Python dictionaries.
   * @throws Error with the template's own reason (a row it cannot render is quarantined by the caller)
   */
  render(messages: readonly JsonValue[], tools: readonly JsonValue[] | null, addGenerationPrompt: boolean): string;
}

async function templateText(folder: string): Promise<{ readonly path: string; readonly text: string }> {
  const file = join(folder, 'chat_template.jinja');
  if (existsSync(file)) return { path: file, text: await readFile(file, 'utf8') };
  const config = join(folder, 'tokenizer_config.json');
  if (existsSync(config)) {
    const value = (JSON.parse(await readFile(config, 'utf8')) as { chat_template?: unknown }).chat_template;
    if (typeof value === 'string') return { path: config, text: value };
    if (Array.isArray(value)) {
      const named = value as { name: string; template: string }[];
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
 * @param kwargs further variables (enable_thinking, reasoning_effort …) and the special tokens
 * @param date ISO day its clock shows; noon
 * @throws DataError (65)
 */
export async function openTemplate(
  folder: string,
  specialTokens: Readonly<Record<string, unknown>>,
  kwargs: Readonly<Record<string, unknown>>,
  date: string,
): Promise<ChatTemplate> {
  const { path, text } = await templateText(folder);
  if (text.startsWith('version https://git-lfs'))
    throw new DataError(`${path}: expected a template, got a Git LFS pointer. Run git lfs pull`);
  let compiled: ReturnType<typeof compileTemplate>;
  try {
    compiled = compileTemplate(text, `${date}T12:00:00`);
  } catch (error) {
    throw new DataError(`${path}: expected a Jinja template, got ${(error as Error).message}. Fetch the file again`, {
      cause: error,
    });
  }
  const fixed = Object.entries({ ...specialTokens, ...kwargs }).map(([key, value]) => [key, fromPlain(value)] as const);
  return {
    text,
    sha256: sha256(text),
    render: (messages, tools, addGenerationPrompt) =>
      compiled.render(
        new Map<string, JsonValue>([
          ...fixed,
          ['messages', messages],
          ['tools', tools],
          ['documents', null],
          ['add_generation_prompt', addGenerationPrompt],
        ]),
      ),
  };
}
