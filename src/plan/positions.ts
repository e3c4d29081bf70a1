import { pythonStrip } from './chat/jinja/text.ts';
import type { Emission, Stretch } from './chat/emission.ts';
import { spanTokens, type TokenOffsets, type TokenSpan } from './offsets.ts';

/** The tokens of what a model wrote in one turn, counted from the first generated one. null = the turn has no such field. */
export interface TurnTokens {
  /** Fields without the white space at their edges (Python's `str.strip`). */
  readonly reasoning: TokenSpan | null;
  readonly content: TokenSpan | null;
  readonly reasoningClose: TokenSpan | null;
  readonly calls: readonly {
    /** From its opening marker to its closing one. */
    readonly call: TokenSpan | null;
    readonly name: TokenSpan | null;
    readonly args: TokenSpan | null;
    readonly close: TokenSpan | null;
  }[];
}

/** A named position as indices of the whole sequence, end-exclusive. */
export interface FoundPosition {
  readonly start: number;
  readonly end: number;
  readonly straddles: boolean;
}

/** The stretch without white space at its edges. */
export function coreOf(text: string, { start, end }: Stretch): Stretch {
  const field = text.slice(start, end);
  const right = pythonStrip(field, null, 'right');
  return { start: start + right.length - pythonStrip(right, null, 'left').length, end: start + right.length };
}

export function turnTokens(emission: Emission, offsets: TokenOffsets): TurnTokens {
  const marker = (stretch: Stretch | null): TokenSpan | null =>
    stretch === null ? null : spanTokens(offsets, stretch.start, stretch.end);
  const field = (stretch: Stretch | null): TokenSpan | null =>
    stretch === null ? null : marker(coreOf(emission.text, stretch));
  return {
    reasoning: field(emission.reasoning),
    content: field(emission.content),
    reasoningClose: marker(emission.reasoningClose),
    calls: emission.calls.map((call) => ({
      call: marker(call.call),
      name: field(call.name),
      args: field(call.args),
      close: marker(call.close),
    })),
  };
}

/** Positions of DESIGN.md section 2 within the generated part. */
export function generatedPositions(
  tokens: TurnTokens,
  promptLength: number,
  isReport: boolean,
): Map<string, FoundPosition> {
  const found = new Map<string, FoundPosition>();
  const single = (name: string, index: number, straddles: boolean): void => {
    const at = promptLength + index;
    if (at >= 0) found.set(name, { start: at, end: at + 1, straddles });
  };
  const span = (name: string, { first, end, straddlesEnd }: TokenSpan): void => {
    found.set(name, { start: promptLength + first, end: promptLength + end, straddles: straddlesEnd });
  };
  const { reasoning, reasoningClose, content } = tokens;
  if (reasoning) {
    single('reasoning_start', reasoning.first - 1, reasoning.straddlesStart);
    span('span:reasoning', reasoning);
  }
  if (reasoningClose) single('reasoning_end', reasoningClose.end - 1, reasoningClose.straddlesEnd);
  for (const [index, { call, name, args, close }] of tokens.calls.entries()) {
    const suffix = index === 0 ? '' : `:${index}`;
    if (!call) continue;
    single(`pre_action${suffix}`, call.first - 1, call.straddlesStart);
    if (name) single(`action_name${suffix}`, name.end - 1, name.straddlesEnd);
    const last = close ?? args;
    if (last) single(`action_end${suffix}`, last.end - 1, last.straddlesEnd);
    span(`span:action${suffix}`, call);
  }
  if (isReport && content) {
    single('report_start', content.first - 1, content.straddlesStart);
    single('report_end', content.end - 1, content.straddlesEnd);
    span('span:report', content);
  }
  return found;
}
