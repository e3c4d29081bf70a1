import type { JsonValue, ToolCall, Turn } from '../../types.ts';
import type { CallStretches, Emission, ReadContext, ReadTurn, Stretch, WriteContext } from './emission.ts';
import { Writer } from './emission.ts';

/** How reasoning stands before the answer: `open R beforeClose close after`. */
export interface ThinkFormat {
  readonly open: string;
  readonly beforeClose: string;
  /** The marker itself. */
  readonly close: string;
  readonly after: string;
  /** A block is written also where there is nothing in it (models that always think). */
  readonly evenEmpty: boolean;
  /** A closing marker without an opening one, in text or prompt, is none. */
  readonly needsOpening?: boolean;
}

/** One call that was read: where it lies and what it says. */
export interface FoundCall {
  readonly stretches: CallStretches;
  readonly call: ToolCall;
}

/** How one call is spelled. */
export interface CallFormat {
  /** Text that opens a call: what a reader searches for. */
  readonly open: string;
  readonly write: (writer: Writer, call: ToolCall, index: number, turn: Turn) => CallStretches;
  /** The call whose opening text stands at `at`; a string says what is wrong with it. */
  readonly read: (text: string, at: number, tools: readonly JsonValue[]) => FoundCall | string;
  /** What says that a call was meant although none opens; null = nothing does. */
  readonly stray?: (text: string) => string | null;
}

export interface TurnFormat {
  readonly think: ThinkFormat | null;
  /** Around the content of a turn that calls nothing (`<|START_RESPONSE|>`). */
  readonly answer?: { readonly open: string; readonly close: string };
  readonly calls: CallFormat & {
    /** Around all calls of a turn. */
    readonly section?: { readonly open: string; readonly close: string };
    /** Between content and the first call. */
    readonly afterContent: string;
    /** Before the first call of a turn without content. */
    readonly alone?: string;
    readonly between: string;
  };
  /** Ends a turn; else what the template puts behind one. */
  readonly endOfTurn?: string;
  /** Ends a turn that calls, where it is another token. */
  readonly endOfCalls?: string;
}

/** What of `open` the prompt has not written already. */
function rest(prompt: string, open: string): string {
  for (let length = open.length; length > 0; length -= 1)
    if (prompt.endsWith(open.slice(0, length))) return open.slice(length);
  return open;
}

/** The prompt has opened the reasoning and not closed it. */
export const opensThink = (prompt: string, think: ThinkFormat): boolean => prompt.trimEnd().endsWith(think.open.trim());
const closesThink = (prompt: string, think: ThinkFormat): boolean => prompt.trimEnd().endsWith(think.close.trim());

export function writeTurn(format: TurnFormat, turn: Turn, { prompt, endOfTurn }: WriteContext): Emission {
  const writer = new Writer();
  const { think, calls, answer } = format;
  let reasoning: Stretch | null = null;
  let reasoningClose: Stretch | null = null;
  if (
    think !== null &&
    (turn.reasoning !== '' || opensThink(prompt, think) || (think.evenEmpty && !closesThink(prompt, think)))
  ) {
    writer.add(opensThink(prompt, think) ? rest(prompt, think.open) : think.open);
    const written = writer.add(turn.reasoning);
    writer.add(think.beforeClose);
    reasoning = turn.reasoning === '' ? null : written;
    reasoningClose = writer.add(think.close);
    writer.add(think.after);
  }
  let content: Stretch | null = null;
  const body = turn.content ?? '';
  const wrapped = answer !== undefined && turn.calls.length === 0;
  if (wrapped) writer.add(answer.open);
  if (body !== '') content = writer.add(body);
  if (wrapped) writer.add(answer.close);
  if (turn.calls.length > 0) {
    writer.add(content === null ? (calls.alone ?? '') : calls.afterContent);
    writer.add(calls.section?.open ?? '');
  }
  const stretches = turn.calls.map((call, index) => {
    if (index > 0) writer.add(calls.between);
    return calls.write(writer, call, index, turn);
  });
  if (turn.calls.length > 0) writer.add(calls.section?.close ?? '');
  const end = format.endOfTurn ?? endOfTurn;
  writer.add(turn.calls.length > 0 ? (format.endOfCalls ?? end) : end);
  return {
    text: writer.text,
    reasoning,
    reasoningClose,
    content,
    calls: withSection(stretches, calls.section),
  };
}

/** A position before the first call lies before the marker that opens the section. */
function withSection(calls: readonly CallStretches[], section: { readonly open: string } | undefined): CallStretches[] {
  return calls.map((call, index) =>
    index === 0 && section !== undefined
      ? { ...call, call: { start: call.call.start - section.open.length, end: call.call.end } }
      : call,
  );
}

/** @param endOfTurn what ends the text, if it still stands there */
export function readTurn(
  format: TurnFormat,
  text: string,
  { prompt, tools = [], endOfTurn = '' }: ReadContext,
): ReadTurn {
  const { think, calls, answer } = format;
  const { reasoning, reasoningClose, end: from } = readThink(think, text, prompt);
  const opening = calls.section?.open ?? calls.open;
  const first = text.indexOf(opening, from);
  let contentEnd = first < 0 ? text.length : first;
  const end = [format.endOfTurn, endOfTurn].find((one) => one !== undefined && one !== '' && text.endsWith(one));
  if (first < 0 && end !== undefined) contentEnd -= end.length;
  let contentStart = from;
  if (first < 0 && answer !== undefined) {
    const open = text.indexOf(answer.open, from);
    if (open >= 0) contentStart = open + answer.open.length;
    const close = text.indexOf(answer.close, contentStart);
    if (close >= 0) contentEnd = close;
  }
  const content = text.slice(contentStart, contentEnd).trim() === '' ? null : { start: contentStart, end: contentEnd };
  const found = first < 0 ? (calls.stray?.(text.slice(from)) ?? []) : readCalls(format, text, first, tools);
  const list = typeof found === 'string' ? [] : found;
  return {
    emission: { text, reasoning, reasoningClose, content, calls: list.map((item) => item.stretches) },
    calls: list.map((item) => item.call),
    invalid: typeof found === 'string' ? found : null,
  };
}

function readThink(
  think: ThinkFormat | null,
  text: string,
  prompt: string,
): { readonly reasoning: Stretch | null; readonly reasoningClose: Stretch | null; readonly end: number } {
  if (think === null) return { reasoning: null, reasoningClose: null, end: 0 };
  const lead = text.length - text.trimStart().length;
  const bare = think.open.trim();
  const opened = text.startsWith(bare, lead);
  let start = opened ? lead + bare.length : 0;
  // One line end on each side belongs to the format, the rest to the reasoning.
  if (think.open.endsWith('\n') && text[start] === '\n') start += 1;
  const unfinished = opened || opensThink(prompt, think);
  const close = think.needsOpening === true && !unfinished ? -1 : text.indexOf(think.close, start);
  if (close < 0) {
    return unfinished && text.slice(start).trim() !== ''
      ? { reasoning: { start, end: text.length }, reasoningClose: null, end: text.length }
      : { reasoning: null, reasoningClose: null, end: unfinished ? text.length : 0 };
  }
  let end = close;
  if (think.beforeClose !== '' && text.endsWith(think.beforeClose, end) && end - think.beforeClose.length >= start)
    end -= think.beforeClose.length;
  const closed = { start: close, end: close + think.close.length };
  let after = closed.end;
  for (const char of think.after) if (text[after] === char) after += 1;
  return { reasoning: end > start ? { start, end } : null, reasoningClose: closed, end: after };
}

/** The section closes behind the last call that was read. */
function ends(text: string, at: number, section: { readonly close: string } | undefined): boolean {
  const close = section?.close.trim() ?? '';
  return close !== '' && text.slice(at).trimStart().startsWith(close);
}

function readCalls(
  { calls }: TurnFormat,
  text: string,
  first: number,
  tools: readonly JsonValue[],
): FoundCall[] | string {
  const { section } = calls;
  const found: FoundCall[] = [];
  let at = first + (section?.open.length ?? 0);
  for (;;) {
    const open = text.indexOf(calls.open, at);
    if (open < 0 || (found.length > 0 && ends(text, at, section))) break;
    const call = calls.read(text, open, tools);
    if (typeof call === 'string') return call;
    found.push(call);
    at = call.stretches.call.end;
  }
  if (found.length === 0) return 'a tool call section without a call';
  const [head, ...more] = found;
  return section === undefined
    ? found
    : [{ ...head, stretches: { ...head.stretches, call: { start: first, end: head.stretches.call.end } } }, ...more];
}
