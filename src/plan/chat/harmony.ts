import { UserError } from '../../errors.ts';
import { isJsonArray, isJsonObject } from '../../lib/json.ts';
import type { JsonObject, JsonValue } from '../../types.ts';
import { harmonyTool, toolsSection } from './harmony-tools.ts';
import { PythonError } from './jinja/values.ts';
import { dumpsPython } from './python-json.ts';

/**
 * gpt-oss as servers that use openai-harmony render it (vLLM, the Responses API), which is not what the chat template of the
 * model folder does: other tool text, results without quotes, other rules for earlier reasoning. Follows version 0.0.8 of the
 * library (golden cases: test/golden/harmony.json); how chat messages become its messages follows vLLM.
 */
export const HARMONY_VERSION = 'openai-harmony 0.0.8';

/** Control tokens stand for themselves; text is encoded as text even where it reads like a control token. */
export interface HarmonyPiece {
  readonly text: string;
  readonly control: boolean;
}

export interface HarmonyOptions {
  /** ISO day. */
  readonly date: string;
  /** Keep earlier reasoning also where the library drops it (before the first final answer, once the last one is final). */
  readonly keepAnalysis: boolean;
  readonly modelIdentity: string;
  readonly knowledgeCutoff: string;
  readonly reasoningEffort: 'low' | 'medium' | 'high';
  readonly validChannels: readonly string[];
  /** Where a leading system message goes: the developer message's instructions, or a system message of its own (vLLM to 0.11). */
  readonly systemAs: 'developer' | 'system';
}

interface HarmonyMessage {
  /** `user`, `assistant` …; for tools their name. */
  readonly author: string;
  readonly content: readonly string[];
  readonly channel?: string;
  readonly recipient?: string;
  readonly contentType?: string;
}

const KEYS = ['model_identity', 'knowledge_cutoff', 'reasoning_effort', 'valid_channels', 'system_as'];

/**
 * Options from `replay.templateKwargs`.
 * @throws UserError (2) for a key that the stack does not know
 */
export function harmonyOptions(
  kwargs: Readonly<Record<string, unknown>>,
  date: string,
  keepAnalysis: boolean,
): HarmonyOptions {
  const given = new Map(Object.entries(kwargs));
  for (const key of given.keys()) {
    if (!KEYS.includes(key))
      throw new UserError(
        `replay.templateKwargs: expected one of ${KEYS.join(', ')} with replay.stack: harmony, got ${JSON.stringify(key)}. Remove it`,
      );
  }
  const text = (key: string, fallback: string, allowed: readonly string[] | null = null): string => {
    const value = given.get(key) ?? fallback;
    if (typeof value === 'string' && (allowed === null || allowed.includes(value))) return value;
    throw new UserError(
      `replay.templateKwargs.${key}: expected ${allowed === null ? 'text' : allowed.join(', ')}, got ${JSON.stringify(value)}. Correct the value`,
    );
  };
  const channels = given.get('valid_channels') ?? ['analysis', 'commentary', 'final'];
  if (!Array.isArray(channels) || !channels.every((channel) => typeof channel === 'string'))
    throw new UserError(
      `replay.templateKwargs.valid_channels: expected a list of names, got ${JSON.stringify(channels)}. Correct the value`,
    );
  return {
    date,
    keepAnalysis,
    modelIdentity: text('model_identity', 'You are ChatGPT, a large language model trained by OpenAI.'),
    knowledgeCutoff: text('knowledge_cutoff', '2024-06'),
    reasoningEffort: text('reasoning_effort', 'medium', ['low', 'medium', 'high']) as HarmonyOptions['reasoningEffort'],
    validChannels: channels,
    systemAs: text('system_as', 'developer', ['developer', 'system']) as HarmonyOptions['systemAs'],
  };
}

/** Text of a chat message's content, part by part: parts are encoded one by one. */
function contentOf(content: JsonValue | undefined): string[] {
  if (typeof content === 'string') return [content];
  if (content === null || content === undefined) return [''];
  if (!isJsonArray(content)) throw new PythonError('ValidationError', 'content: expected text or a list of text parts');
  return content.map((part) => {
    if (typeof part === 'string') return part;
    const text = isJsonObject(part) ? part.get('text') : undefined;
    if (typeof text !== 'string') throw new PythonError('ValidationError', 'content: expected parts with text');
    return text;
  });
}

const textOf = (content: JsonValue | undefined): string => contentOf(content).join('');

function argumentsText(call: JsonObject): string {
  const inner = call.get('function');
  const value = isJsonObject(inner) ? inner.get('arguments') : null;
  return typeof value === 'string' ? value : value === null || value === undefined ? '' : dumpsPython(value);
}

function callName(call: JsonValue): string {
  const inner = isJsonObject(call) ? call.get('function') : undefined;
  const name = isJsonObject(inner) ? inner.get('name') : undefined;
  return typeof name === 'string' ? name : '';
}

/** Reasoning, then what was said beside the calls, then the calls: the order in which the model writes them. */
function assistantMessages(message: JsonObject): HarmonyMessage[] {
  const out: HarmonyMessage[] = [];
  const reasoning = message.get('reasoning') ?? message.get('reasoning_content') ?? message.get('thinking');
  if (typeof reasoning === 'string' && reasoning !== '')
    out.push({ author: 'assistant', content: [reasoning], channel: 'analysis' });
  const calls = message.get('tool_calls');
  const list = isJsonArray(calls) ? calls : [];
  const content = textOf(message.get('content'));
  if (content !== '')
    out.push({ author: 'assistant', content: [content], channel: list.length > 0 ? 'commentary' : 'final' });
  for (const call of list) {
    out.push({
      author: 'assistant',
      content: [isJsonObject(call) ? argumentsText(call) : ''],
      channel: 'commentary',
      recipient: `functions.${callName(call)}`,
      contentType: 'json',
    });
  }
  return out;
}

function chatMessages(messages: readonly JsonObject[]): HarmonyMessage[] {
  const names = new Map<JsonValue | undefined, string>();
  for (const message of messages) {
    const calls = message.get('tool_calls');
    for (const call of isJsonArray(calls) ? calls : [])
      if (isJsonObject(call)) names.set(call.get('id'), callName(call));
  }
  return messages.flatMap((message): HarmonyMessage[] => {
    const role = message.get('role');
    if (role === 'assistant') return assistantMessages(message);
    if (role === 'tool') {
      const own = message.get('name');
      const name = names.get(message.get('tool_call_id')) ?? (typeof own === 'string' ? own : '');
      return [
        {
          author: `functions.${name}`,
          content: [textOf(message.get('content'))],
          channel: 'commentary',
          recipient: 'assistant',
        },
      ];
    }
    if (role !== 'user' && role !== 'system' && role !== 'developer')
      throw new PythonError('ValueError', `Unknown role: ${JSON.stringify(role ?? null)}`);
    return [{ author: role, content: contentOf(message.get('content')) }];
  });
}

function systemText(options: HarmonyOptions, hasTools: boolean): string {
  const channels = `# Valid channels: ${options.validChannels.join(', ')}. Channel must be included for every message.${
    hasTools ? "\nCalls to these tools must go to the commentary channel: 'functions'." : ''
  }`;
  return [
    `${options.modelIdentity}\nKnowledge cutoff: ${options.knowledgeCutoff}\nCurrent date: ${options.date}`,
    `Reasoning: ${options.reasoningEffort}`,
    ...(options.validChannels.length === 0 ? [] : [channels]),
  ].join('\n\n');
}

/** The library's own rule: analysis before the first final answer goes once the last assistant message is final. */
function withoutOldAnalysis(messages: readonly HarmonyMessage[]): readonly HarmonyMessage[] {
  const last = messages.findLast((message) => message.author === 'assistant');
  if (last?.channel !== 'final') return messages;
  const first = messages.findIndex((message) => message.channel === 'final');
  return messages.filter((message, index) => index >= first || message.channel !== 'analysis');
}

const CONSTRAIN = '<|constrain|>';

function piecesOf(message: HarmonyMessage): HarmonyPiece[] {
  const pieces: HarmonyPiece[] = [];
  const control = (text: string): unknown => pieces.push({ text, control: true });
  const plain = (text: string): unknown => text !== '' && pieces.push({ text, control: false });
  control('<|start|>');
  plain(message.author);
  if (message.recipient !== undefined) plain(` to=${message.recipient}`);
  if (message.channel !== undefined) {
    control('<|channel|>');
    plain(message.channel);
  }
  if (message.contentType?.startsWith(CONSTRAIN) === true) {
    plain(' ');
    control(CONSTRAIN);
    plain(message.contentType.slice(CONSTRAIN.length));
  } else if (message.contentType !== undefined) plain(` ${message.contentType}`);
  control('<|message|>');
  for (const text of message.content) plain(text);
  control(message.author === 'assistant' && message.recipient !== undefined ? '<|call|>' : '<|end|>');
  return pieces;
}

/**
 * The prompt of the next assistant turn, piece by piece; the whole text is the pieces joined.
 * @param messages chat messages as dictionaries (role, content, reasoning or thinking, tool_calls, tool_call_id)
 * @throws PythonError for what the library does not take (the caller quarantines that row)
 */
export function renderHarmony(
  messages: readonly JsonValue[],
  tools: readonly JsonValue[] | null,
  options: HarmonyOptions,
  addGenerationPrompt = true,
): readonly HarmonyPiece[] {
  const all = messages.map((message) => {
    if (isJsonObject(message)) return message;
    throw new PythonError('ValidationError', 'messages: expected dictionaries');
  });
  const role = all[0]?.get('role');
  const leading = options.systemAs === 'developer' && (role === 'system' || role === 'developer');
  const instructions = leading ? textOf(all[0].get('content')) : null;
  const functions = (tools ?? []).map(harmonyTool);
  const sections = [
    ...(instructions === null ? [] : ['# Instructions', instructions]),
    ...(functions.length === 0 ? [] : [toolsSection(functions)]),
  ];
  const conversation: HarmonyMessage[] = [
    { author: 'system', content: [systemText(options, functions.length > 0)] },
    ...(sections.length === 0 ? [] : [{ author: 'developer', content: [sections.join('\n\n')] }]),
    ...chatMessages(leading ? all.slice(1) : all),
  ];
  const kept = options.keepAnalysis ? conversation : withoutOldAnalysis(conversation);
  const pieces = kept.flatMap(piecesOf);
  if (addGenerationPrompt) pieces.push({ text: '<|start|>', control: true }, { text: 'assistant', control: false });
  return pieces;
}

export const harmonyText = (pieces: readonly HarmonyPiece[]): string => pieces.map((piece) => piece.text).join('');

/**
 * Ids of a prompt: every piece is encoded on its own, as the library does.
 * @param encodeOrdinary text as text, also where it reads like a control token
 */
export function harmonyIds(
  pieces: readonly HarmonyPiece[],
  tokenizer: { idOf(token: string): number | null; encodeOrdinary(text: string): Int32Array },
): Int32Array {
  const ids: number[] = [];
  for (const { text, control } of pieces) {
    if (!control) {
      for (const id of tokenizer.encodeOrdinary(text)) ids.push(id);
      continue;
    }
    const id = tokenizer.idOf(text);
    if (id === null)
      throw new UserError(
        `replay.stack: expected a tokenizer with ${text} for harmony, got one without. Use hf-template, or the tokenizer of gpt-oss`,
      );
    ids.push(id);
  }
  return Int32Array.from(ids);
}
