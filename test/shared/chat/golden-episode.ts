import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isJsonArray, isJsonObject, parseJson } from '../../../src/lib/json.ts';
import { findFamily } from '../../../src/plan/chat/family.ts';
import { type ChatTemplate, templateFromText } from '../../../src/plan/chat/template.ts';
import type { ChatSetup } from '../../../src/plan/sequences.ts';
import { endOfTurn } from '../../../src/plan/sequences.ts';
import { type OpenTokenizer, openTokenizer } from '../../../src/plan/tokenizer.ts';
import type { ChatMessage, Episode, JsonObject, JsonValue, ToolCall, ToolResult, Turn } from '../../../src/types.ts';
import { chatFixtures } from '../fixtures.ts';

interface TemplateEntry {
  readonly file: string;
  readonly tokenizer: string | null;
  readonly special_tokens: Readonly<Record<string, unknown>>;
}

export const templateIndex = (): Readonly<Record<string, TemplateEntry>> =>
  (
    JSON.parse(readFileSync(join(chatFixtures(), 'templates', 'index.json'), 'utf8')) as {
      templates: Record<string, TemplateEntry>;
    }
  ).templates;

export const templateText = (name: string): string =>
  readFileSync(join(chatFixtures(), 'templates', templateIndex()[name].file), 'utf8');

const opened = new Map<string, Promise<OpenTokenizer>>();
export function goldenTokenizer(name: string): Promise<OpenTokenizer> {
  const known = opened.get(name) ?? openTokenizer(join(chatFixtures(), 'tokenizers', name));
  opened.set(name, known);
  return known;
}

export function goldenTemplate(
  name: string,
  now: string,
  kwargs: Readonly<Record<string, unknown>> = {},
): ChatTemplate {
  const entry = templateIndex()[name];
  return templateFromText(entry.file, templateText(name), { specialTokens: entry.special_tokens, kwargs, date: now });
}

export function chatSetup(tokenizer: OpenTokenizer, template: ChatTemplate, positions: readonly string[]): ChatSetup {
  const settings = { stack: 'hf-template', toolText: 'native' } as const;
  return {
    tokenizer,
    template,
    family: findFamily(template.text, settings, template.path),
    settings: {
      ...settings,
      historyReasoning: 'template',
      templateKwargs: {},
      date: '2025-08-15',
      tools: 'column',
      context: { limit: null, policy: 'error' },
    },
    contextLimit: null,
    positions,
    pooling: 'none',
    recordedBy: () => ({ origin: 'sequence', from: 0 }),
    endOfTurn: endOfTurn(template, tokenizer),
  };
}

const REASONING = ['reasoning_content', 'thinking', 'reasoning', 'tool_plan'];
const textOf = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');

function callOf(value: JsonValue): ToolCall {
  const call = value as JsonObject;
  const inner = call.get('function') as JsonObject;
  return { id: textOf(call.get('id')), name: textOf(inner.get('name')), arguments: inner.get('arguments') ?? null };
}

const NO_TURN: Omit<Turn, 'index' | 'before' | 'reasoning' | 'content' | 'calls' | 'results'> = {
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

/** The canonical episode of a golden context (`{messages, tools, …}` as JSON text). */
export function goldenEpisode(context: string, key: string): Episode {
  const value = parseJson(context) as JsonObject;
  const messages = value.get('messages');
  const tools = value.get('tools');
  const turns: Turn[] = [];
  const opening: ChatMessage[] = [];
  let before: ChatMessage[] = [];
  for (const message of isJsonArray(messages ?? null) ? (messages as readonly JsonValue[]) : []) {
    if (!isJsonObject(message)) throw new Error('a message that is no object');
    const role = textOf(message.get('role'));
    const last = turns.at(-1);
    const content = message.get('content') ?? null;
    if (role === 'assistant') {
      const calls = message.get('tool_calls');
      turns.push({
        ...NO_TURN,
        index: turns.length,
        before,
        reasoning: textOf(REASONING.map((name) => message.get(name)).find((item) => item !== undefined)),
        content: typeof content === 'string' ? content : null,
        calls: isJsonArray(calls ?? null) ? (calls as readonly JsonValue[]).map(callOf) : [],
        results: [],
      });
      before = [];
    } else if (role === 'tool' && last !== undefined) {
      const id = textOf(message.get('tool_call_id'));
      const call = last.calls.findIndex((item) => item.id === id);
      const result: ToolResult = { text: textOf(content), call: Math.max(0, call) };
      turns[turns.length - 1] = { ...last, results: [...last.results, result] };
    } else (last === undefined ? opening : before).push({ role, content });
  }
  return {
    ...EMPTY,
    key,
    opening,
    turns,
    turnCount: turns.length,
    tools: isJsonArray(tools ?? null) ? (tools as readonly JsonValue[]) : [],
    after: before,
  };
}

const EMPTY: Episode = {
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
  source: { file: 'golden', row: 0 },
  opening: [],
  tools: [],
  after: [],
  finalAnswer: null,
  turns: [],
};

/** Template variables of a context beyond those every render gets. */
export function kwargsOf(context: string): Readonly<Record<string, unknown>> {
  const {
    messages: _m,
    tools: _t,
    documents: _d,
    add_generation_prompt: _g,
    ...kwargs
  } = JSON.parse(context) as Record<string, unknown>;
  return kwargs;
}
