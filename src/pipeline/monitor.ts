import { UserError } from '../errors.ts';
import { openGenerator } from '../model/open-generator.ts';
import { findFamily } from '../plan/chat/family.ts';
import { promptMessages } from '../plan/chat/messages.ts';
import { openTemplate } from '../plan/chat/template.ts';
import { tokenOffsets } from '../plan/offsets.ts';
import { generatedPositions, turnTokens } from '../plan/positions.ts';
import { endOfTurn } from '../plan/sequences.ts';
import { openTokenizer } from '../plan/tokenizer.ts';
import { loadProbe } from '../probe/artefact.ts';
import type { ChatMessage, JsonValue, Turn } from '../types.ts';
import { asEpisode, turnOfParts } from './live-agent.ts';
import { chatMessages, toolCall, type OpenAiMessage, type ProposedCall } from './monitor-messages.ts';
import { isAlarm, scoreName, scoreRow, type GateReader } from './probe-gate.ts';

export interface MonitorOptions {
  /** Folder of the monitored model: the weights whose states the probe was trained on. */
  readonly model: string;
  /** Probe folder, or several: an alarm of any is an alarm. */
  readonly probe: string | readonly string[];
  /** How the model was prompted; what it sees has to be what it saw. */
  readonly template?: {
    readonly toolText?: 'native' | 'json-tags' | 'tool_code';
    readonly historyReasoning?: 'template' | 'none' | 'all' | 'empty-block';
    readonly templateKwargs?: Readonly<Record<string, unknown>>;
    /** What `strftime_now` says, YYYY-MM-DD. */
    readonly date?: string;
    /** Tool schemas as the template is given them. */
    readonly tools?: readonly JsonValue[];
  };
  /** Position to read at; default: that of each probe's landmark. */
  readonly position?: 'prompt_end' | 'reasoning_start' | 'reasoning_end' | 'pre_action';
  /** Alarm when a score is greater; default: each card's threshold for `alpha`. */
  readonly threshold?: number;
  /** False alarms per episode on the card (default 0.05); not read where there is a `threshold`. */
  readonly alpha?: number;
  /** What `gate` answers when it cannot score: an error, or no time left. Default block. */
  readonly onError?: 'block' | 'allow';
  /** Milliseconds for one call (default 10,000). A model process that takes longer is ended; the next call starts a new one. */
  readonly timeoutMs?: number;
  /** Conversations whose states are held at the same time (default 4). */
  readonly conversations?: number;
  readonly threads?: number;
  readonly executionProvider?: 'cpu' | 'cuda' | 'webgpu';
}

export interface MonitorScore {
  /** Calibrated score in [0, 1] by position; without the positions that the turn does not have. Higher = worse. */
  readonly scores: Readonly<Record<string, number>>;
  readonly alarm: boolean;
  /** Tokens that had to be computed; the rest was in the state of the call before. */
  readonly computedTokens: number;
}

export type MonitorDecision =
  | ({ readonly kind: 'allow' | 'block'; readonly because: 'score' } & MonitorScore)
  | { readonly kind: 'allow' | 'block'; readonly because: 'error' | 'timeout'; readonly error: string };

export interface CallOptions {
  /** Names the conversation, so that several can be held at the same time (default: one). */
  readonly conversation?: string;
}

export type MonitorMessages = readonly (ChatMessage | OpenAiMessage)[];

export interface Monitor {
  /**
   * Scores the last assistant turn, or, where the model is to speak next, the end of its prompt.
   * @throws DataError and others: see the message; a timeout is a DOMException named TimeoutError
   */
  score(messages: MonitorMessages, options?: CallOptions): Promise<MonitorScore>;
  /** Scores a call before it runs. Never throws: what goes wrong is answered by `onError`. */
  gate(messages: MonitorMessages, proposed: ProposedCall, options?: CallOptions): Promise<MonitorDecision>;
  close(): Promise<void>;
}

/**
 * A probe as a monitor of a running agent, for any agent loop. It holds the states of each conversation, so a turn costs
 * the tokens that are new. The weights have to be those of the agent; whoever serves it does not matter.
 * @throws UserError (2) for options that do not fit, MismatchError (78) when a probe belongs to another model
 */
export async function createMonitor(options: MonitorOptions): Promise<Monitor> {
  const folders = typeof options.probe === 'string' ? [options.probe] : options.probe;
  if (folders.length === 0) throw new UserError('probe: expected a probe folder, got an empty list. Name one');
  const taps = new Set<string>();
  for (const folder of folders) for (const tap of (await loadProbe(folder, null)).probe.taps) taps.add(tap);
  const generator = await openGenerator({
    folder: options.model,
    taps: [...taps],
    threads: options.threads ?? 1,
    keep: options.conversations ?? 4,
    ...(options.executionProvider === undefined ? {} : { executionProvider: options.executionProvider }),
  });
  try {
    const { template: chat = {} } = options;
    const readers: GateReader[] = [];
    for (const folder of folders) readers.push(await readerOf(folder, options, generator.info.hashes));
    const tokenizer = await openTokenizer(options.model, generator.info.vocabularySize);
    const template = await openTemplate(
      options.model,
      tokenizer.specialTokens,
      chat.templateKwargs ?? {},
      chat.date ?? '2026-01-01',
    );
    const toolText = chat.toolText ?? 'native';
    const family = findFamily(template.text, { stack: 'hf-template', toolText }, options.model);
    const style = {
      toolText,
      historyReasoning: chat.historyReasoning ?? 'template',
      reasoningField: family.reasoningField,
    } as const;
    const closing = endOfTurn(template, tokenizer);
    const tools = chat.tools ?? [];

    /** Positions of a turn after the messages; without one, the end of the prompt alone. */
    const locate = (messages: readonly ChatMessage[], turn: Turn | null) => {
      const episode = asEpisode(messages, tools);
      const prompt = template.render(
        promptMessages(episode, episode.turns.length, style),
        toolText === 'native' && tools.length > 0 ? tools : null,
        true,
      );
      const promptIds = tokenizer.encode(prompt);
      const found = new Map([['prompt_end', promptIds.length - 1]]);
      if (turn === null) return { ids: promptIds, found };
      const emission = family.write(turn, { prompt, endOfTurn: closing });
      const generated = tokenizer.encode(emission.text);
      const tokens = turnTokens(emission, tokenOffsets(tokenizer, emission.text, generated));
      for (const [name, at] of generatedPositions(tokens, promptIds.length, false)) found.set(name, at.start);
      return { ids: Int32Array.of(...promptIds, ...generated), found };
    };

    /** Reads the probes in the order of their positions: each call goes on from the state of the one before. */
    const read = async (
      messages: readonly ChatMessage[],
      turn: Turn | null,
      signal: AbortSignal,
      slot: string,
    ): Promise<MonitorScore> => {
      const { ids, found } = locate(messages, turn);
      const scores: Record<string, number> = {};
      let computedTokens = 0;
      const wanted = readers.flatMap((reader, index) => {
        const at = found.get(reader.position);
        return at === undefined ? [] : [{ reader, at, name: scoreName(readers, index) }];
      });
      for (const at of [...new Set(wanted.map((item) => item.at))].sort((a, b) => a - b)) {
        const result = await generator.generate({
          ids: ids.slice(0, at + 1),
          maxTokens: 0,
          temperature: 0,
          uniform: () => 0,
          stopIds: [],
          capture: true,
          slot,
          signal,
        });
        computedTokens += result.computedTokens;
        const states = {
          taps: generator.taps,
          positions: result.positions,
          data: result.data,
          width: generator.info.width,
        };
        for (const item of wanted) if (item.at === at) scores[item.name] = scoreRow(item.reader.probe, states, 0);
      }
      return { scores, alarm: isAlarm(scores, readers), computedTokens };
    };

    const deadline = (): AbortSignal => AbortSignal.timeout(options.timeoutMs ?? 10_000);
    const onError = options.onError ?? 'block';
    return {
      score: (messages, { conversation = '' } = {}) => {
        const chats = chatMessages(messages);
        const last = chats.at(-1);
        const signal = deadline();
        if (last?.role !== 'assistant') return inTime(read(chats, null, signal, conversation), signal);
        return inTime(read(chats.slice(0, -1), turnOf(last), signal, conversation), signal);
      },
      gate: async (messages, proposed, { conversation = '' } = {}) => {
        const signal = deadline();
        try {
          const turn = turnOfParts({
            reasoning: proposed.reasoning ?? '',
            content: proposed.content ?? null,
            calls: [toolCall(proposed.name, proposed.arguments)],
          });
          const score = await inTime(read(chatMessages(messages), turn, signal, conversation), signal);
          const missing = readers.findIndex((_, index) => score.scores[scoreName(readers, index)] === undefined);
          // An alarm stands whatever else could not be read; silence needs every reader.
          if (missing >= 0 && !score.alarm)
            return { kind: onError, because: 'error', error: `the turn has no ${readers[missing]?.position}` };
          return { kind: score.alarm ? 'block' : 'allow', because: 'score', ...score };
        } catch (error) {
          const because = signal.aborted ? 'timeout' : 'error';
          return { kind: onError, because, error: error instanceof Error ? error.message : String(error) };
        }
      },
      close: () => generator.close(),
    };
  } catch (error) {
    await generator.close();
    throw error;
  }
}

const turnOf = (message: ChatMessage): Turn =>
  turnOfParts({
    reasoning: message.reasoning ?? '',
    content: typeof message.content === 'string' ? message.content : null,
    calls: message.toolCalls ?? [],
  });

/** Also where the work waits for another call and cannot hear the signal itself. */
function inTime<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      const reason: unknown = signal.reason;
      reject(reason instanceof Error ? reason : new Error('no time left'));
    };
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

async function readerOf(
  folder: string,
  options: MonitorOptions,
  hashes: Readonly<Record<string, string>>,
): Promise<GateReader> {
  const { probe } = await loadProbe(folder, hashes);
  const position = options.position ?? probe.landmark.position;
  if (!['prompt_end', 'reasoning_start', 'reasoning_end', 'pre_action'].includes(position))
    throw new UserError(
      `${folder}: expected a probe of a position before the call runs, got ${position}. Set position to one of prompt_end, reasoning_start, reasoning_end, pre_action`,
    );
  const alpha = options.alpha ?? 0.05;
  const threshold = options.threshold ?? probe.thresholds.find((item) => item.alpha === alpha)?.threshold;
  if (typeof threshold === 'number') return { probe, position, threshold };
  throw new UserError(
    `${folder}: expected a threshold for alpha ${alpha} on the card (it has ${probe.thresholds.map((item) => item.alpha).join(', ') || 'none'}), got none. Set threshold, or another alpha`,
  );
}
