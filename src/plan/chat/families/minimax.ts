import { type FamilyRow, formatFamily } from '../family-type.ts';
import { xmlCall } from '../xml-call.ts';
import { thinkLines } from './think.ts';

/** MiniMax M2: `<minimax:tool_call>\n<invoke name="X">\n<parameter name="k">v</parameter>\n</invoke>\n</minimax:tool_call>`. */
export const minimax: FamilyRow = {
  name: 'minimax',
  test: (text) => text.includes('<minimax:tool_call>') && text.includes('<invoke name='),
  family: () =>
    formatFamily('minimax', 'reasoning_content', {
      think: thinkLines(true),
      calls: {
        ...xmlCall({
          open: '<invoke name="',
          beforeName: '',
          afterName: '">\n',
          parameter: { beforeKey: '<parameter name="', afterKey: '">', afterValue: '</parameter>\n' },
          afterArgs: '',
          close: '</invoke>',
          scalars: 'json',
        }),
        section: { open: '<minimax:tool_call>\n', close: '\n</minimax:tool_call>' },
        afterContent: '\n',
        alone: '\n',
        between: '\n',
      },
      endOfTurn: '[e~[',
    }),
};
