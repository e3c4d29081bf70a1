import { jsonCall } from '../call-formats.ts';
import { type FamilyRow, formatFamily } from '../family-type.ts';

/** Llama 3.1 to 3.3: a call is the whole answer, `{"name": "X", "parameters": {…}}`, and there is one. */
const format = {
  think: null,
  calls: {
    ...jsonCall({
      open: '{"name"',
      beforeName: ': "',
      beforeArgs: '", "parameters": ',
      afterArgs: '}',
      close: '',
    }),
    afterContent: '',
    between: '; ',
  },
};

export const llama3: FamilyRow = {
  name: 'llama3',
  test: (text) => text.includes('<|start_header_id|>') && text.includes('"parameters": '),
  family: () => formatFamily('llama3', null, format),
};
