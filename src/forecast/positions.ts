/** What a position name says about order within a turn (DESIGN.md section 2). Token indices are the plan's business. */

export interface ParsedPosition {
  /** Name without call index and pooling: `pre_action`, `span:reasoning`, `recorded:act_pos` … */
  readonly name: string;
  /** Index of the call within the turn; 0 where the name has none. */
  readonly call: number;
}

const POOLINGS = new Set(['last', 'mean', 'max', 'ema', 'none']);

/** `pre_action:1` → call 1; `span:action:1:mean` → name `span:action`, call 1. A recorded key is taken whole. */
export function parsePosition(position: string): ParsedPosition {
  if (position.startsWith('recorded:')) return { name: position, call: 0 };
  const parts = position.split(':');
  if (parts.length > 1 && POOLINGS.has(parts.at(-1)!)) parts.pop();
  const last = parts.at(-1)!;
  const call = parts.length > 1 && /^\d+$/.test(last) ? Number(parts.pop()) : 0;
  return { name: parts.join(':'), call };
}

/** Positions that exist only where the turn has a call of that index. */
const OF_A_CALL = new Set(['pre_action', 'action_name', 'action_end', 'span:action']);

export function needsCall(position: string): boolean {
  return OF_A_CALL.has(parsePosition(position).name);
}

const OF_THE_REPORT = new Set(['report_start', 'report_end', 'span:report']);

/** Positions that exist only in the last turn, where the final report stands. */
export function needsReport(position: string): boolean {
  return OF_THE_REPORT.has(parsePosition(position).name);
}

/** Before anything the turn's calls could say: prompt, reasoning. */
const BEFORE_ALL_CALLS = new Set(['prompt_end', 'reasoning_start', 'reasoning_end', 'span:reasoning']);

/**
 * Whether every token of the position stands before the opening marker of call `unsafeCall` of the same turn
 * (EVALUATION.md 2). An unknown call counts as the first one, and a position whose place in the turn is not known
 * (`recorded:…`, report positions) as one that does not precede: at worst a row is lost, never leaked.
 */
export function positionPrecedesAction(position: string, unsafeCall: number | null = 0): boolean {
  const { name, call } = parsePosition(position);
  const u = unsafeCall ?? 0;
  if (BEFORE_ALL_CALLS.has(name)) return true;
  if (name === 'pre_action') return call <= u;
  if (name === 'action_name' || name === 'action_end' || name === 'span:action') return call < u;
  return false;
}

/** Whether the position, in the turn of the final report, stands before the report's first token. */
export function positionPrecedesReport(position: string): boolean {
  const { name } = parsePosition(position);
  return BEFORE_ALL_CALLS.has(name) || name === 'report_start';
}

/** Whether the text that stood before the position is known from the log alone; not so for `recorded:…` token indices. */
export function hasText(position: string): boolean {
  const { name } = parsePosition(position);
  return BEFORE_ALL_CALLS.has(name) || OF_A_CALL.has(name) || OF_THE_REPORT.has(name) || name === 'observation_end';
}

/** Order of positions within a turn, for "first alarm". Recorded token indices come last: their place is not known. */
export function positionOrder(position: string): number {
  const { name, call } = parsePosition(position);
  const before = ['prompt_end', 'reasoning_start', 'span:reasoning', 'reasoning_end', 'report_start'].indexOf(name);
  if (before >= 0) return before;
  if (name === 'pre_action') return 10 + 3 * call;
  if (name === 'action_name') return 11 + 3 * call;
  if (name === 'action_end' || name === 'span:action') return 12 + 3 * call;
  return name === 'observation_end' ? 1e9 : 2e9;
}
