import { describe, expect, it } from 'vitest';
import { fromPlain } from '../../src/lib/json.ts';
import { parseJsonTags } from '../../src/pipeline/parse-turn.ts';

const call = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>';
const read = { name: 'read_file', arguments: fromPlain({ path: 'a' }) };

describe('parseJsonTags', () => {
  it.each([
    ['<think>\nLook.\n</think>\n\n' + call, { reasoning: 'Look.', content: null, calls: [read], invalid: null }],
    [
      '<think>\nLook.\n</think>\n\nI look.\n' + call,
      { reasoning: 'Look.', content: 'I look.', calls: [read], invalid: null },
    ],
    ['Look.\n</think>\n\n' + call, { reasoning: 'Look.', content: null, calls: [read], invalid: null }],
    ['<think>\n\n</think>\n\nDone.', { reasoning: '', content: 'Done.', calls: [], invalid: null }],
    ['Done.', { reasoning: '', content: 'Done.', calls: [], invalid: null }],
    ['', { reasoning: '', content: null, calls: [], invalid: null }],
    [call + '\n' + call, { reasoning: '', content: null, calls: [read, read], invalid: null }],
    [
      '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
      { reasoning: '', content: null, calls: [{ name: 'f', arguments: null }], invalid: null },
    ],
  ])('takes %j apart', (text, expected) => {
    expect(parseJsonTags(text)).toEqual(expected);
  });
  it.each([
    ['<tool_call>\n{"name": "f", "arguments": {}', 'a tool call without its closing tag'],
    ['<tool_call>\n{"name": f}\n</tool_call>', 'a tool call that is no JSON: unexpected "f" at character 9'],
    ['<tool_call>\n{"arguments": {}}\n</tool_call>', 'a tool call without a name'],
    ['<tool_call>\n["f"]\n</tool_call>', 'a tool call without a name'],
    ['{"name": "f"}</tool_call>', 'a closing tool_call tag without an opening one'],
    [call + '<tool_call>oops</tool_call>', 'a tool call that is no JSON: unexpected "o" at character 0'],
  ])('says why %j is no call, and reads no other call of that turn', (text, invalid) => {
    expect(parseJsonTags(text)).toMatchObject({ calls: [], invalid });
  });
  it('keeps reasoning that was cut off before it ended', () => {
    expect(parseJsonTags('<think>\nI was thin')).toEqual({
      reasoning: 'I was thin',
      content: null,
      calls: [],
      invalid: null,
    });
  });
});
