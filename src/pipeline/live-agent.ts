import type { Steering } from '../model/generation-core.ts';
import type { Generator } from '../model/open-generator.ts';
import type { Family } from '../plan/chat/family-type.ts';
import { promptRenderer } from '../plan/chat/history.ts';
import { promptMessages, type MessageStyle } from '../plan/chat/messages.ts';
import type { ChatTemplate } from '../plan/chat/template.ts';
import type { OpenTokenizer } from '../plan/tokenizer.ts';
import type { Agent, AgentTurn, ChatMessage, Episode, JsonValue, ToolCall, ToolResult, Turn } from '../types.ts';

/** What a model wrote in one turn, taken apart. `invalid` says why no call could be read where one was meant. */
export interface ParsedTurn {
  readonly reasoning: string;
  readonly content: string | null;
  readonly calls: readonly ToolCall[];
  readonly invalid: string | null;
}

export interface LiveAgentOptions {
  readonly generator: Generator;
  readonly tokenizer: OpenTokenizer;
  readonly template: ChatTemplate;
  readonly family: Family;
  readonly style: MessageStyle;
  /** Reads the generated text, end-of-turn marker removed. */
  readonly parse: (text: string, prompt: string, tools: readonly JsonValue[]) => ParsedTurn;
  /** Ids that end a turn. */
  readonly stopIds: readonly number[];
  readonly temperature: number;
  readonly topP: number;
  readonly maxTokens: number;
  /** States are shared within a slot only (see `GenerateOptions`); one per episode makes episodes independent of their order. */
  readonly slot?: string;
  /** Hand out the states at the generator's taps with each turn. */
  readonly capture?: boolean;
  /** Change the states while generating (`GenerateOptions.steer`). */
  readonly steer?: Steering;
  readonly signal?: AbortSignal;
}

/**
 * An agent that is a language model: the prompt by its own template, exactly as replay will render it, then one turn
 * sampled with the randomness it is handed. A prompt that leaves no room is an invalid turn that ends the episode.
 */
export function createLiveAgent(options: LiveAgentOptions): Agent {
  const { generator, tokenizer, template } = options;
  const render = promptRenderer(template, options.family, options.style.historyReasoning);
  return async (messages, tools, uniform): Promise<AgentTurn> => {
    const episode = asEpisode(messages, tools);
    const text = render(
      promptMessages(episode, episode.turns.length, options.style),
      options.style.toolText === 'native' && tools.length > 0 ? tools : null,
    );
    const promptIds = tokenizer.encode(text);
    const room = (generator.info.contextLimit ?? Number.POSITIVE_INFINITY) - promptIds.length;
    if (room < 1) {
      return {
        reasoning: '',
        content: null,
        calls: [],
        invalid: `the prompt of ${promptIds.length} tokens fills the context`,
        promptIds,
        generatedIds: new Int32Array(0),
        stop: 'length',
      };
    }
    const result = await generator.generate({
      ids: promptIds,
      maxTokens: Math.min(options.maxTokens, room),
      temperature: options.temperature,
      topP: options.topP,
      uniform,
      stopIds: options.stopIds,
      ...(options.slot === undefined ? {} : { slot: options.slot }),
      ...(options.capture === true ? { capture: true } : {}),
      ...(options.steer === undefined ? {} : { steer: options.steer }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    const { positions, data } = result;
    const states = { taps: generator.taps, positions, data, width: generator.info.width };
    const ended = result.stop === 'stop_id';
    const parsed = options.parse(textOf(tokenizer, ended ? result.ids.slice(0, -1) : result.ids), text, tools);
    return {
      ...parsed,
      invalid: ended ? parsed.invalid : (parsed.invalid ?? 'cut off at the limit of tokens'),
      promptIds,
      generatedIds: result.ids,
      stop: ended ? 'end_of_turn' : 'length',
      ...(options.capture === true ? { states } : {}),
    };
  };
}

/** Exact text of the ids, control tokens included. */
export function textOf(tokenizer: OpenTokenizer, ids: Int32Array): string {
  return Buffer.concat(Array.from(ids, (id) => tokenizer.tokenBytes(id))).toString('utf8');
}

/** The transcript so far in the form that replay renders, so that both render it by the same code. */
export function asEpisode(messages: readonly ChatMessage[], tools: readonly JsonValue[]): Episode {
  const opening: ChatMessage[] = [];
  const turns: Turn[] = [];
  let before: ChatMessage[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (message.role === 'assistant') {
      turns.push(turnOf(message, turns.length, before));
      before = [];
    } else if (last === undefined) opening.push(message);
    else if (message.role === 'tool') {
      const result: ToolResult = {
        text: typeof message.content === 'string' ? message.content : '',
        call: last.results.length,
      };
      turns[turns.length - 1] = { ...last, results: [...last.results, result] };
    } else before.push(message);
  }
  return { ...NO_EPISODE, opening, turns, tools, after: before };
}

function turnOf(message: ChatMessage, index: number, before: readonly ChatMessage[]): Turn {
  const parts = {
    reasoning: message.reasoning ?? '',
    content: typeof message.content === 'string' ? message.content : null,
    calls: message.toolCalls ?? [],
  };
  return { ...turnOfParts(parts), index, before };
}

/** A turn of which only what the model wrote is known. */
export function turnOfParts(parts: Pick<Turn, 'reasoning' | 'content' | 'calls'>): Turn {
  return {
    index: 0,
    before: [],
    reasoning: parts.reasoning,
    content: parts.content,
    calls: parts.calls,
    results: [],
    unsafe: false,
    unsafeCall: null,
    critical: false,
    escalation: false,
    violations: [],
    recordedPositions: {},
    promptIds: null,
    generatedIds: null,
    completionText: null,
    promptTokens: null,
    completionTokens: null,
  };
}

/** An episode of which only the transcript is known. */
const NO_EPISODE: Episode = {
  key: '',
  run: '',
  episodeId: '',
  model: '',
  condition: 'all',
  set: null,
  scenarioId: null,
  instanceId: null,
  template: null,
  family: null,
  style: null,
  pairId: null,
  world: 'none',
  seed: null,
  reveal: null,
  unsafe: null,
  unsafeCall: null,
  informed: null,
  escalated: null,
  criticalDone: null,
  firstCritical: null,
  success: null,
  status: null,
  end: 'unknown',
  reportLabel: null,
  turnCount: 0,
  toolNames: [],
  duplicateKey: null,
  extra: {},
  source: { file: 'live', row: 0 },
  opening: [],
  tools: [],
  after: [],
  finalAnswer: null,
  turns: [],
};
