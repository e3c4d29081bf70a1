import { namedCall } from '../call-formats.ts';
import { type FamilyRow, formatFamily } from '../family-type.ts';
import { thinkLines, thinkTight } from './think.ts';

const section = { open: '<｜tool▁calls▁begin｜>', close: '<｜tool▁calls▁end｜>' };
const OPEN = '<｜tool▁call▁begin｜>';
const CLOSE = '<｜tool▁call▁end｜>';

/** DeepSeek V3.1: `<｜tool▁call▁begin｜>X<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`. */
const bare: FamilyRow['family'] = () =>
  formatFamily('deepseek-v3.1', null, {
    think: thinkTight(false),
    calls: {
      ...namedCall({
        open: OPEN,
        beforeArgs: '<｜tool▁sep｜>',
        close: CLOSE,
        pattern: /\s*(?<name>[^<\s]+)<｜tool▁sep｜>/,
      }),
      section,
      afterContent: '',
      between: '',
    },
  });

/** DeepSeek R1 and its distillates: the kind of call first, the arguments in a fence. */
const fenced: FamilyRow['family'] = () =>
  formatFamily('deepseek-r1', null, {
    think: thinkLines(false),
    calls: {
      ...namedCall({
        open: OPEN,
        beforeName: 'function<｜tool▁sep｜>',
        beforeArgs: '\n```json\n',
        afterArgs: '\n```',
        close: CLOSE,
        pattern: /\s*\w+<｜tool▁sep｜>(?<name>[^<\s]+)\s*```json\s*/,
      }),
      section,
      afterContent: '',
      between: '\n',
    },
  });

export const deepseek: FamilyRow = {
  name: 'deepseek',
  test: (text) => text.includes(OPEN) && text.includes('<｜tool▁sep｜>'),
  family: (text) => (text.includes('```json') ? fenced(text) : bare(text)),
};
