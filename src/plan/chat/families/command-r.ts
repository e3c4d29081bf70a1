import { jsonCall } from '../call-formats.ts';
import { type FamilyRow, formatFamily } from '../family-type.ts';

/** Command R7B: plan, then a list of actions in fixed lines; an answer stands between its own markers. */
export const commandR: FamilyRow = {
  name: 'command-r',
  test: (text) => text.includes('<|START_ACTION|>'),
  family: (text) =>
    formatFamily('command-r', text.includes('reasoning_content') ? 'reasoning_content' : 'tool_plan', {
      think: {
        open: '<|START_THINKING|>',
        beforeClose: '',
        close: '<|END_THINKING|>',
        after: '',
        evenEmpty: true,
      },
      answer: { open: '<|START_RESPONSE|>', close: '<|END_RESPONSE|>' },
      calls: {
        ...jsonCall({
          open: '{',
          beforeName: (_call, index) => `"tool_call_id": "${index}", "tool_name": "`,
          beforeArgs: '", "parameters": ',
          afterArgs: '}',
          close: '',
          keys: { name: 'tool_name', args: ['parameters'] },
        }),
        section: { open: '<|START_ACTION|>[\n    ', close: '\n]<|END_ACTION|>' },
        afterContent: '',
        between: ',\n    ',
      },
      endOfTurn: '<|END_OF_TURN_TOKEN|>',
    }),
};
