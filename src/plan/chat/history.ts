import { UserError } from '../../errors.ts';
import { isJsonObject } from '../../lib/json.ts';
import type { JsonValue } from '../../types.ts';
import { coreOf } from '../positions.ts';
import { FIRST_CALL, type Mark, markedStretches } from '../sentinels.ts';
import type { ReplaySettings } from '../settings.ts';
import type { Family, HistoryBlock } from './family-type.ts';
import type { ChatTemplate } from './template.ts';

/** The prompt of messages whose reasoning is as `replay.historyReasoning` says. */
export type RenderPrompt = (messages: readonly JsonValue[], tools: readonly JsonValue[] | null) => string;

/**
 * What earlier turns' reasoning becomes in a prompt is a property of client and server, not of the template alone:
 * `template` and `none` hand the reasoning to the template or do not. `all` renders without and puts every turn's reasoning
 * back as the family writes it; `empty-block` an empty block (servers that lose the field but keep the block).
 * @returns a function that throws what the template raises, and Error where a block has no place
 * @throws UserError (2) for a family that writes no reasoning
 */
export function promptRenderer(
  template: ChatTemplate,
  family: Family,
  mode: ReplaySettings['historyReasoning'],
): RenderPrompt {
  if (mode === 'template' || mode === 'none') return (messages, tools) => template.render(messages, tools, true);
  const { historyBlock } = family;
  if (historyBlock === null)
    throw new UserError(
      `replay.historyReasoning: expected template or none, as ${family.name} writes no reasoning, got ${mode}`,
    );
  const field = family.reasoningField ?? 'reasoning_content';
  return (given, tools) => {
    const messages = given.map((message) => withoutField(message, field));
    const render = (items: readonly JsonValue[]): string => template.render(items, tools, true);
    const plain = render(messages);
    const turns = assistantTurns(given, field).filter(({ reasoning }) => mode === 'empty-block' || reasoning !== '');
    const marks = turns.flatMap((turn) => turn.marks);
    const stretches = markedStretches(render, messages, marks, plain);
    const header = turns.length === 0 ? '' : headerOf(template, historyBlock, messages, tools);
    /** Where the words of an assistant message begin, between the turn before and the first of its own words found. */
    const wordsBegin = (message: number, floor: number, anchor: number): number => {
      const before = header === '' ? -1 : plain.lastIndexOf(header, anchor - header.length);
      if (before >= floor) return before + header.length;
      // A turn that goes on behind a result has no header (Gemma 4, DeepSeek): it begins where its prompt ended.
      const prompt = untilMarkers(render(messages.slice(0, message)), historyBlock);
      return prompt.length >= floor && prompt.length <= anchor && plain.startsWith(prompt) ? prompt.length : -1;
    };
    const edits: { readonly start: number; readonly end: number; readonly text: string }[] = [];
    let next = 0;
    let floor = 0;
    for (const { message, reasoning, marks: own } of turns) {
      const found = own.map(() => stretches[next++]).filter((stretch) => stretch !== null);
      const anchor = found.length === 0 ? -1 : Math.min(...found.map((stretch) => stretch.start));
      const begin = anchor < 0 ? -1 : wordsBegin(message, floor, anchor);
      if (begin < 0)
        throw new Error(
          `replay.historyReasoning ${mode}: the template shows no place for the reasoning of message ${message}`,
        );
      const at = historyBlock.place === 'behind header' ? begin : begin - header.length;
      const empty = historyBlock.empties.find((text) => plain.startsWith(text, at)) ?? '';
      if (reasoning !== '' || empty === '')
        edits.push({ start: at, end: at + empty.length, text: historyBlock.text(mode === 'all' ? reasoning : '') });
      floor = anchor;
    }
    let out = plain;
    for (const { start, end, text } of edits.toReversed()) out = `${out.slice(0, start)}${text}${out.slice(end)}`;
    return out;
  };
}

function withoutField(message: JsonValue, field: string): JsonValue {
  return isJsonObject(message) && message.has(field)
    ? new Map(Array.from(message).filter(([name]) => name !== field))
    : message;
}

function textOf(message: JsonValue, field: string): string {
  const value = isJsonObject(message) ? message.get(field) : undefined;
  return typeof value === 'string' ? value : '';
}

interface AssistantTurn {
  readonly message: number;
  readonly reasoning: string;
  /** Content and the first call: where the turn stands in the prompt. */
  readonly marks: readonly Mark[];
}

function assistantTurns(messages: readonly JsonValue[], field: string): AssistantTurn[] {
  const out: AssistantTurn[] = [];
  for (const [message, value] of messages.entries()) {
    if (!isJsonObject(value) || value.get('role') !== 'assistant') continue;
    const content = textOf(value, 'content');
    const core = coreOf(content, { start: 0, end: content.length });
    const marks: Mark[] = core.end > core.start ? [{ message, ...core }] : [];
    if (value.get(FIRST_CALL) !== undefined) marks.push({ message, field: FIRST_CALL, start: 0, end: 0 });
    const reasoning = textOf(value, field);
    // A turn that wrote nothing has no place, and needs none unless it thought.
    if (marks.length > 0 || reasoning !== '') out.push({ message, reasoning, marks });
  }
  return out;
}

/** What the template writes before an assistant's own words, without what it writes of reasoning. '' = nothing is known. */
function headerOf(
  template: ChatTemplate,
  block: HistoryBlock,
  messages: readonly JsonValue[],
  tools: readonly JsonValue[] | null,
): string {
  const first = messages.findIndex((message) => isJsonObject(message) && message.get('role') === 'assistant');
  const before = messages.slice(0, first);
  const asked = template.render(before, tools, true);
  const bare = template.render(before, tools, false);
  return asked.startsWith(bare) ? untilMarkers(asked.slice(bare.length), block) : '';
}

/** A prompt up to where its end opens, or opens and closes, the reasoning. */
function untilMarkers(prompt: string, { open, close }: HistoryBlock): string {
  const cut = (text: string, marker: string): string => {
    const words = marker.trim();
    if (words === '' || !text.trimEnd().endsWith(words)) return text;
    // With the white space that belongs to the marker, where it is there.
    const at = text.lastIndexOf(words);
    const lead = marker.slice(0, marker.indexOf(words));
    return text.slice(0, text.endsWith(lead, at) ? at - lead.length : at);
  };
  return cut(cut(prompt, close), open);
}
