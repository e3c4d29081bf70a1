import { basename } from 'node:path';
import type { RolloutConfig } from '../config/rollout.ts';
import { episodeToRow, reportLabelRow } from '../environment/episode-row.ts';
import type { EpisodeLog, LoggedTurn } from '../environment/rollout.ts';
import type { Scenario } from '../environment/scenario.ts';
import type { OpenTokenizer } from '../plan/tokenizer.ts';
import type { Row as TableRow } from '../store/tables.ts';

/** What is kept of one played episode. */
export interface Played {
  readonly episode: TableRow;
  readonly report: TableRow | null;
  readonly calls: number;
  readonly validCalls: number;
}

export function recordOf(
  log: EpisodeLog,
  twin: Scenario | null,
  config: RolloutConfig,
  tokenizer: OpenTokenizer,
): Played {
  const naming = {
    run: config.name,
    model: config.model.name ?? basename(config.model.folder),
    positions: markerPositions(tokenizer),
  };
  const calls = log.turns.flatMap((turn) => turn.calls);
  const passing = (text: string): boolean => log.scenario.faults.some((fault) => text === `Error: ${fault.error}`);
  return {
    episode: episodeToRow(log, twin, naming),
    report: reportLabelRow(log, twin, naming),
    calls: calls.length + log.turns.filter((turn) => turn.turn.invalid !== null).length,
    validCalls: calls.filter((item) => !item.failed || passing(item.result)).length,
  };
}

/**
 * Token positions of a turn, in prompt ++ generated, from the control tokens that were really generated. Only for
 * families whose markers are single tokens; others log prompt_end alone.
 */
function markerPositions(tokenizer: OpenTokenizer): (turn: LoggedTurn) => Readonly<Record<string, number>> {
  const thinkEnd = tokenizer.idOf('</think>');
  const open = tokenizer.idOf('<tool_call>');
  const close = tokenizer.idOf('</tool_call>');
  return ({ turn }) => {
    const start = turn.promptIds.length;
    const at = (id: number | null): number => (id === null ? -1 : turn.generatedIds.indexOf(id));
    const found: [string, number][] = [['prompt_end', start - 1]];
    if (at(thinkEnd) >= 0) found.push(['reasoning_end', start + at(thinkEnd)]);
    if (turn.calls.length > 0 && at(open) >= 0) found.push(['pre_action', start + at(open) - 1]);
    if (turn.calls.length > 0 && at(close) >= 0) found.push(['action_end', start + at(close)]);
    return Object.fromEntries(found.toSorted((a, b) => a[1] - b[1]));
  };
}
