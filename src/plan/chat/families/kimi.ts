import { namedCall } from '../call-formats.ts';
import { type FamilyRow, formatFamily } from '../family-type.ts';
import { thinkTight } from './think.ts';

/** Kimi K2: the call is named by its id, `functions.X:N`, numbered through the conversation. */
export const kimi: FamilyRow = {
  name: 'kimi',
  test: (text) => text.includes('<|tool_calls_section_begin|>'),
  family: (text) =>
    formatFamily('kimi', text.includes('reasoning_content') ? 'reasoning_content' : null, {
      think: text.includes('<think>') ? thinkTight(true) : null,
      calls: {
        ...namedCall({
          open: '<|tool_call_begin|>',
          beforeName: 'functions.',
          beforeArgs: (call, index) => `:${/:(\d+)$/.exec(call.id ?? '')?.[1] ?? index}<|tool_call_argument_begin|>`,
          close: '<|tool_call_end|>',
          pattern: /\s*(?:functions\.)?(?<name>[^:<\s]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>/,
        }),
        section: { open: '<|tool_calls_section_begin|>', close: '<|tool_calls_section_end|>' },
        afterContent: '',
        between: '',
      },
      endOfTurn: '<|im_end|>',
    }),
};
