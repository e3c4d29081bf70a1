import { describe, expect, it } from 'vitest';
import { fromPlain, parseJson } from '../../../src/lib/json.ts';
import { findFamily } from '../../../src/plan/chat/family.ts';
import { dumpsPython } from '../../../src/plan/chat/python-json.ts';
import { turnOfParts } from '../../../src/pipeline/live-agent.ts';
import type { JsonValue } from '../../../src/types.ts';

/** What of each template says which family it is: its own text is not ours to keep. */
const MARKS: Readonly<Record<string, string>> = {
  qwen3: '<think> enable_thinking reasoning_content <tool_call>\\n{"name": "arguments',
  'json-tags': '<tool_call> {"name": , "arguments": }',
  'qwen-xml': '<function= <parameter= reasoning_content args_value | string if args_value is string else',
  'gpt-oss': '<|channel|>analysis<|message|>',
  gemma4: "<|tool_call>call: <|channel>thought message.get('reasoning')",
  'glm-4.6': '<tool_call>{function-name}\n<arg_key> <arg_value>',
  'glm-4.7': '<tool_call>{function-name}<arg_key> <arg_value>',
  minimax: '<minimax:tool_call> <invoke name=',
  kimi: '<|tool_calls_section_begin|> <think> reasoning_content',
  'deepseek-v3.1': '<｜tool▁call▁begin｜><｜tool▁sep｜>',
  'deepseek-r1': '<｜tool▁call▁begin｜><｜tool▁sep｜> ```json',
  mistral: '[TOOL_CALLS] [CALL_ID] [ARGS]',
  'mistral-list': '[TOOL_CALLS][ tool_calls',
  'command-r': '<|START_ACTION|> reasoning_content',
  'granite-3': '<|tool_call|> <|start_of_role|>',
  'phi-4': '<|tool_call|> <|/tool_call|>',
  llama3: '<|start_header_id|> "parameters": tool_calls',
  plain: '{{ message.content }}',
};

const native = (name: string) =>
  findFamily(MARKS[name] ?? '', { stack: 'hf-template', toolText: 'native' }, 'template.jinja');
const turn = turnOfParts({
  reasoning: 'Think.',
  content: 'Look.',
  calls: [{ id: 'a1B2c3D07', name: 'bash', arguments: fromPlain({ cmd: 'ls "a"', n: 1 }) }],
});
const JSON_ARGS = '{"cmd": "ls \\"a\\"", "n": 1}';

describe('a family writes a turn in its own order and with its own markers', () => {
  it.each([
    [
      'qwen3',
      `<think>\nThink.\n</think>\n\nLook.\n<tool_call>\n{"name": "bash", "arguments": ${JSON_ARGS}}\n</tool_call><E>`,
    ],
    [
      'json-tags',
      `<think>\nThink.\n</think>\n\nLook.\n<tool_call>\n{"name": "bash", "arguments": ${JSON_ARGS}}\n</tool_call><E>`,
    ],
    [
      'qwen-xml',
      '<think>\nThink.\n</think>\n\nLook.\n\n<tool_call>\n<function=bash>\n<parameter=cmd>\nls "a"\n</parameter>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call><E>',
    ],
    [
      'gpt-oss',
      `<|start|>assistant<|channel|>analysis<|message|>Think.<|end|><|start|>assistant<|channel|>commentary<|message|>Look.<|end|><|start|>assistant<|channel|>commentary to=functions.bash <|constrain|>json<|message|>${JSON_ARGS}<|call|>`,
    ],
    [
      'gemma4',
      '<|channel>thought\nThink.\n<channel|>Look.<|tool_call>call:bash{cmd:<|"|>ls "a"<|"|>,n:1}<tool_call|><|tool_response>',
    ],
    [
      'glm-4.6',
      '\n<think>Think.</think>\nLook.\n<tool_call>bash\n<arg_key>cmd</arg_key>\n<arg_value>ls "a"</arg_value>\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n</tool_call><|observation|>',
    ],
    [
      'glm-4.7',
      '<think>Think.</think>Look.<tool_call>bash<arg_key>cmd</arg_key><arg_value>ls "a"</arg_value><arg_key>n</arg_key><arg_value>1</arg_value></tool_call><|observation|>',
    ],
    [
      'minimax',
      '<think>\nThink.\n</think>\n\nLook.\n<minimax:tool_call>\n<invoke name="bash">\n<parameter name="cmd">ls "a"</parameter>\n<parameter name="n">1</parameter>\n</invoke>\n</minimax:tool_call>[e~[',
    ],
    [
      'kimi',
      `<think>Think.</think>Look.<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>${JSON_ARGS}<|tool_call_end|><|tool_calls_section_end|><|im_end|>`,
    ],
    [
      'deepseek-v3.1',
      `<think>Think.</think>Look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>${JSON_ARGS}<｜tool▁call▁end｜><｜tool▁calls▁end｜><E>`,
    ],
    [
      'deepseek-r1',
      `<think>\nThink.\n</think>\n\nLook.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n\`\`\`json\n${JSON_ARGS}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜><E>`,
    ],
    ['mistral', `Look.[TOOL_CALLS]bash[CALL_ID]a1B2c3D07[ARGS]${JSON_ARGS}<E>`],
    ['mistral-list', `Look.[TOOL_CALLS][{"name": "bash", "arguments": ${JSON_ARGS}, "id": "a1B2c3D07"}]<E>`],
    [
      'command-r',
      `<|START_THINKING|>Think.<|END_THINKING|>Look.<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "bash", "parameters": ${JSON_ARGS}}\n]<|END_ACTION|><|END_OF_TURN_TOKEN|>`,
    ],
    ['granite-3', `Look.<|tool_call|>[{"name": "bash", "arguments": ${JSON_ARGS}}]<E>`],
    ['phi-4', `Look.<|tool_call|>{"name": "bash", "arguments": ${JSON_ARGS}}<|/tool_call|><E>`],
    ['llama3', `Look.{"name": "bash", "parameters": ${JSON_ARGS}}<E>`],
    ['plain', '<think>\nThink.\n</think>\n\nLook.\n```tool_code\nbash(cmd="ls \\"a\\"", n=1)\n```<E>'],
  ])('%s', (name, text) => {
    const family = native(name);
    const written = family.write(turn, { prompt: '', endOfTurn: '<E>' });
    expect(written.text).toBe(text);
    const [call] = written.calls;
    expect(text.slice(call.name.start, call.name.end)).toBe('bash');
    expect(call.call.start).toBeLessThan(call.name.start);
    const read = family.read(text, { prompt: '', endOfTurn: '<E>' });
    expect(read.invalid).toBeNull();
    expect(read.calls.map((item) => [item.name, dumpsPython(item.arguments)])).toEqual([['bash', JSON_ARGS]]);
    expect(read.emission.calls.map(({ call: own, name: called }) => [own, called])).toEqual([[call.call, call.name]]);
  });

  it('goes on where the prompt has opened the reasoning, and writes no empty block where it has closed it', () => {
    const family = native('qwen3');
    const write = (prompt: string, reasoning: string): string =>
      family.write(turnOfParts({ reasoning, content: 'x', calls: [] }), { prompt, endOfTurn: '' }).text;
    expect(write('assistant\n<think>\n', 'R')).toBe('R\n</think>\n\nx');
    expect(write('assistant\n<think>', 'R')).toBe('\nR\n</think>\n\nx');
    expect(write('assistant\n<think>\n', '')).toBe('\n</think>\n\nx');
    expect(write('assistant\n<think>\n\n</think>\n\n', '')).toBe('x');
    expect(write('assistant\n', '')).toBe('<think>\n\n</think>\n\nx');
  });
});

describe('a family reads what a model may write', () => {
  const read = (name: string, text: string, tools: readonly JsonValue[] = []) => {
    const found = native(name).read(text, { prompt: '', tools });
    return found.invalid ?? found.calls.map((item) => `${item.name} ${dumpsPython(item.arguments)}`);
  };
  const schema = parseJson(
    '[{"function": {"name": "f", "parameters": {"properties": {"s": {"type": "string"}, "n": {"type": "integer"}}}}}]',
  ) as readonly JsonValue[];

  it('tells text from numbers by the schema where the format has no quotes', () => {
    const text = (s: string, n: string): string =>
      `<tool_call>\n<function=f>\n<parameter=s>\n${s}\n</parameter>\n<parameter=n>\n${n}\n</parameter>\n</function>\n</tool_call>`;
    expect(read('qwen-xml', text('5', '5'), schema)).toEqual(['f {"s": "5", "n": 5}']);
    expect(read('qwen-xml', text('5', '5'))).toEqual(['f {"s": 5, "n": 5}']);
    expect(read('qwen-xml', text('True', 'True'), schema)).toEqual(['f {"s": "True", "n": true}']);
    expect(read('qwen-xml', text(' a\n\n', '1'), schema)).toEqual(['f {"s": " a\\n\\n", "n": 1}']);
  });
  it('reads nested arguments of Gemma 4, quotes within texts and all', () => {
    expect(
      read('gemma4', '<|tool_call>call:f{a:[<|"|>x, "y"}<|"|>,1.5,true],o:{k:null},e:{},l:[]}<tool_call|>'),
    ).toEqual(['f {"a": ["x, \\"y\\"}", 1.5, true], "o": {"k": null}, "e": {}, "l": []}']);
    expect(read('gemma4', '<|tool_call>call:f{a:[1<tool_call|>')).toBe('a tool call whose arguments cannot be read');
    expect(read('gemma4', '<|tool_call>call:f{}')).toBe('a tool call without its closing marker');
  });
  it('reads a call of gpt-oss in either order of its header, and its preamble as content', () => {
    expect(read('gpt-oss', ' to=functions.f<|channel|>commentary json<|message|>{"a": 1}<|call|>')).toEqual([
      'f {"a": 1}',
    ]);
    const text = '<|channel|>analysis<|message|>R<|end|><|start|>assistant<|channel|>final<|message|>C';
    const { emission } = native('gpt-oss').read(text, { prompt: '' });
    const { reasoning, reasoningClose, content } = emission;
    expect([reasoning, reasoningClose, content].map((part) => text.slice(part?.start, part?.end))).toEqual([
      'R',
      '<|end|>',
      'C',
    ]);
  });
  it('reads markers within JSON strings as text', () => {
    expect(read('json-tags', '<tool_call>{"name": "f", "arguments": {"a": "</tool_call>"}}</tool_call>')).toEqual([
      'f {"a": "</tool_call>"}',
    ]);
    expect(read('phi-4', '<|tool_call|>{"name":"f","arguments":{"a":"}<|/tool_call|>"}}<|/tool_call|>')).toEqual([
      'f {"a": "}<|/tool_call|>"}',
    ]);
  });
  it('says what is wrong with a call, and then reads none', () => {
    expect(read('deepseek-v3.1', '<｜tool▁calls▁begin｜>hm<｜tool▁calls▁end｜>')).toBe(
      'a tool call section without a call',
    );
    expect(read('mistral', '[TOOL_CALLS]f[ARGS]{"a": ')).toBe('a tool call whose arguments do not end');
    expect(read('plain', '```tool_code\nf(a=1')).toBe('a tool call without its closing fence');
    expect(read('minimax', '<minimax:tool_call>\n<invoke name="f">\n')).toBe('a tool call without its closing tag');
  });
});

describe('findFamily', () => {
  it('names the known formats where a template has another', () => {
    expect(() =>
      findFamily('{{ message.tool_calls }}', { stack: 'hf-template', toolText: 'native' }, 'm/chat_template.jinja'),
    ).toThrow(
      /^m\/chat_template\.jinja: expected a template that writes calls in a known format \(.*json-tags.*\), got/,
    );
  });
});
