import type { Turn } from '../../types.ts';
import { callText, toolCodeText } from './messages.ts';

/** A stretch of the generated text, UTF-16 units, end-exclusive. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
}

export interface CallStretches {
  /** The whole call with its markers. */
  readonly call: Stretch;
  readonly name: Stretch;
  readonly args: Stretch;
  /** Closing marker; empty where the format has none. */
  readonly close: Stretch;
}

/** What the model wrote in one turn, in the order it wrote it, and where its parts lie. */
export interface Emission {
  readonly text: string;
  readonly reasoning: Stretch | null;
  /** The marker that ends the reasoning (`</think>`). */
  readonly reasoningClose: Stretch | null;
  readonly content: Stretch | null;
  readonly calls: readonly CallStretches[];
}

/** How a family of models writes a turn. */
export type EmissionFormat = (
  turn: Turn,
  options: { readonly thinkOpenInPrompt: boolean; readonly emptyThink: boolean; readonly endOfTurn: string },
) => Emission;

class Writer {
  text = '';
  add(part: string): Stretch {
    const start = this.text.length;
    this.text += part;
    return { start, end: this.text.length };
  }
}

function thinking(
  writer: Writer,
  turn: Turn,
  options: Parameters<EmissionFormat>[1],
): { reasoning: Stretch | null; reasoningClose: Stretch | null } {
  if (turn.reasoning === '' && !options.emptyThink) return { reasoning: null, reasoningClose: null };
  if (!options.thinkOpenInPrompt) writer.add('<think>\n');
  const reasoning = writer.add(turn.reasoning);
  writer.add('\n');
  const reasoningClose = writer.add('</think>');
  writer.add('\n\n');
  return { reasoning: turn.reasoning === '' ? null : reasoning, reasoningClose };
}

/** `<think>\nR\n</think>\n\nC\n<tool_call>\n{"name": …, "arguments": …}\n</tool_call>` (Qwen 3, Hermes, SmolLM2 by json-tags). */
export const jsonTagsEmission: EmissionFormat = (turn, options) => {
  const writer = new Writer();
  const think = thinking(writer, turn, options);
  const content = turn.content === null || turn.content === '' ? null : writer.add(turn.content);
  const calls = turn.calls.map((call, index): CallStretches => {
    if (content !== null || index > 0) writer.add('\n');
    const parts = callText(call);
    const start = writer.text.length;
    writer.add(parts.before);
    const name = writer.add(parts.name);
    writer.add(parts.middle);
    const args = writer.add(parts.args);
    writer.add('}\n');
    const close = writer.add('</tool_call>');
    return { call: { start, end: writer.text.length }, name, args, close };
  });
  writer.add(options.endOfTurn);
  return { text: writer.text, ...think, content, calls };
};

/** Content, then fenced ```tool_code blocks (the text protocol of models without a tool format). */
export const toolCodeEmission: EmissionFormat = (turn, options) => {
  const writer = new Writer();
  const think = thinking(writer, turn, options);
  const content = turn.content === null || turn.content === '' ? null : writer.add(turn.content);
  const calls = turn.calls.map((call, index): CallStretches => {
    if (content !== null || index > 0) writer.add('\n');
    const text = toolCodeText({ ...turn, content: null, calls: [call] });
    const start = writer.text.length;
    writer.add('```tool_code\n');
    const name = writer.add(call.name);
    const inner = text.slice('```tool_code\n'.length + call.name.length + 1, -')\n```'.length);
    writer.add('(');
    const args = writer.add(inner);
    writer.add(')\n');
    const close = writer.add('```');
    return { call: { start, end: writer.text.length }, name, args, close };
  });
  writer.add(options.endOfTurn);
  return { text: writer.text, ...think, content, calls };
};
