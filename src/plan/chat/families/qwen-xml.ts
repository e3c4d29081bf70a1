import { type FamilyRow, formatFamily } from '../family-type.ts';
import type { TurnFormat } from '../turn-format.ts';
import { xmlCall } from '../xml-call.ts';
import { thinkLines } from './think.ts';

const calls = (scalars: 'json' | 'python', afterContent: string): TurnFormat['calls'] => ({
  ...xmlCall({
    open: '<tool_call>',
    beforeName: '\n<function=',
    afterName: '>\n',
    parameter: { beforeKey: '<parameter=', afterKey: '>\n', afterValue: '\n</parameter>\n' },
    afterArgs: '</function>\n',
    close: '</tool_call>',
    scalars,
  }),
  afterContent,
  between: '\n',
});

/**
 * Qwen 3.5, 3.6 and Qwen3-Coder: `<tool_call>\n<function=X>\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>`.
 * What the templates do with values that are no text differs: 3.5 and Coder print `True`, 3.6 prints `true`.
 */
export const qwenXml: FamilyRow = {
  name: 'qwen-xml',
  test: (text) => text.includes('<function=') && text.includes('<parameter='),
  family: (text) => {
    const scalars = /args_value\s*\|\s*string if args_value is string/.test(text) ? 'json' : 'python';
    const thinks = text.includes('reasoning_content');
    return formatFamily('qwen-xml', thinks ? 'reasoning_content' : null, {
      think: thinks ? thinkLines(true) : null,
      calls: calls(scalars, '\n\n'),
    });
  },
};
