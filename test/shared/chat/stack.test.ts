import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openChat } from '../../../src/pipeline/chat-setup.ts';
import { trySettings } from '../../../src/pipeline/try-settings.ts';
import { buildSequences, type ChatSetup } from '../../../src/plan/sequences.ts';
import type { ReplaySettings } from '../../../src/plan/settings.ts';
import { createVerifier } from '../../../src/plan/verify.ts';
import type { Episode, Verification } from '../../../src/types.ts';
import { chatFixtures } from '../fixtures.ts';
import { goldenEpisode, goldenTokenizer, templateIndex } from './golden-episode.ts';

/** Golden episodes logged as a server of one stack would, replayed with another. */

const folder = mkdtempSync(join(tmpdir(), 'forewarn-stack-'));
const CONFIGURED: ReplaySettings = {
  stack: 'hf-template',
  toolText: 'native',
  historyReasoning: 'template',
  templateKwargs: {},
  date: '2026-01-01',
  tools: 'column',
  context: { limit: null, policy: 'error' },
};

async function setup(settings: Partial<ReplaySettings>): Promise<ChatSetup> {
  return openChat({
    folder,
    tokenizer: await goldenTokenizer('gpt-oss'),
    settings: { ...CONFIGURED, ...settings },
    contextLimit: null,
    positions: ['prompt_end', 'pre_action', 'observation_end'],
    pooling: 'none',
    recordedBy: () => ({ origin: 'sequence', from: 0 }),
  });
}

let episodes: Episode[] = [];

/** What a server with these settings logs: counts, or ids. */
async function logged(settings: Partial<ReplaySettings>, ids: boolean): Promise<Episode[]> {
  const chat = await setup(settings);
  return episodes.map((episode) => {
    const facts = new Map(buildSequences(episode, chat).facts.map((fact) => [fact.turn, fact]));
    return {
      ...episode,
      turns: episode.turns.map((turn) => {
        const fact = facts.get(turn.index);
        if (fact === undefined) return turn;
        return ids
          ? { ...turn, promptIds: Array.from(fact.ids.subarray(0, fact.promptLength)) }
          : { ...turn, promptTokens: fact.promptLength };
      }),
    };
  });
}

function verify(chat: ChatSetup, logs: readonly Episode[]): Verification {
  const verifier = createVerifier(chat.tokenizer);
  for (const episode of logs) verifier.add(episode, buildSequences(episode, chat).facts, chat.recordedBy(''));
  return verifier.result();
}

describe('gpt-oss by its template and by harmony', () => {
  beforeAll(() => {
    const tokenizer = join(chatFixtures(), 'tokenizers', 'gpt-oss');
    for (const name of ['tokenizer.json.gz', 'tokenizer_config.json'])
      copyFileSync(join(tokenizer, name), join(folder, name));
    copyFileSync(
      join(chatFixtures(), 'templates', templateIndex()['gpt-oss'].file),
      join(folder, 'chat_template.jinja'),
    );
    episodes = readFileSync(join(chatFixtures(), 'positions.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly id: string; readonly template: string; readonly context: string })
      .filter((item) => item.template === 'gpt-oss')
      .slice(0, 6)
      .map((item) => goldenEpisode(item.context, item.id));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('renders other prompts, and finds its positions in both', async () => {
    const [template, harmony] = [await setup({}), await setup({ stack: 'harmony' })];
    let positions = 0;
    for (const episode of episodes) {
      const [a, b] = [buildSequences(episode, template), buildSequences(episode, harmony)];
      expect(b.exclusions).toEqual([]);
      expect(b.sequences).toHaveLength(episode.turns.length);
      for (const [index, sequence] of b.sequences.entries()) {
        expect(sequence.ids).not.toEqual(a.sequences[index]?.ids);
        expect(sequence.captures.map(({ position }) => position)).toEqual(
          a.sequences[index]?.captures.map(({ position }) => position),
        );
        positions += sequence.captures.length;
      }
    }
    console.log(`harmony: ${episodes.length} episodes, ${positions} positions`);
    expect(positions).toBeGreaterThan(0);
  });

  for (const [name, made, ids, setting] of [
    ['counts of a harmony server', { stack: 'harmony' }, false, 'replay.stack: harmony'],
    ['ids of a harmony server', { stack: 'harmony' }, true, 'replay.stack: harmony'],
    [
      'ids of another effort',
      { templateKwargs: { reasoning_effort: 'high' } },
      true,
      'replay.templateKwargs: {"reasoning_effort":"high"}',
    ],
    ['ids of another day', { date: '2025-08-05' }, true, 'replay.date: 2025-08-05'],
    [
      'ids of a harmony server of another day',
      { stack: 'harmony', date: '2025-08-05' },
      true,
      'replay.stack: harmony, replay.date: 2025-08-05',
    ],
  ] as const) {
    it(`tells from ${name}: ${setting}`, async () => {
      const logs = await logged(made, ids);
      const chat = await setup({});
      expect(verify(chat, logs).models[0].rate).not.toBe(1);
      const { better } = await trySettings(folder, chat, logs);
      expect(better[0].rate).toBe(1);
      expect(better[0].setting.split(', replay.').sort()).toEqual(setting.split(', replay.').sort());
      expect(verify(await setup(made), logs).models[0].rate).toBe(1);
    });
  }
});
