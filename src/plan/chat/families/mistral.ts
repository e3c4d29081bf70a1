import { jsonCall, namedCall } from '../call-formats.ts';
import { type FamilyRow, formatFamily } from '../family-type.ts';
import type { TurnFormat } from '../turn-format.ts';

/** Mistral Small 3.2: `[TOOL_CALLS]X[CALL_ID]id[ARGS]{…}`. Devstral: the same without the id. */
const marked = (withId: boolean): TurnFormat => ({
  think: null,
  calls: {
    ...namedCall({
      open: '[TOOL_CALLS]',
      beforeArgs: (call) => (withId ? `[CALL_ID]${call.id ?? ''}[ARGS]` : '[ARGS]'),
      close: '',
      pattern: /\s*(?<name>[^[\]{\s]+)(?:\[CALL_ID\][^[\]]*)?\[ARGS\]/,
    }),
    afterContent: '',
    between: '',
  },
});

/** Mistral Nemo: one list, `[TOOL_CALLS][{"name": "X", "arguments": {…}, "id": "…"}]`. */
const listed: TurnFormat = {
  think: null,
  calls: {
    ...jsonCall({
      open: '{',
      beforeName: '"name": "',
      beforeArgs: '", "arguments": ',
      afterArgs: (call) => (call.id === undefined ? '}' : `, "id": "${call.id}"}`),
      close: '',
    }),
    section: { open: '[TOOL_CALLS][', close: ']' },
    afterContent: '',
    between: ', ',
  },
};

export const mistral: FamilyRow = {
  name: 'mistral',
  test: (text) => text.includes('[TOOL_CALLS]'),
  family: (text) =>
    text.includes('[ARGS]')
      ? formatFamily('mistral', null, marked(text.includes('[CALL_ID]')))
      : formatFamily('mistral-list', null, listed),
};
