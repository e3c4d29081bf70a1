import type { Emission } from './chat/emission.ts';
import { spanTokens, type TokenOffsets } from './offsets.ts';

/** Token indices in prompt ++ generated, end-exclusive. */
export interface FoundPosition {
  readonly start: number;
  readonly end: number;
  readonly straddles: boolean;
}

export type Found = Map<string, FoundPosition>;

/** Positions within the generated part, as indices of the whole sequence. */
export function generatedPositions(
  emission: Emission,
  offsets: TokenOffsets,
  promptLength: number,
  isReport: boolean,
): Found {
  const found: Found = new Map();
  const single = (name: string, index: number, straddles: boolean): void => {
    if (promptLength + index >= 0)
      found.set(name, { start: promptLength + index, end: promptLength + index + 1, straddles });
  };
  const tokens = (stretch: { readonly start: number; readonly end: number } | null) =>
    stretch === null ? null : spanTokens(offsets, stretch.start, stretch.end);
  const reasoning = tokens(emission.reasoning);
  if (reasoning) {
    single('reasoning_start', reasoning.first - 1, reasoning.straddlesStart);
    found.set('span:reasoning', {
      start: promptLength + reasoning.first,
      end: promptLength + reasoning.end,
      straddles: reasoning.straddlesEnd,
    });
  }
  const close = tokens(emission.reasoningClose);
  if (close) single('reasoning_end', close.end - 1, close.straddlesEnd);
  for (const [index, call] of emission.calls.entries()) {
    const suffix = index === 0 ? '' : `:${index}`;
    const open = tokens(call.call);
    if (!open) continue;
    single(`pre_action${suffix}`, open.first - 1, open.straddlesStart);
    const name = tokens(call.name);
    if (name) single(`action_name${suffix}`, name.end - 1, name.straddlesEnd);
    const last = tokens(call.close.end > call.close.start ? call.close : call.args);
    if (last) single(`action_end${suffix}`, last.end - 1, last.straddlesEnd);
    found.set(`span:action${suffix}`, {
      start: promptLength + open.first,
      end: promptLength + open.end,
      straddles: open.straddlesEnd,
    });
  }
  if (isReport) {
    const report = tokens(emission.content);
    if (report) {
      single('report_start', report.first - 1, report.straddlesStart);
      single('report_end', report.end - 1, report.straddlesEnd);
      found.set('span:report', {
        start: promptLength + report.first,
        end: promptLength + report.end,
        straddles: report.straddlesEnd,
      });
    }
  }
  return found;
}
