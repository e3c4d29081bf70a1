import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadMapping } from '../../src/config/mapping.ts';
import { loadRolloutConfig } from '../../src/config/rollout.ts';
import { readEpisodes } from '../../src/dataset/read.ts';
import { generatePair } from '../../src/environment/generate/generate.ts';
import { rollOut } from '../../src/environment/rollout.ts';
import { scriptedTurn } from '../../src/environment/scripted-policy.ts';
import { seededRng } from '../../src/lib/rng.ts';
import type { GenerationResult } from '../../src/model/generation-core.ts';
import { openGenerator, type Generator } from '../../src/model/open-generator.ts';
import { openReplayer } from '../../src/model/open-replayer.ts';
import { createLiveAgent } from '../../src/pipeline/live-agent.ts';
import { parseJsonTags } from '../../src/pipeline/parse-turn.ts';
import { recordOf } from '../../src/pipeline/rollout-record.ts';
import { finished, writeTables } from '../../src/pipeline/rollout-tables.ts';
import type { TurnFormat } from '../../src/pipeline/turn-format.ts';
import { findFamily } from '../../src/plan/chat/family.ts';
import { dumpsPython } from '../../src/plan/chat/python-json.ts';
import { openTemplate } from '../../src/plan/chat/template.ts';
import { createVerifier } from '../../src/plan/verify.ts';
import { buildSequences, endOfTurn, type ChatSetup } from '../../src/plan/sequences.ts';
import { openTokenizer } from '../../src/plan/tokenizer.ts';
import type { Agent, Episode } from '../../src/types.ts';

/**
 * Random weights, one token a byte. At a temperature that makes all 272 tokens equally likely the uniform number decides
 * alone, so the same model can be led to write a scripted turn, or rubbish, by the code that a real rollout runs.
 */
const FOLDER = fileURLToPath(new URL('../../models/fixture', import.meta.url));
const MAPPING = fileURLToPath(new URL('../../mappings/organism.yaml', import.meta.url));
const TAPS = ['embed', 'resid_post.0', 'resid_post.2', 'final_norm'];
const HOT = 1e7;
const POSITIONS = ['reasoning_start', 'reasoning_end', 'pre_action', 'action_name', 'action_end', 'report_start'];

interface Live {
  readonly prompt: Int32Array;
  readonly result: GenerationResult;
}

let folder: string;
let format: TurnFormat;
let chat: ChatSetup;
let generator: Generator;
const live: Live[] = [];
const episodes: Episode[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rollout-replay-'));
  const tokenizer = await openTokenizer(FOLDER);
  const template = await openTemplate(FOLDER, tokenizer.specialTokens, {}, '2026-01-01');
  const family = findFamily(template.text, { stack: 'hf-template', toolText: 'native' }, FOLDER);
  format = { tokenizer, family, endOfTurn: endOfTurn(template, tokenizer) };
  chat = {
    tokenizer,
    template,
    family,
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
    positions: ['prompt_end', ...POSITIONS, ...['prompt_end', ...POSITIONS].map((name) => `recorded:${name}`)],
    pooling: 'none',
    recordedBy: () => ({ origin: 'sequence', from: 0 }),
    endOfTurn: format.endOfTurn,
  };
  generator = await openGenerator({ folder: FOLDER, taps: TAPS, threads: 1, keep: 2 });
  await play();
}, 120_000);
afterAll(async () => {
  await generator.close();
  await rm(folder, { recursive: true, force: true });
});

const textOfContent = (content: unknown): string => (typeof content === 'string' ? content : '');

/** The same text with the mark that ends a call in tokens that the tokenizer would not take. */
function otherTokens(text: string): Int32Array {
  const { tokenizer } = format;
  const close = tokenizer.idOf('</tool_call>');
  const spelt = [...tokenizer.encode('</tool_call'), ...tokenizer.encode('>')];
  return Int32Array.from(Array.from(tokenizer.encode(text)).flatMap((id) => (id === close ? spelt : [id])));
}

/** Plays four tasks: scripted turns, the first in other tokens than the tokenizer's, one of them written carelessly, one that is no text at all. */
async function play(): Promise<void> {
  const items = [0, 3, 7, 12].flatMap((index) =>
    generatePair({ seed: 77, index, condition: 'candid', set: 'test' }).slice(0, 1),
  );
  const config = await loadRolloutConfig(
    fileURLToPath(new URL('../../organism/rollout-planted.yaml', import.meta.url)),
  );
  const played = new Map<string, ReturnType<typeof recordOf>>();
  for (const [number, { scenario, script }] of items.entries()) {
    const rng = seededRng('rollout-replay', number);
    let turn = -1;
    const agent: Agent = (messages, _tools, uniform) => {
      turn += 1;
      const results = messages
        .filter((message) => message.role === 'tool')
        .map((message) => textOfContent(message.content));
      const failed = results.at(-1)?.startsWith('Error') === true;
      const done = results.filter((text) => !text.startsWith('Error')).length;
      const policy = { allowed: false, tells: true, violates: number % 2 === 0, lies: true };
      const { reasoning, content, call } = scriptedTurn(script, policy, done, failed, rng);
      const gap = turn === 1 ? '  ' : ' ';
      const text = `<think>\n${reasoning}\n</think>\n\n${content ?? ''}${
        call === null
          ? ''
          : `<tool_call>\n{"name":${gap}"${call.name}", "arguments": ${dumpsPython(call.arguments)}}\n</tool_call>`
      }<|im_end|>`;
      const rubbish = turn === 2 && number > 0;
      const ids = rubbish ? null : turn === 0 ? otherTokens(text) : format.tokenizer.encode(text);
      return createLiveAgent({
        generator: {
          ...generator,
          generate: async (request) => {
            const result = await generator.generate({
              ...request,
              capture: true,
              ...(ids === null
                ? { maxTokens: 20 }
                : { uniform: (step) => ((ids[step] ?? 0) + 0.5) / generator.info.vocabularySize }),
            });
            live.push({ prompt: request.ids, result });
            return result;
          },
        },
        tokenizer: format.tokenizer,
        template: chat.template,
        family: format.family,
        style: { toolText: 'native', historyReasoning: 'template', reasoningField: 'reasoning_content' },
        parse: parseJsonTags,
        // Rubbish may hold a line that looks like an end; only the scripted turns end themselves.
        stopIds: rubbish ? [] : format.tokenizer.eosIds,
        temperature: HOT,
        topP: 1,
        maxTokens: 600,
        slot: scenario.instanceId,
      })(messages, [], uniform).then((answer) => (rubbish ? { ...answer, stop: 'end_of_turn' as const } : answer));
    };
    const random = seededRng('rollout-replay', 'uniform', number);
    const log = await rollOut({ scenario, agent, uniform: () => random.next() });
    played.set(scenario.instanceId, recordOf(log, null, config, format));
  }
  const scenarios = items.map((item) => item.scenario);
  expect(finished(scenarios, played)).toHaveLength(items.length);
  await writeTables(folder, scenarios, played);
  const mapping = await loadMapping(MAPPING);
  const source = {
    episodes: [join(folder, 'episodes.parquet')],
    scenarios: [join(folder, 'scenarios.parquet')],
    reportLabels: null,
    tools: null,
  };
  const options = {
    where: {},
    maxBad: 0,
    onExclusion: ({ detail }: { readonly detail: string }) => {
      throw new Error(detail);
    },
    onWarning: () => undefined,
  };
  for await (const episode of readEpisodes(source, mapping, options)) episodes.push(episode);
}

describe('replay of rolled-out episodes', () => {
  it('gives the logged ids and positions of every turn, also of turns that could not be parsed', () => {
    let turns = 0;
    let positions = 0;
    for (const episode of episodes) {
      const built = buildSequences(episode, chat);
      expect(built.exclusions).toEqual([]);
      expect(built.facts.every((fact) => fact.reconstructed !== false)).toBe(true);
      expect(createVerifier(format.tokenizer).add(episode, built.facts, chat.recordedBy(''))).toBe(true);
      expect(built.sequences).toHaveLength(episode.turns.length);
      for (const sequence of built.sequences) {
        const now = live[turns];
        expect(sequence.ids).toEqual(Int32Array.of(...(now?.prompt ?? []), ...(now?.result.ids ?? [])));
        const found = new Map(sequence.captures.map((capture) => [capture.position, capture.start]));
        for (const name of ['prompt_end', ...POSITIONS]) {
          expect([name, found.get(`recorded:${name}`)]).toEqual([name, found.get(name)]);
          if (found.has(name)) positions += 1;
        }
        turns += 1;
      }
    }
    expect(turns).toBe(live.length);
    expect(positions).toBeGreaterThan(4 * turns);
  });

  it('marks where the model wrote something else than its format would, and keeps the positions of its action', () => {
    const careless = episodes.map((episode) => episode.turns[1]);
    for (const turn of careless) {
      expect(turn?.completionText).toContain('{"name":  "');
      expect(Object.keys(turn?.recordedPositions ?? {})).toContain('pre_action');
    }
    const unread = episodes.slice(1).map((episode) => episode.turns[2]);
    for (const turn of unread) {
      expect(turn?.generatedIds).toHaveLength(20);
      expect(turn?.completionText).not.toBeNull();
      expect(turn?.recordedPositions['pre_action']).toBeUndefined();
    }
  });

  it('reads the states that were there live', async () => {
    const replayer = await openReplayer({ folder: FOLDER, taps: TAPS, threads: 1, info: generator.info });
    try {
      let worst = 0;
      let compared = 0;
      const sequences = episodes.flatMap((episode) => buildSequences(episode, chat).sequences);
      for await (const { sequence, data } of replayer.replay(
        sequences.map(({ ids }, index) => ({ ids, rows: live[index]?.result.positions ?? new Int32Array(0) })),
      )) {
        const then = live[sequence]?.result.data ?? new Float32Array(0);
        expect(data).toHaveLength(then.length);
        for (const [index, value] of data.entries()) worst = Math.max(worst, Math.abs(value - (then[index] ?? NaN)));
        compared += data.length;
      }
      console.log(`live against replay, ${compared} numbers: max abs difference ${worst}`);
      expect(compared).toBeGreaterThan(0);
      expect(worst).toBeLessThan(1e-5);
    } finally {
      await replayer.close();
    }
  }, 60_000);
});
