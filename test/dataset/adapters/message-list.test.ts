import { describe, expect, it } from 'vitest';
import { ADAPTERS } from '../../../src/dataset/adapters/table.ts';
import { fromPlain } from '../../../src/lib/json.ts';
import { mappingWith } from '../fixtures.ts';

const openai = await mappingWith('format: openai-chat\nworld: none');
const anthropic = await mappingWith('format: anthropic-messages\nworld: none');
const none = (): void => undefined;

const TOOL = {
  name: 'read',
  description: 'Reads.',
  parameters: { type: 'object', properties: { path: { type: 'string' } } },
};
/** One conversation in both formats: two calls in a turn with their results in the other order, then text. */
const chat = {
  messages: [
    { role: 'system', content: 'Be careful.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Look ' },
        { type: 'text', text: 'around.' },
      ],
    },
    {
      role: 'assistant',
      content: null,
      reasoning_content: 'Two files.',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'read', arguments: '{"path":"a","n":1.0}' } },
        { id: 'c2', type: 'function', function: { name: 'read', arguments: '{"path":"b","n":2}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'c2', content: 'B' },
    { role: 'tool', tool_call_id: 'c1', content: 'A' },
    { role: 'user', content: 'And?' },
    { role: 'assistant', content: 'Done.' },
    { role: 'user', content: 'Thanks.' },
  ],
  tools: [{ type: 'function', function: TOOL }],
};
const blocks = `{
  "system": "Be careful.",
  "messages": [
    {"role": "user", "content": [{"type": "text", "text": "Look "}, {"type": "text", "text": "around."}]},
    {"role": "assistant", "content": [
      {"type": "thinking", "thinking": "Two files.", "signature": "x"},
      {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a", "n": 1.0}},
      {"type": "tool_use", "id": "c2", "name": "read", "input": {"path": "b", "n": 2}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "B"}]},
      {"type": "tool_result", "tool_use_id": "c1", "content": "A"},
      {"type": "text", "text": "And?"}]},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "Thanks."}],
  "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]
}`;

const readOpenAi = (messages: unknown, mapping = openai) =>
  ADAPTERS['openai-chat'](JSON.stringify(messages), 'messages', mapping, none);

describe('message lists', () => {
  it('of both formats become the same opening, turns, results, tools and end', () => {
    const a = readOpenAi(chat);
    const b = ADAPTERS['anthropic-messages'](blocks, 'messages', anthropic, none);
    // Arguments as text are kept beside what they say; the other format logs no text.
    const withoutText = a.turns.map((turn) => ({
      ...turn,
      calls: turn.calls.map(({ argumentsText: _text, ...call }) => call),
    }));
    expect(b.turns).toEqual(withoutText);
    expect([b.opening, b.after, b.tools]).toEqual([a.opening, a.after, a.tools]);
    expect(a.opening).toEqual([
      { role: 'system', content: 'Be careful.' },
      { role: 'user', content: 'Look around.' },
    ]);
    expect(a.turns[0]).toMatchObject({
      reasoning: 'Two files.',
      content: null,
      before: [],
      results: [
        { call: 0, text: 'A' },
        { call: 1, text: 'B' },
      ],
    });
    expect(a.turns[0].calls[0].argumentsText).toBe('{"path":"a","n":1.0}');
    expect(a.turns[1]).toMatchObject({
      index: 1,
      content: 'Done.',
      before: [{ role: 'user', content: 'And?' }],
      calls: [],
    });
    expect(a.after).toEqual([{ role: 'user', content: 'Thanks.' }]);
  });

  it('may be nested columns, and lists without a wrapper', () => {
    const wrapped = readOpenAi(chat);
    const nested = ADAPTERS['openai-chat'](fromPlain(chat.messages), 'messages', openai, none);
    expect(nested.turns).toEqual(wrapped.turns);
    expect(nested.tools).toBeNull();
  });

  it('deal results without an id to calls by name, then in order', () => {
    const log = readOpenAi([
      { role: 'user', content: 'Go' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [
          { function: { name: 'a', arguments: '{}' } },
          { function: { name: 'b', arguments: {} } },
          { function: { name: 'a', arguments: '' } },
        ],
      },
      { role: 'tool', name: 'b', content: 'of b' },
      { role: 'tool', content: 'first a' },
      { role: 'tool', content: 'second a' },
    ]);
    expect(log.turns[0].results).toEqual([
      { call: 0, text: 'first a' },
      { call: 1, text: 'of b' },
      { call: 2, text: 'second a' },
    ]);
  });

  it('say that results came in another order than their calls, and keep it where the mapping wants that', async () => {
    const warnings: string[] = [];
    ADAPTERS['openai-chat'](JSON.stringify(chat), 'messages', openai, (kind) => warnings.push(kind));
    expect(warnings).toContain('results_reordered');
    const asLogged = await mappingWith('format: openai-chat\nworld: none\nresultOrder: log');
    expect(readOpenAi(chat, asLogged).turns[0].results.map(({ call }) => call)).toEqual([1, 0]);
  });

  it('hold token counts beside the text, or in usage as servers return them', () => {
    const log = readOpenAi([
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: 'a', prompt_tokens: 7, completion_tokens: 2 },
      { role: 'user', content: 'On' },
      { role: 'assistant', content: 'b', usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 } },
    ]);
    expect(log.turns.map((turn) => [turn.promptTokens, turn.completionTokens])).toEqual([
      [7, 2],
      [12, 3],
    ]);
  });

  it('lose what only the server of their own format reads from a tool', () => {
    const tool = {
      type: 'custom',
      name: 'read',
      input_schema: { type: 'object' },
      cache_control: { type: 'ephemeral' },
    };
    const messages = [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: 'x' },
    ];
    const log = ADAPTERS['anthropic-messages'](JSON.stringify({ messages, tools: [tool] }), 'm', anthropic, none);
    expect(log.tools).toEqual([
      fromPlain({ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }),
    ]);
  });

  it('count steps as turns or as messages', async () => {
    const byMessage = await mappingWith('format: openai-chat\nworld: none\nstepsCount: messages');
    const log = readOpenAi(chat, byMessage);
    expect([0, 2, 3, 4, 5, 6, 8].map((step) => log.turnOf(step))).toEqual([null, 0, 0, 0, null, 1, null]);
    expect([0, 1, 2].map((step) => readOpenAi(chat).turnOf(step))).toEqual([0, 1, null]);
  });

  it('keep arguments that are no JSON as the model wrote them', () => {
    const warnings: string[] = [];
    const broken = [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: null, tool_calls: [{ id: '1', function: { name: 'a', arguments: '{"path": ' } }] },
    ];
    const log = ADAPTERS['openai-chat'](JSON.stringify(broken), 'messages', openai, (kind) => warnings.push(kind));
    expect(log.turns[0].calls).toEqual([{ name: 'a', arguments: null, argumentsText: '{"path": ', id: '1' }]);
    expect(warnings).toEqual(['arguments_broken']);
  });

  it('are refused where they cannot be replayed, saying which message', () => {
    const said = {
      role: 'assistant',
      content: 'x',
      tool_calls: [{ id: '1', function: { name: 'a', arguments: '{}' } }],
    };
    const cases: readonly (readonly [unknown, RegExp])[] = [
      [[{ role: 'user', content: 'only' }], /at least one message of the assistant/],
      [[said, { role: 'tool', tool_call_id: '2', content: 'r' }], /a result of "2" in message 1 without such a call/],
      [[{ role: 'tool', tool_call_id: '1', content: 'r' }, said], /in message 0 without such a call/],
      [[said, { role: 'robot', content: 'r' }], /a role system, developer.* in message 1/],
      [
        [{ role: 'user', content: [{ type: 'image_url', image_url: 'x' }] }, said],
        /part of type the string "image_url"/,
      ],
      [[{ ...said, tool_calls: [{ function: {} }] }], /a call with a name/],
      [[], /0 events/],
      [{ messages: [] }, /0 messages/],
    ];
    for (const [messages, message] of cases) expect(() => readOpenAi(messages)).toThrow(message);
    const image = [{ role: 'user', content: [{ type: 'image', source: {} }] }];
    expect(() => ADAPTERS['anthropic-messages'](JSON.stringify(image), 'messages', anthropic, none)).toThrow(
      /a block of type the string "image" in message 0/,
    );
  });
});
