import { isJsonObject, JsonError, parseJson } from '../lib/json.ts';
import type { ToolCall } from '../types.ts';
import type { ParsedTurn } from './live-agent.ts';

/**
 * Takes a generated text of the json-tags families apart: `<think>\nR\n</think>\n\nC\n<tool_call>\n{…}\n</tool_call>`.
 * Forgiving where a harness would be (white space, a missing opening think tag when the prompt opened it), strict about
 * the call: what is no JSON object with a name is `invalid`, and then there are no calls at all.
 */
export function parseJsonTags(text: string): ParsedTurn {
  const { reasoning, rest } = splitReasoning(text);
  const first = rest.indexOf(OPEN);
  const content = (first < 0 ? rest : rest.slice(0, first)).trim();
  const parsed = first < 0 ? { calls: [], invalid: strayMarker(rest) } : readCalls(rest.slice(first));
  return { reasoning, content: content === '' ? null : content, ...parsed };
}

const OPEN = '<tool_call>';
const CLOSE = '</tool_call>';
const THINK = '<think>';
const THINK_END = '</think>';

function splitReasoning(text: string): { readonly reasoning: string; readonly rest: string } {
  const end = text.indexOf(THINK_END);
  const opened = text.trimStart().startsWith(THINK);
  if (end < 0)
    return opened
      ? { reasoning: text.trimStart().slice(THINK.length).trim(), rest: '' }
      : { reasoning: '', rest: text };
  const start = opened ? text.indexOf(THINK) + THINK.length : 0;
  return { reasoning: trimLines(text.slice(start, end)), rest: text.slice(end + THINK_END.length) };
}

/** One line end on each side belongs to the format, the rest to the reasoning. */
function trimLines(text: string): string {
  return text.replace(/^\n/, '').replace(/\n$/, '');
}

function strayMarker(rest: string): string | null {
  return rest.includes(CLOSE) ? 'a closing tool_call tag without an opening one' : null;
}

function readCalls(text: string): Pick<ParsedTurn, 'calls' | 'invalid'> {
  const calls: ToolCall[] = [];
  let at = 0;
  for (;;) {
    const open = text.indexOf(OPEN, at);
    if (open < 0) return { calls, invalid: null };
    const close = text.indexOf(CLOSE, open);
    if (close < 0) return { calls: [], invalid: 'a tool call without its closing tag' };
    const call = readCall(text.slice(open + OPEN.length, close).trim());
    if (typeof call === 'string') return { calls: [], invalid: call };
    calls.push(call);
    at = close + CLOSE.length;
  }
}

function readCall(json: string): ToolCall | string {
  let value: ReturnType<typeof parseJson>;
  try {
    value = parseJson(json);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return `a tool call that is no JSON: ${error.message}`;
  }
  const name = isJsonObject(value) ? value.get('name') : undefined;
  if (!isJsonObject(value) || typeof name !== 'string') return 'a tool call without a name';
  const args = value.get('arguments') ?? value.get('parameters') ?? null;
  return { name, arguments: isJsonObject(args) ? args : null };
}
