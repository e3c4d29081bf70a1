import type { Turn } from '../../../types.ts';
import { namedCall } from '../call-formats.ts';
import { type Emission, type ReadTurn, type Stretch, type WriteContext, Writer } from '../emission.ts';
import type { Family, FamilyRow } from '../family-type.ts';

/**
 * gpt-oss: one message a channel. The header of a call is the one the model writes
 * (`<|channel|>commentary to=functions.X <|constrain|>json`), not the one its template renders for history.
 */
const call = namedCall({
  open: '<|start|>assistant',
  beforeName: '<|channel|>commentary to=functions.',
  beforeArgs: ' <|constrain|>json<|message|>',
  close: '<|call|>',
  // The recipient may stand before or behind the channel, with or without a constraint.
  pattern:
    /(?:<\|channel\|>\w+)?\s*to=(?:functions\.)?(?<name>[^\s<]+)\s*(?:<\|channel\|>\w+)?\s*(?:(?:<\|constrain\|>)?\s*json)?\s*<\|message\|>/,
});

const START = '<|start|>assistant';
const FINAL = '<|channel|>final<|message|>';
const PREAMBLE = '<|channel|>commentary<|message|>';
const ANALYSIS = '<|channel|>analysis<|message|>';
const END = '<|end|>';

function write(turn: Turn, { prompt }: WriteContext): Emission {
  const writer = new Writer();
  let started = prompt.endsWith(START);
  const start = (): void => {
    if (!started) writer.add(START);
    started = false;
  };
  start();
  writer.add(ANALYSIS);
  const written = writer.add(turn.reasoning);
  const reasoningClose = writer.add(END);
  const body = turn.content ?? '';
  let content: Stretch | null = null;
  if (turn.calls.length === 0) {
    start();
    writer.add(FINAL);
    content = body === '' ? null : writer.add(body);
    writer.add('<|return|>');
  } else if (body !== '') {
    start();
    writer.add(PREAMBLE);
    content = writer.add(body);
    writer.add(END);
  }
  const calls = turn.calls.map((item, index) => call.write(writer, item, index, turn));
  return { text: writer.text, reasoning: turn.reasoning === '' ? null : written, reasoningClose, content, calls };
}

/** Header, text and end of each message of a generated text. */
const MESSAGE =
  /(?<header>(?:(?!<\|message\|>)[\s\S])*)<\|message\|>(?<text>(?:(?!<\|(?:end|call|return|start)\|>)[\s\S])*)(?<end><\|(?:end|call|return)\|>)?/dgy;

function read(text: string): ReadTurn {
  let reasoning: Stretch | null = null;
  let reasoningClose: Stretch | null = null;
  let content: Stretch | null = null;
  const calls: Emission['calls'][number][] = [];
  const found: ReadTurn['calls'][number][] = [];
  MESSAGE.lastIndex = 0;
  for (let match = MESSAGE.exec(text); match !== null; match = MESSAGE.exec(text)) {
    const { header, end } = match.groups!;
    const [from, to] = match.indices!.groups!['text'];
    const span = to > from ? { start: from, end: to } : null;
    if (/\bto=/.test(header)) {
      const at = match.index;
      // The first message of a turn lacks the opening marker: the prompt has written it.
      const opened = text.startsWith(START, at);
      const item = opened ? call.read(text, at, []) : call.read(`${START}${text.slice(at)}`, 0, []);
      if (typeof item === 'string')
        return { emission: { text, reasoning, reasoningClose, content, calls: [] }, calls: [], invalid: item };
      calls.push(opened ? item.stretches : shifted(item.stretches, at, START.length));
      found.push(item.call);
      MESSAGE.lastIndex = Math.max(MESSAGE.lastIndex, calls.at(-1)!.call.end);
    } else if (header.includes('analysis')) {
      reasoning ??= span;
      const close = match.indices!.groups!['end'] as readonly [number, number] | undefined;
      if (end === END && close !== undefined) reasoningClose ??= { start: close[0], end: close[1] };
    } else content ??= span;
  }
  return { emission: { text, reasoning, reasoningClose, content, calls }, calls: found, invalid: null };
}

function shifted(call: Emission['calls'][number], at: number, lead: number): Emission['calls'][number] {
  const move = ({ start, end }: Stretch): Stretch => ({ start: Math.max(at, start + at - lead), end: end + at - lead });
  return { call: move(call.call), name: move(call.name), args: move(call.args), close: move(call.close) };
}

const family: Family = {
  name: 'gpt-oss',
  reasoningField: 'thinking',
  rendersCalls: true,
  historyBlock: {
    text: (reasoning) => `${START}${ANALYSIS}${reasoning}${END}`,
    place: 'before header',
    empties: [],
    open: '',
    close: '',
  },
  write,
  read: (text) => read(text),
};

export const gptOss: FamilyRow = {
  name: 'gpt-oss',
  test: (text) => text.includes('<|channel|>analysis<|message|>'),
  family: () => family,
};
