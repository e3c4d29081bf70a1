import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../../src/lib/content-hash.ts';
import { isJsonArray, isJsonObject, parseJson } from '../../../src/lib/json.ts';
import { harmonyIds, harmonyOptions, harmonyText, renderHarmony } from '../../../src/plan/chat/harmony.ts';
import { openTokenizer } from '../../../src/plan/tokenizer.ts';
import { chatFixtures } from '../fixtures.ts';

interface Case {
  readonly context: string;
  readonly options: Readonly<Record<string, unknown>> & { readonly date: string; readonly keep: boolean };
  readonly text: string;
  readonly count: number;
  readonly sha256: string;
}

/** HARMONY_GOLDEN: another file that test/golden/make_harmony.py wrote. */
const path = process.env['HARMONY_GOLDEN'] ?? new URL('../../golden/harmony.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(path, 'utf8')) as { readonly cases: readonly Case[] };

describe('harmony', () => {
  it('gives the ids of openai-harmony, also where text reads like a control token', async () => {
    const tokenizer = await openTokenizer(join(chatFixtures(), 'tokenizers', 'gpt-oss'));
    const wrong: string[] = [];
    for (const [index, { context, options, text, count, sha256: hash }] of cases.entries()) {
      const parsed = parseJson(context);
      if (!isJsonObject(parsed)) throw new Error('expected an object');
      const [messages, tools] = [parsed.get('messages'), parsed.get('tools')];
      if (!isJsonArray(messages) || !isJsonArray(tools)) throw new Error('expected lists');
      const { date, keep, ...kwargs } = options;
      const pieces = renderHarmony(messages, tools, harmonyOptions(kwargs, date, keep));
      const ids = harmonyIds(pieces, tokenizer);
      if (harmonyText(pieces) !== text) wrong.push(`${index}: text`);
      else if (ids.length !== count || sha256(Array.from(ids).join()) !== hash) wrong.push(`${index}: ids`);
    }
    console.log(`harmony: ${cases.length} cases, text and ids`);
    expect(wrong).toEqual([]);
  });
});
