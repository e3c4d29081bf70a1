import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commonPrefix } from '../../../src/lib/token-order.ts';
import { buildSequences } from '../../../src/plan/sequences.ts';
import { countTokens } from '../../../src/plan/trie.ts';
import type { SequencePlan } from '../../../src/types.ts';
import { chatFixtures } from '../fixtures.ts';
import { chatSetup, goldenEpisode, goldenTemplate, goldenTokenizer, kwargsOf } from './golden-episode.ts';

interface World {
  readonly context: string;
  readonly generated: readonly string[];
  readonly seq_len: readonly number[];
  readonly seq_sha256: readonly string[];
  readonly lcp_with_next_prompt: readonly number[];
  readonly trie: number;
}

interface Pair {
  readonly id: string;
  readonly template: string;
  readonly tokenizer: string;
  readonly now: string;
  readonly naive: number;
  readonly trie: number;
  readonly worlds: readonly World[];
}

const { pairs } = JSON.parse(readFileSync(join(chatFixtures(), 'trie.json'), 'utf8')) as { pairs: readonly Pair[] };

const hash = (ids: Int32Array): string => createHash('sha256').update(Array.from(ids).join(',')).digest('hex');

describe('matched worlds share the tokens that the golden trie shares', () => {
  for (const pair of pairs) {
    it(`${pair.id}: ${pair.template}`, async () => {
      const tokenizer = await goldenTokenizer(pair.tokenizer);
      const all: SequencePlan[] = [];
      for (const [index, world] of pair.worlds.entries()) {
        const setup = chatSetup(tokenizer, goldenTemplate(pair.template, pair.now, kwargsOf(world.context)), []);
        const episode = goldenEpisode(world.context, `${pair.id}/${index}`);
        const { sequences, exclusions } = buildSequences(
          {
            ...episode,
            turns: episode.turns.map((turn) => ({ ...turn, completionText: world.generated[turn.index] })),
          },
          setup,
        );
        expect(exclusions).toEqual([]);
        expect(sequences.map((sequence) => sequence.ids.length)).toEqual(world.seq_len);
        expect(sequences.map((sequence) => hash(sequence.ids))).toEqual(world.seq_sha256);
        const shared = sequences
          .slice(1)
          .map((next, turn) => commonPrefix(sequences[turn].ids, next.ids.subarray(0, next.promptLength)));
        expect(shared).toEqual(world.lcp_with_next_prompt);
        expect(countTokens(sequences).distinct).toBe(world.trie);
        all.push(...sequences);
      }
      expect(countTokens(all)).toEqual({ naive: pair.naive, distinct: pair.trie });
      console.log(`${pair.id}: ${all.length} sequences, naive ${pair.naive}, distinct ${pair.trie}`);
    });
  }
});
