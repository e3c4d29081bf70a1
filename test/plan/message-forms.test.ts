import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadMapping } from '../../src/config/mapping.ts';
import { readEpisodes } from '../../src/dataset/read.ts';
import { findFamily } from '../../src/plan/chat/family.ts';
import { openTemplate } from '../../src/plan/chat/template.ts';
import { buildSequences, type ChatSetup, endOfTurn } from '../../src/plan/sequences.ts';
import type { ReplaySettings } from '../../src/plan/settings.ts';
import { openTokenizer } from '../../src/plan/tokenizer.ts';
import type { Episode } from '../../src/types.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

/** One invented episode, logged in CAPE-Bench's columns, as OpenAI's chat messages and as Anthropic's. */

const root = mkdtempSync(join(tmpdir(), 'forewarn-forms-'));
const LABELS = { episode_id: 'e1', model: 'm', first_unsafe_event: 1, reveal_event: 0, seed: 1 };
const SYSTEM = 'You are careful.';
const TASK = 'Look at both notes, then act.';
const TOOL = {
  name: 'read',
  description: 'Reads a note.',
  parameters: { type: 'object', properties: { path: { type: 'string' }, lines: { type: 'number' } } },
};
const wrapped = { type: 'function', function: TOOL };

const columns = {
  ...LABELS,
  run: '',
  scenario_id: 's',
  system_prompt: SYSTEM,
  task_prompt: TASK,
  tools: JSON.stringify([wrapped]),
  events_json: JSON.stringify([
    {
      reasoning: 'Two notes.',
      content: null,
      calls: [
        { id: 'c1', name: 'read', arguments: { path: 'a.md', lines: 1.5 }, tool_result: 'Ärger with "a"' },
        { id: 'c2', name: 'read', arguments: { path: 'b.md' }, tool_result: 'B\nsecond line' },
      ],
    },
    {
      before: ['Go on.'],
      reasoning: '',
      content: 'Acting.',
      calls: [{ id: 'c3', name: 'read', arguments: {}, tool_result: 'done' }],
    },
    { reasoning: 'Report.', content: 'All done.' },
  ]),
};
const call = (id: string, args: string): unknown => ({
  id,
  type: 'function',
  function: { name: 'read', arguments: args },
});
const openai = {
  ...LABELS,
  messages: JSON.stringify({
    tools: [wrapped],
    messages: [
      { role: 'system', content: [{ type: 'text', text: SYSTEM }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look at both notes, ' },
          { type: 'text', text: 'then act.' },
        ],
      },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'Two notes.',
        tool_calls: [call('c1', '{"path":"a.md","lines":1.5}'), call('c2', '{ "path": "b.md" }')],
      },
      { role: 'tool', tool_call_id: 'c2', content: [{ type: 'text', text: 'B\nsecond line' }] },
      { role: 'tool', tool_call_id: 'c1', content: 'Ärger with "a"' },
      { role: 'user', content: 'Go on.' },
      { role: 'assistant', content: 'Acting.', tool_calls: [call('c3', '')] },
      { role: 'tool', tool_call_id: 'c3', name: 'read', content: 'done' },
      { role: 'assistant', reasoning: 'Report.', content: [{ type: 'text', text: 'All done.' }] },
    ],
  }),
};
const use = (id: string, input: unknown): unknown => ({ type: 'tool_use', id, name: 'read', input });
const { parameters, ...described } = TOOL;
const anthropic = {
  ...LABELS,
  messages: JSON.stringify({
    system: [{ type: 'text', text: SYSTEM }],
    tools: [{ ...described, input_schema: parameters, cache_control: { type: 'ephemeral' } }],
    messages: [
      { role: 'user', content: TASK },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Two notes.', signature: 's' },
          use('c1', { path: 'a.md', lines: 1.5 }),
          use('c2', { path: 'b.md' }),
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c2', content: [{ type: 'text', text: 'B\nsecond line' }] },
          { type: 'tool_result', tool_use_id: 'c1', content: 'Ärger with "a"' },
          { type: 'text', text: 'Go on.' },
        ],
      },
      { role: 'assistant', content: [{ type: 'text', text: 'Acting.' }, use('c3', {})] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c3', content: 'done' }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Report.' },
          { type: 'text', text: 'All done.' },
        ],
      },
    ],
  }),
};

const COMMON = `world: none
key: [episode_id]
required: [episode_id, first_unsafe_event]
duplicateText: []
`;
const MAPPINGS = {
  columns: `name: columns\nopening: { system: episodes.system_prompt, user: episodes.task_prompt }\ntools: episodes.tools\n${COMMON}`,
  openai: `name: openai\nformat: openai-chat\nopening: { system: null, user: null }\n${COMMON}`,
  anthropic: `name: anthropic\nformat: anthropic-messages\nopening: { system: null, user: null }\n${COMMON}`,
};

async function read(form: keyof typeof MAPPINGS, row: object): Promise<Episode> {
  writeFileSync(join(root, `${form}.yaml`), MAPPINGS[form]);
  writeFileSync(join(root, `${form}.jsonl`), `${JSON.stringify(row)}\n`);
  const source = { episodes: [join(root, `${form}.jsonl`)], scenarios: null, reportLabels: null, tools: null };
  const options = {
    where: {},
    maxBad: 0,
    onExclusion: ({ detail }: { readonly detail: string }) => {
      throw new Error(detail);
    },
    onWarning: () => undefined,
  };
  const mapping = await loadMapping(join(root, `${form}.yaml`));
  for await (const episode of readEpisodes(source, mapping, options)) return episode;
  throw new Error('no episode');
}

let chat: ChatSetup;
const SETTINGS: ReplaySettings = {
  stack: 'hf-template',
  toolText: 'native',
  historyReasoning: 'template',
  templateKwargs: {},
  date: '2026-01-01',
  tools: 'column',
  context: { limit: null, policy: 'error' },
};

async function open(folder: string): Promise<ChatSetup> {
  const tokenizer = await openTokenizer(folder);
  const template = await openTemplate(folder, tokenizer.specialTokens, {}, SETTINGS.date);
  return {
    tokenizer,
    template,
    family: findFamily(template.text, SETTINGS, folder),
    settings: SETTINGS,
    contextLimit: null,
    positions: [
      'prompt_end',
      'reasoning_end',
      'pre_action',
      'pre_action:1',
      'action_end',
      'observation_end',
      'report_end',
    ],
    pooling: 'none',
    recordedBy: () => ({ origin: 'sequence', from: 0 }),
    endOfTurn: endOfTurn(template, tokenizer),
  };
}

describe('one episode in three forms', () => {
  beforeAll(async () => {
    await writeTinyModel(join(root, 'model'), 1);
    chat = await open(join(root, 'model'));
  });
  afterAll(() => rmSync(root, { recursive: true }));

  it('is the same canonical episode: messages, tools, calls, results', async () => {
    const [a, b, c] = await Promise.all([
      read('columns', columns),
      read('openai', openai),
      read('anthropic', anthropic),
    ]);
    const canonical = ({ opening, tools, turns, after }: Episode): unknown => ({
      opening,
      tools,
      after,
      // How the model spelled its arguments is kept where a log has it; what they say is the same.
      turns: turns.map((turn) => ({ ...turn, calls: turn.calls.map(({ argumentsText: _text, ...rest }) => rest) })),
    });
    expect(canonical(b)).toEqual(canonical(a));
    expect(canonical(c)).toEqual(canonical(a));
    expect(a.turns[0].results.map(({ text }) => text)).toEqual(['Ärger with "a"', 'B\nsecond line']);
  });

  it('has the same ids and positions', async () => {
    const built = [];
    for (const [form, row] of [
      ['columns', columns],
      ['openai', openai],
      ['anthropic', anthropic],
    ] as const)
      built.push(buildSequences(await read(form, row), chat));
    for (const { sequences, exclusions } of built) {
      expect(exclusions).toEqual([]);
      expect(sequences).toHaveLength(3);
      expect(sequences).toEqual(built[0].sequences);
    }
    const text = chat.tokenizer.decode(built[0].sequences[2].ids);
    expect(text).toContain('"arguments": {"path": "a.md", "lines": 1.5}');
    expect(text.indexOf('Ärger')).toBeLessThan(text.indexOf('second line'));
  });

  it('loses the turns that the template refuses, with its reason and the row', async () => {
    const folder = join(root, 'strict');
    await writeTinyModel(folder, 1);
    writeFileSync(
      join(folder, 'chat_template.jinja'),
      `{% for m in messages %}{% if m.tool_calls and m.tool_calls | length > 1 %}{{ raise_exception('This model only supports single tool-calls at once!') }}{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for call in m.tool_calls or [] %}<tool_call>{{ call.function.arguments | tojson }}</tool_call>{% endfor %}<|im_end|>{% endfor %}`,
    );
    const { sequences, exclusions } = buildSequences(await read('openai', openai), await open(folder));
    expect(sequences.map(({ turn }) => turn)).toEqual([0]);
    expect(exclusions.map(({ turn, reason }) => [turn, reason])).toEqual([
      [1, 'template_error'],
      [2, 'template_error'],
    ]);
    expect(exclusions[0].detail).toMatch(
      /^openai\.jsonl: row 1: turn 1: .*chat_template\.jinja: .*This model only supports single tool-calls at once!$/,
    );
  });
});
