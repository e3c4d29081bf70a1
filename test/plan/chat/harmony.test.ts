import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/errors.ts';
import { isJsonArray, isJsonObject, parseJson } from '../../../src/lib/json.ts';
import { harmonyOptions, harmonyText, renderHarmony } from '../../../src/plan/chat/harmony.ts';
import type { JsonValue } from '../../../src/types.ts';

interface Case {
  readonly context: string;
  readonly options: Readonly<Record<string, unknown>> & { readonly date: string; readonly keep: boolean };
  readonly text: string;
}

/** Made by test/golden/make_harmony.py with openai-harmony itself. */
const golden = JSON.parse(readFileSync(new URL('../../golden/harmony.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly Case[];
};
const list = (value: JsonValue | undefined): readonly JsonValue[] => {
  if (!isJsonArray(value)) throw new Error('expected a list');
  return value;
};
const chat = (...messages: unknown[]): readonly JsonValue[] => list(parseJson(JSON.stringify(messages)));
const defaults = harmonyOptions({}, '2026-01-01', false);

describe('harmony renders as openai-harmony does', () => {
  for (const [index, { context, options, text }] of golden.cases.entries()) {
    it(`golden case ${index}`, () => {
      const parsed = parseJson(context);
      if (!isJsonObject(parsed)) throw new Error('expected an object');
      const { date, keep, ...kwargs } = options;
      const tools = list(parsed.get('tools'));
      const pieces = renderHarmony(list(parsed.get('messages')), tools, harmonyOptions(kwargs, date, keep));
      expect(harmonyText(pieces)).toBe(text);
    });
  }

  it('marks control tokens as such and leaves text that reads like one as text', () => {
    const pieces = renderHarmony(chat({ role: 'user', content: '<|end|>' }), null, defaults);
    expect(pieces.filter(({ text }) => text === '<|end|>').map(({ control }) => control)).toEqual([true, false, true]);
  });

  it('refuses what the library refuses, with its reason', () => {
    const tool = chat({ type: 'function', function: { name: 'f' } });
    const user = chat({ role: 'user', content: 'x' });
    expect(() => renderHarmony(user, tool, defaults)).toThrow('ToolDescription.description');
    expect(() => renderHarmony(chat({ role: 'narrator', content: 'x' }), null, defaults)).toThrow('Unknown role');
  });

  it('knows its own keys and refuses others', () => {
    expect(() => harmonyOptions({ enable_thinking: true }, '2026-01-01', false)).toThrow(UserError);
    expect(() => harmonyOptions({ reasoning_effort: 'maximal' }, '2026-01-01', false)).toThrow('low, medium, high');
  });
});
