import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fromPlain, isJsonObject, parseJson } from '../../../src/lib/json.ts';
import { compileTemplate } from '../../../src/plan/chat/python-jinja.ts';
import { type OpenTokenizer, openTokenizer } from '../../../src/plan/tokenizer.ts';
import type { JsonValue } from '../../../src/types.ts';
import { chatFixtures } from '../fixtures.ts';

interface Case {
  readonly id: string;
  readonly template: string;
  readonly tokenizer: string | null;
  readonly now: string;
  readonly context: string;
  readonly rendered?: string;
  readonly error?: { readonly class: string; readonly message: string };
  readonly ids?: readonly number[];
}

const folder = chatFixtures();
const index = JSON.parse(readFileSync(join(folder, 'templates', 'index.json'), 'utf8')) as {
  templates: Record<string, { file: string; special_tokens: Record<string, unknown> }>;
};
const cases = readFileSync(join(folder, 'cases.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Case);
const tokenizers = new Map<string, Promise<OpenTokenizer>>();

describe('renders and ids equal Python’s', () => {
  for (const name of new Set(cases.map((item) => item.template))) {
    it(name, async () => {
      const wrong: string[] = [];
      const entry = index.templates[name];
      const source = readFileSync(join(folder, 'templates', entry.file), 'utf8');
      let ids = 0;
      const own = cases.filter((item) => item.template === name);
      for (const item of own) {
        const context = parseJson(item.context);
        if (!isJsonObject(context)) throw new Error('context');
        const variables = new Map<string, JsonValue>(
          Object.entries(entry.special_tokens).map(([key, value]) => [key, fromPlain(value)]),
        );
        for (const [key, value] of context) variables.set(key, value);
        let rendered: string | null = null;
        let reason = '';
        try {
          rendered = compileTemplate(source, item.now).render(variables);
        } catch (error) {
          reason = (error as Error).message;
        }
        if (item.error !== undefined) {
          // Python's reason, word for word: it is what the quarantined row is listed with.
          if (reason !== item.error.message)
            wrong.push(`${item.id}: Python raises ${item.error.class} ${item.error.message}, ours: ${reason}`);
        } else if (rendered !== item.rendered) wrong.push(`${item.id}: ${rendered === null ? reason : 'differs'}`);
        if (item.ids !== undefined && item.tokenizer !== null && item.rendered !== undefined) {
          if (!tokenizers.has(item.tokenizer))
            tokenizers.set(item.tokenizer, openTokenizer(join(folder, 'tokenizers', item.tokenizer)));
          const tokenizer = await tokenizers.get(item.tokenizer)!;
          ids += 1;
          if (Array.from(tokenizer.encode(item.rendered)).join() !== item.ids.join()) wrong.push(`${item.id}: ids`);
        }
      }
      console.log(`${name}: ${own.length} cases, ${ids} with ids`);
      expect(wrong).toEqual([]);
    });
  }
});
