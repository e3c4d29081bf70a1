import type { RolloutConfig } from '../config/rollout.ts';
import { hashValue } from '../lib/content-hash.ts';
import type { Steering } from '../model/generation-core.ts';
import { openGenerator, type Generator } from '../model/open-generator.ts';
import { findFamily } from '../plan/chat/family.ts';
import { openTemplate } from '../plan/chat/template.ts';
import { endOfTurn } from '../plan/sequences.ts';
import { openTokenizer } from '../plan/tokenizer.ts';
import type { Agent, JsonValue, ModelInfo, Tap } from '../types.ts';
import { createLiveAgent } from './live-agent.ts';
import { parseTurn } from './parse-turn.ts';
import type { TurnFormat } from './turn-format.ts';

/** One model process; it plays one episode at a time. */
export interface Lane {
  readonly generator: Generator;
  /** The agent of one episode. It never takes over states from another, so its bytes do not depend on who played before. */
  agentOf(episode: string, steer?: Steering): Agent;
}

export interface OpenedAgents {
  readonly lanes: readonly Lane[];
  readonly format: TurnFormat;
  readonly info: ModelInfo;
  /** Everything of the model that determines the episodes: graph, tokenizer, template. */
  readonly modelHash: string;
  close(): Promise<void>;
}

/** States held per process: the turn before, and the turn that is being drawn anew. */
const KEEP = 2;

export interface AgentNeeds {
  /** Taps whose states come with every turn. */
  readonly taps: readonly Tap[];
  /** Tap at which the states can be changed; null = never. */
  readonly steer: Tap | null;
}

/** Opens the model of a rollout in `workers` processes; the weights are hashed once. */
export async function openAgents(
  config: RolloutConfig,
  workers: number,
  needs: AgentNeeds,
  signal: AbortSignal,
): Promise<OpenedAgents> {
  const { folder, threads, executionProvider } = config.model;
  const generators: Generator[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(generators.map((generator) => generator.close()));
  };
  try {
    const steerable = needs.steer === null ? {} : { steer: needs.steer };
    const open = { folder, taps: needs.taps, threads, executionProvider, keep: KEEP, ...steerable };
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
        agentOf: (episode, steer) =>
          createLiveAgent({
            ...common,
            generator,
            slot: episode,
            capture: needs.taps.length > 0,
            ...(steer === undefined ? {} : { steer }),
          }),
      })),
      format: { tokenizer, family, endOfTurn: closing },
      info,
      modelHash: hashValue({ graph: info.hashes, tokenizer: tokenizer.sha256, template: template.sha256 }),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
