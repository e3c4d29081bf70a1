import type { RolloutConfig } from '../config/rollout.ts';
import { hashValue } from '../lib/content-hash.ts';
import { openGenerator, type Generator } from '../model/open-generator.ts';
import { findFamily } from '../plan/chat/family.ts';
import { openTemplate } from '../plan/chat/template.ts';
import { endOfTurn } from '../plan/sequences.ts';
import { openTokenizer } from '../plan/tokenizer.ts';
import type { Agent, JsonValue } from '../types.ts';
import { createLiveAgent } from './live-agent.ts';
import { parseTurn } from './parse-turn.ts';
import type { TurnFormat } from './rollout-record.ts';

/** One model process; it plays one episode at a time. */
export interface Lane {
  readonly generator: Generator;
  /** The agent of one episode. It never takes over states from another, so its bytes do not depend on who played before. */
  agentOf(episode: string): Agent;
}

export interface OpenedAgents {
  readonly lanes: readonly Lane[];
  readonly format: TurnFormat;
  /** Everything of the model that determines the episodes: graph, tokenizer, template. */
  readonly modelHash: string;
  close(): Promise<void>;
}

/** States held per process: the turn before, and the turn that is being drawn anew. */
const KEEP = 2;

/** Opens the model of a rollout in `workers` processes; the weights are hashed once. */
export async function openAgents(config: RolloutConfig, workers: number, signal: AbortSignal): Promise<OpenedAgents> {
  const { folder, threads, executionProvider } = config.model;
  const generators: Generator[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(generators.map((generator) => generator.close()));
  };
  try {
    const open = { folder, taps: [], threads, executionProvider, keep: KEEP };
    const first = await openGenerator(open);
    generators.push(first);
    const { info } = first;
    for (const one of await Promise.allSettled(
      Array.from({ length: workers - 1 }, () => openGenerator({ ...open, info })),
    )) {
      if (one.status === 'rejected') throw one.reason;
      generators.push(one.value);
    }
    const tokenizer = await openTokenizer(folder, info.vocabularySize);
    const template = await openTemplate(folder, tokenizer.specialTokens, config.chat.templateKwargs, config.chat.date);
    const family = findFamily(template.text, { stack: 'hf-template', toolText: config.chat.toolText }, folder);
    const closing = endOfTurn(template, tokenizer);
    const marker = tokenizer.encode(closing).at(-1);
    const { toolText, historyReasoning } = config.chat;
    const common = {
      tokenizer,
      template,
      family,
      style: { toolText, historyReasoning, reasoningField: family.reasoningField },
      parse: (text: string, prompt: string, known: readonly JsonValue[]) => parseTurn(family, text, prompt, known),
      stopIds: [...new Set([...tokenizer.eosIds, ...(marker === undefined ? [] : [marker])])],
      ...config.sampling,
      signal,
    };
    return {
      lanes: generators.map((generator) => ({
        generator,
        agentOf: (episode) => createLiveAgent({ ...common, generator, slot: episode }),
      })),
      format: { tokenizer, family, endOfTurn: closing },
      modelHash: hashValue({ graph: info.hashes, tokenizer: tokenizer.sha256, template: template.sha256 }),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
