/** What has to hold of the shipped model and its episodes. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadMapping } from '../../src/config/mapping.ts';
import { readEpisodes } from '../../src/dataset/read.ts';
import { openGenerator } from '../../src/model/open-generator.ts';
import { openReplayer } from '../../src/model/open-replayer.ts';
import { findFamily } from '../../src/plan/chat/family.ts';
import { openTemplate } from '../../src/plan/chat/template.ts';
import { buildSequences, endOfTurn, type ChatSetup } from '../../src/plan/sequences.ts';
import { openTokenizer } from '../../src/plan/tokenizer.ts';
import { createVerifier } from '../../src/plan/verify.ts';
import type { Episode } from '../../src/types.ts';

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const FOLDER = at('models/organism-planted');
const DATA = at('data/organism');
const TAPS = ['embed', 'resid_post.0', 'resid_post.1', 'resid_post.2', 'resid_post.3', 'final_norm'];
const POSITIONS = ['prompt_end', 'reasoning_start', 'reasoning_end', 'pre_action', 'action_end', 'report_start'];

async function openChat(): Promise<ChatSetup> {
  const tokenizer = await openTokenizer(FOLDER);
  const template = await openTemplate(FOLDER, tokenizer.specialTokens, {}, '2026-01-01');
  return {
    tokenizer,
    template,
    family: findFamily(template.text, { stack: 'hf-template', toolText: 'native' }, FOLDER),
    settings: {
      stack: 'hf-template',
      toolText: 'native',
      historyReasoning: 'template',
      templateKwargs: {},
      date: '2026-01-01',
      tools: 'none',
      context: { limit: null, policy: 'error' },
    },
    contextLimit: null,
    positions: [
      ...POSITIONS,
      ...['prompt_end', 'reasoning_end', 'pre_action', 'action_end'].map((name) => `recorded:${name}`),
    ],
    pooling: 'none',
    recordedBy: () => ({ origin: 'sequence', from: 0 }),
    endOfTurn: endOfTurn(template, tokenizer),
  };
}

describe('the shipped model folder', () => {
  it('writes every hour as one token', async () => {
    const { tokenizer } = await openChat();
    for (let hour = 1; hour <= 40; hour += 1) expect(tokenizer.encode(String(hour))).toHaveLength(1);
  });
});

describe('the shipped episodes', () => {
  it('are replayed to the logged ids and positions, every turn of every episode', async () => {
    const chat = await openChat();
    const mapping = await loadMapping(at('mappings/organism.yaml'));
    let turns = 0;
    for await (const episode of episodes(mapping)) {
      const built = buildSequences(episode, chat);
      expect(built.exclusions).toEqual([]);
      expect(createVerifier(chat.tokenizer).add(episode, built.facts, chat.recordedBy(''))).toBe(true);
      for (const { captures } of built.sequences) {
        turns += 1;
        const found = new Map(captures.map((capture) => [capture.position, capture.start]));
        for (const [name, start] of found)
          if (name.startsWith('recorded:')) expect(found.get(name.slice('recorded:'.length))).toBe(start);
      }
    }
    expect(turns).toBeGreaterThan(6000);
  }, 120_000);

  it('come out of the model again, and replay reads the states that were there live', async () => {
    const chat = await openChat();
    const mapping = await loadMapping(at('mappings/organism.yaml'));
    const generator = await openGenerator({ folder: FOLDER, taps: TAPS, threads: 1 });
    const replayer = await openReplayer({ folder: FOLDER, taps: TAPS, threads: 1, info: generator.info });
    try {
      let worst = 0;
      let scale = 0;
      let seen = 0;
      for await (const episode of episodes(mapping)) {
        if (seen >= 3) break;
        seen += 1;
        const { sequences } = buildSequences(episode, chat);
        for (const sequence of sequences) {
          const prompt = sequence.ids.slice(0, sequence.promptLength);
          const logged = sequence.ids.slice(sequence.promptLength);
          const live = await generator.generate({
            ids: prompt,
            maxTokens: logged.length,
            // The logged tokens again, whatever the randomness was: the state does not depend on how a token was chosen.
            temperature: 0,
            uniform: () => 0,
            stopIds: chat.tokenizer.eosIds,
            capture: true,
          });
          const same = agreement(live.ids, logged);
          const rows = Int32Array.from(live.positions).filter((row) => row < prompt.length + same);
          for await (const block of replayer.replay([{ ids: sequence.ids, rows }])) {
            const width = generator.info.width;
            for (let tap = 0; tap < TAPS.length; tap += 1)
              for (let row = 0; row < rows.length; row += 1)
                for (let i = 0; i < width; i += 1) {
                  const a = live.data[(tap * live.positions.length + row) * width + i] ?? Number.NaN;
                  const b = block.data[(tap * rows.length + row) * width + i] ?? Number.NaN;
                  worst = Math.max(worst, Math.abs(a - b));
                  scale = Math.max(scale, Math.abs(b));
                }
          }
        }
      }
      console.log(`live against replay: max abs difference ${worst}, largest value ${scale}`);
      // One token at a time against whole turns: other kernels, so not the same bits.
      expect(worst / scale).toBeLessThan(5e-5);
      expect(seen).toBe(3);
    } finally {
      await generator.close();
      await replayer.close();
    }
  }, 120_000);
});

function agreement(a: Int32Array, b: Int32Array): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length += 1;
  return length;
}

async function* episodes(mapping: Awaited<ReturnType<typeof loadMapping>>): AsyncGenerator<Episode> {
  yield* readEpisodes(
    {
      episodes: [`${DATA}/episodes.parquet`],
      scenarios: [`${DATA}/scenarios.parquet`],
      reportLabels: [`${DATA}/report_labels.parquet`],
      tools: null,
    },
    mapping,
    {
      where: {},
      maxBad: 0,
      onExclusion: (exclusion) => {
        throw new Error(exclusion.detail);
      },
      onWarning: () => undefined,
    },
  );
}
