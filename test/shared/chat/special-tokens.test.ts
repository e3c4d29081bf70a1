import { describe, expect, it } from 'vitest';
import { goldenTokenizer, templateIndex } from './golden-episode.ts';

describe('a template gets the special tokens that transformers hands over', () => {
  for (const [name, entry] of Object.entries(templateIndex())) {
    if (entry.tokenizer === null) continue;
    const tokenizer = entry.tokenizer;
    it(name, async () => {
      expect((await goldenTokenizer(tokenizer)).specialTokens).toEqual(entry.special_tokens);
    });
  }
});
