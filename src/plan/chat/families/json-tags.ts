import { jsonCall } from '../call-formats.ts';
import { type FamilyRow, formatFamily } from '../family-type.ts';
import type { TurnFormat } from '../turn-format.ts';
import { thinkLines } from './think.ts';

/** `C\n<tool_call>\n{"name": …, "arguments": …}\n</tool_call>`: Hermes, Qwen 2.5 and 3, Granite 4, and tools as text. */
export const jsonTagCalls: TurnFormat['calls'] = {
  ...jsonCall({
    open: '<tool_call>',
    beforeName: '\n{"name": "',
    beforeArgs: '", "arguments": ',
    afterArgs: '}\n',
    close: '</tool_call>',
  }),
  afterContent: '\n',
  between: '\n',
};

export const jsonTagsFormat = (evenEmpty: boolean): TurnFormat => ({
  think: thinkLines(evenEmpty),
  calls: jsonTagCalls,
});

/** Qwen 3 decides by itself how long it thinks, but writes the block always; enable_thinking=false puts it into the prompt. */
export const qwen3: FamilyRow = {
  name: 'qwen3',
  test: (text) =>
    text.includes('<tool_call>\\n{"name"') && text.includes('<think>') && text.includes('enable_thinking'),
  family: () => formatFamily('qwen3', 'reasoning_content', jsonTagsFormat(true)),
};

export const jsonTags: FamilyRow = {
  name: 'json-tags',
  test: (text) =>
    text.includes('<tool_call>') &&
    text.includes('arguments') &&
    !text.includes('<function=') &&
    !text.includes('<arg_key>') &&
    !text.includes('<|channel|>'),
  family: (text) =>
    formatFamily('json-tags', text.includes('<think>') ? 'reasoning_content' : null, jsonTagsFormat(false)),
};
