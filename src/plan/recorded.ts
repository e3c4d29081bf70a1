/** Token positions that a log recorded: what they count from, and which of ours they name. */

/** As in a mapping (positions.origin, positions.from). */
export interface RecordedOrigin {
  readonly origin: 'sequence' | 'prompt' | 'generation' | 'transcript';
  readonly from: 0 | 1;
}

/** Index in prompt ++ generated of a position as it was recorded; may lie outside. */
export function recordedIndex(recorded: number, { origin, from }: RecordedOrigin, promptLength: number): number {
  return recorded - from + (origin === 'generation' ? promptLength : 0);
}

/** What logs call our positions; `shift` tokens after ours. */
const NAMES: readonly { readonly pattern: RegExp; readonly ours: string; readonly shift: number }[] = [
  { pattern: /^(?:prompt_end|last_prompt_token|prompt_last|end_of_prompt)$/, ours: 'prompt_end', shift: 0 },
  { pattern: /^(?:reasoning|think)_start$/, ours: 'reasoning_start', shift: 0 },
  { pattern: /^(?:(?:reasoning|think)_end|end_of_(?:reasoning|think))$/, ours: 'reasoning_end', shift: 0 },
  { pattern: /^pre_action(?:[:_](?<call>\d+))?$/, ours: 'pre_action', shift: 0 },
  // The opening marker's first token follows the last one before it.
  { pattern: /^(?:(?:action|call)_start|call_open)(?:[:_](?<call>\d+))?$/, ours: 'pre_action', shift: 1 },
  { pattern: /^(?:action|tool)_name(?:[:_](?<call>\d+))?$/, ours: 'action_name', shift: 0 },
  { pattern: /^(?:action|call)_end(?:[:_](?<call>\d+))?$/, ours: 'action_end', shift: 0 },
  { pattern: /^report_start$/, ours: 'report_start', shift: 0 },
  { pattern: /^report_end$/, ours: 'report_end', shift: 0 },
  { pattern: /^(?:turn_end|end_of_turn|sequence_end)$/, ours: 'turn_end', shift: 0 },
];

/** Whether a recorded position has the name of one of ours. */
export const isNamed = (name: string): boolean => NAMES.some(({ pattern }) => pattern.test(name));

/**
 * Index of ours that a recorded name means.
 * @param positions index in prompt ++ generated of every position of the turn
 * @returns undefined where it names none of ours, null where it does but the turn lacks it
 */
export function namedPosition(name: string, positions: ReadonlyMap<string, number>): number | null | undefined {
  for (const { pattern, ours, shift } of NAMES) {
    const match = pattern.exec(name);
    if (match === null) continue;
    const call = match.groups?.['call'];
    const index = positions.get(call === undefined || call === '0' ? ours : `${ours}:${call}`);
    return index === undefined ? null : index + shift;
  }
  return undefined;
}
