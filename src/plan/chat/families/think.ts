import type { ThinkFormat } from '../turn-format.ts';

/** `<think>\nR\n</think>\n\n`: Qwen and those who took it over. */
export const thinkLines = (evenEmpty: boolean): ThinkFormat => ({
  open: '<think>\n',
  beforeClose: '\n',
  close: '</think>',
  after: '\n\n',
  evenEmpty,
});

/** `<think>R</think>` without line ends. */
export const thinkTight = (evenEmpty: boolean): ThinkFormat => ({
  open: '<think>',
  beforeClose: '',
  close: '</think>',
  after: '',
  evenEmpty,
});
