import type { CallStretches, Emission, Stretch } from './emission.ts';

export interface ReadingOptions {
  /** The prompt ends inside an open think block. */
  readonly thinkOpenInPrompt: boolean;
  /** Control token (with the text before it) that closes a turn. */
  readonly endOfTurn: string;
}

/**
 * Finds the parts of a turn in the text that was really generated: the counterpart of an `EmissionFormat`, which writes
 * that text from the parts. Markers are ASCII, so the text may also be bytes read as latin1.
 */
export type EmissionReader = (text: string, options: ReadingOptions) => Emission;

/** `<think>\nR\n</think>\n\nC\n<tool_call>\n{"name": …, "arguments": …}\n</tool_call>`, with the freedom that models take. */
export const readJsonTags: EmissionReader = (text, { thinkOpenInPrompt, endOfTurn }) => {
  const end = endOfTurn !== '' && text.endsWith(endOfTurn) ? text.length - endOfTurn.length : text.length;
  const { reasoning, reasoningClose, at } = readThinking(text, end, thinkOpenInPrompt);
  const calls: CallStretches[] = [];
  let contentEnd = end;
  for (let open = text.indexOf('<tool_call>', at); open >= 0 && open < end;) {
    if (calls.length === 0) contentEnd = open;
    const close = text.indexOf('</tool_call>', open);
    if (close < 0 || close >= end) break;
    const stop = close + '</tool_call>'.length;
    calls.push(readCall(text, { start: open, end: stop }, { start: close, end: stop }));
    open = text.indexOf('<tool_call>', stop);
  }
  return { text, reasoning, reasoningClose, content: trimmed(text, at, contentEnd), calls };
};

function readThinking(
  text: string,
  end: number,
  openInPrompt: boolean,
): { readonly reasoning: Stretch | null; readonly reasoningClose: Stretch | null; readonly at: number } {
  const opened = /^\s*<think>\n?/.exec(text);
  const start = opened?.[0].length ?? 0;
  const close = text.indexOf('</think>', start);
  if (close < 0 || close >= end || (opened === null && !openInPrompt)) {
    // Cut off while it was still thinking.
    const reasoning = opened === null && !openInPrompt ? null : trimmed(text, start, end);
    return { reasoning, reasoningClose: null, at: reasoning === null ? start : end };
  }
  const last = text[close - 1] === '\n' && close > start ? close - 1 : close;
  return {
    reasoning: last > start ? { start, end: last } : null,
    reasoningClose: { start: close, end: close + '</think>'.length },
    at: close + '</think>'.length,
  };
}

/** A call whose name or arguments cannot be found has them empty. */
function readCall(text: string, call: Stretch, close: Stretch): CallStretches {
  const body = text.slice(call.start, close.start);
  const place = (match: RegExpExecArray | null): Stretch => {
    const [from, to] = match?.indices?.[1] ?? [0, 0];
    return { start: call.start + from, end: call.start + to };
  };
  return {
    call,
    name: place(/"name"\s*:\s*"((?:[^"\\]|\\.)*)"/d.exec(body)),
    args: place(/"(?:arguments|parameters)"\s*:\s*(.*?)\s*\}\s*$/ds.exec(body)),
    close,
  };
}

function trimmed(text: string, start: number, end: number): Stretch | null {
  let [from, to] = [start, end];
  while (from < to && /\s/.test(text[from] ?? '')) from += 1;
  while (to > from && /\s/.test(text[to - 1] ?? '')) to -= 1;
  return to > from ? { start: from, end: to } : null;
}
