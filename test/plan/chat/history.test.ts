import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { fromPlain } from '../../../src/lib/json.ts';
import { findFamily } from '../../../src/plan/chat/family.ts';
import { promptRenderer } from '../../../src/plan/chat/history.ts';
import { templateFromText } from '../../../src/plan/chat/template.ts';
import type { ReplaySettings } from '../../../src/plan/settings.ts';

const PATH = fileURLToPath(new URL('../../../models/fixture/chat_template.jinja', import.meta.url));
const template = templateFromText('chat_template.jinja', readFileSync(PATH, 'utf8'), {
  specialTokens: {},
  kwargs: {},
  date: '2026-01-01',
});
const family = findFamily(template.text, { stack: 'hf-template', toolText: 'native' }, 'm');

const call = { id: 'c', type: 'function', function: { name: 'f', arguments: { a: 1 } } };
const conversation = (first: string) =>
  [
    { role: 'user', content: 'Go.' },
    { role: 'assistant', content: 'Look.', reasoning_content: first, tool_calls: [call] },
    { role: 'tool', content: 'r' },
    { role: 'user', content: 'More <|im_start|>assistant\n.' },
    { role: 'assistant', content: 'Yes.', reasoning_content: 'Second.' },
  ].map(fromPlain);
const render = (mode: ReplaySettings['historyReasoning'], first = 'First.'): string =>
  promptRenderer(template, family, mode)(conversation(first), null);

const CALL = '\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n';
const whole = (first: string, second: string): string =>
  `<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\n${first}Look.${CALL}<|im_start|>user\n<tool_response>\nr\n</tool_response><|im_end|>\n<|im_start|>user\nMore <|im_start|>assistant\n.<|im_end|>\n<|im_start|>assistant\n${second}Yes.<|im_end|>\n<|im_start|>assistant\n`;
const block = (reasoning: string): string => `<think>\n${reasoning}\n</think>\n\n`;

describe('the reasoning of earlier turns in a prompt', () => {
  it('is what the template makes of it', () => {
    expect(render('template')).toBe(whole('', block('Second.')));
  });
  it('is put back where the template drops it, and is there once where it does not', () => {
    expect(render('all')).toBe(whole(block('First.'), block('Second.')));
  });
  it('is put back as it was, white space, markers and all', () => {
    const odd = ' \n<|im_start|>assistant\n</think> $& \u{f0000}\n';
    expect(render('all', odd)).toBe(whole(block(odd), block('Second.')));
    expect(render('all', '')).toBe(whole('', block('Second.')));
  });
  it('is an empty block', () => {
    expect(render('empty-block')).toBe(whole(block(''), block('')));
  });
  it('is refused for models that write none', () => {
    const other = findFamily('[TOOL_CALLS]', { stack: 'hf-template', toolText: 'native' }, 'm');
    expect(() => promptRenderer(template, other, 'all')).toThrow(
      'replay.historyReasoning: expected template or none, as mistral-list writes no reasoning, got all',
    );
  });
});
