import { type FamilyRow, formatFamily } from '../family-type.ts';
import { xmlCall } from '../xml-call.ts';
import { thinkTight } from './think.ts';

/** GLM 4.6: `\n<think>R</think>\nC\n<tool_call>X\n<arg_key>k</arg_key>\n<arg_value>v</arg_value>\n</tool_call>`; the next role ends the turn. */
const lines: FamilyRow['family'] = () =>
  formatFamily('glm-4.6', 'reasoning_content', {
    think: { ...thinkTight(true), open: '\n<think>', after: '\n' },
    calls: {
      ...xmlCall({
        open: '<tool_call>',
        beforeName: '',
        afterName: '\n',
        parameter: { beforeKey: '<arg_key>', afterKey: '</arg_key>\n<arg_value>', afterValue: '</arg_value>\n' },
        afterArgs: '',
        close: '</tool_call>',
        scalars: 'json',
      }),
      afterContent: '\n',
      between: '\n',
    },
    endOfTurn: '<|user|>',
    endOfCalls: '<|observation|>',
  });

/** GLM 4.7: the same elements without line ends, reasoning opened by the prompt. */
const tight: FamilyRow['family'] = () =>
  formatFamily('glm-4.7', 'reasoning_content', {
    think: thinkTight(true),
    calls: {
      ...xmlCall({
        open: '<tool_call>',
        beforeName: '',
        afterName: '',
        parameter: { beforeKey: '<arg_key>', afterKey: '</arg_key><arg_value>', afterValue: '</arg_value>' },
        afterArgs: '',
        close: '</tool_call>',
        scalars: 'json',
      }),
      afterContent: '',
      between: '',
    },
    endOfTurn: '<|user|>',
    endOfCalls: '<|observation|>',
  });

export const glm: FamilyRow = {
  name: 'glm',
  test: (text) => text.includes('<arg_key>') && text.includes('<arg_value>'),
  family: (text) => (text.includes('<tool_call>{function-name}<arg_key>') ? tight(text) : lines(text)),
};
