import { jsonCall } from '../call-formats.ts';
import { type FamilyRow, formatFamily } from '../family-type.ts';

/** Granite 3.3: `<|tool_call|>` and a JSON list. Its template prints no call at all, so history lacks them. */
export const granite3: FamilyRow = {
  name: 'granite-3',
  test: (text) => text.includes('<|tool_call|>') && text.includes('<|start_of_role|>'),
  family: () =>
    formatFamily('granite-3', null, {
      think: null,
      calls: {
        ...jsonCall({ open: '{', beforeName: '"name": "', beforeArgs: '", "arguments": ', afterArgs: '}', close: '' }),
        section: { open: '<|tool_call|>[', close: ']' },
        afterContent: '',
        between: ', ',
      },
    }),
};

/** Phi-4-mini: `<|tool_call|>{"name": …, "arguments": …}<|/tool_call|>`. */
export const phi4: FamilyRow = {
  name: 'phi-4',
  test: (text) => text.includes('<|/tool_call|>'),
  family: () =>
    formatFamily('phi-4', null, {
      think: null,
      calls: {
        ...jsonCall({
          open: '<|tool_call|>',
          beforeName: '{"name": "',
          beforeArgs: '", "arguments": ',
          afterArgs: '}',
          close: '<|/tool_call|>',
        }),
        afterContent: '',
        between: '',
      },
    }),
};
