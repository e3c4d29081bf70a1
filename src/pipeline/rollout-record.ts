import { basename } from 'node:path';
import type { RolloutConfig } from '../config/rollout.ts';
import { episodeToRow, reportLabelRow } from '../environment/episode-row.ts';
import type { EpisodeLog, LoggedTurn } from '../environment/rollout.ts';
import type { Scenario } from '../environment/scenario.ts';
import { writtenPositions } from '../plan/written-positions.ts';
import type { Row as TableRow } from '../store/tables.ts';
import { textOf, turnOfParts } from './live-agent.ts';
import { promptEnd, type TurnFormat } from './turn-format.ts';

/** What is kept of one played episode. */
export interface Played {
  readonly episode: TableRow;
  readonly report: TableRow | null;
  readonly calls: number;
  readonly validCalls: number;
}

export function recordOf(log: EpisodeLog, twin: Scenario | null, config: RolloutConfig, format: TurnFormat): Played {
  const naming = {
    run: config.name,
    model: config.model.name ?? basename(config.model.folder),
    ...turnReader(format, log),
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

/** Reads a logged turn again: where its parts lie in the ids, and the text where its parts do not give it. */
function turnReader({ tokenizer, family, endOfTurn }: TurnFormat, log: EpisodeLog) {
  return {
    positions: ({ turn }: LoggedTurn, index: number): Readonly<Record<string, number>> => {
      const found = writtenPositions(
        family,
        tokenizer,
        { promptLength: turn.promptIds.length, generated: turn.generatedIds },
        {
          prompt: promptEnd(tokenizer, turn.promptIds),
          endOfTurn,
          hasCalls: turn.calls.length > 0,
          isReport: turn.calls.length === 0 && index === log.turns.length - 1,
        },
      );
      const single = Array.from(found).filter(([name]) => !name.startsWith('span:'));
      return Object.fromEntries(
        single.map(([name, at]): [string, number] => [name, at.start]).toSorted((a, b) => a[1] - b[1]),
      );
    },
    completionText: ({ turn }: LoggedTurn): string | null => {
      const text = textOf(tokenizer, turn.generatedIds);
      const written = family.write(turnOfParts(turn), { prompt: promptEnd(tokenizer, turn.promptIds), endOfTurn });
      return text === written.text ? null : text;
    },
  };
}
