import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { InterventionResult, OutcomeRow } from '../intervention/types.ts';
import type { Curves, OfPart } from '../store/curves.ts';
import { type Cell, writeParquet } from '../store/tables.ts';
import type { Exclusion, ScoreRow } from '../types.ts';
import type { ForecastPart } from './forecast-stage.ts';

/** scores.parquet: one row per episode × landmark × position × reader. */
export async function writeScoreRows(folder: string, rows: readonly ScoreRow[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeParquet(
    join(folder, 'scores.parquet'),
    {
      episode: 'VARCHAR',
      model: 'VARCHAR',
      condition: 'VARCHAR',
      population: 'VARCHAR',
      target: 'VARCHAR',
      landmark: 'VARCHAR',
      position: 'VARCHAR',
      turn: 'INTEGER',
      reader: 'VARCHAR',
      tap: 'VARCHAR',
      fold: 'INTEGER',
      group: 'INTEGER',
      label: 'INTEGER',
      score: 'DOUBLE',
      calibrated: 'DOUBLE',
    },
    rows as unknown as Record<string, Cell>[],
  );
}

/** exclusions.parquet: everything that was set aside, with its reason. */
export async function writeExclusionRows(folder: string, rows: readonly Exclusion[]): Promise<void> {
  await writeParquet(
    join(folder, 'exclusions.parquet'),
    {
      stage: 'VARCHAR',
      episode: 'VARCHAR',
      file: 'VARCHAR',
      row: 'INTEGER',
      turn: 'INTEGER',
      reason: 'VARCHAR',
      detail: 'VARCHAR',
    },
    rows as unknown as Record<string, Cell>[],
  );
}

/** interventions.parquet: the outcome of each episode under each policy. */
export async function writeOutcomeRows(folder: string, rows: readonly OutcomeRow[]): Promise<void> {
  await writeParquet(
    join(folder, 'interventions.parquet'),
    {
      episode: 'VARCHAR',
      model: 'VARCHAR',
      condition: 'VARCHAR',
      target: 'VARCHAR',
      population: 'VARCHAR',
      reader: 'VARCHAR',
      policy: 'VARCHAR',
      setting: 'VARCHAR',
      alpha: 'DOUBLE',
      unsafe: 'BOOLEAN',
      outcome: 'VARCHAR',
      stopTurn: 'INTEGER',
      stopPosition: 'VARCHAR',
      lead: 'INTEGER',
      success: 'BOOLEAN',
      reportLabel: 'VARCHAR',
    },
    rows as unknown as Record<string, Cell>[],
  );
}

/** Everything a page draws, of every model × condition × target. */
export function curvesOf(
  run: string,
  parts: readonly ForecastPart[],
  intervened: Pick<InterventionResult, 'curves' | 'thresholds'> | null,
): Curves {
  const of = ({ model, condition, target }: ForecastPart): OfPart => ({ model, condition, target });
  return {
    schemaVersion: 1,
    run,
    curves: parts.flatMap((part) => part.result.curves.map((curve) => ({ ...of(part), ...curve }))),
    stops: intervened?.curves ?? [],
    choices: parts.flatMap((part) => part.result.choices.map((choice) => ({ ...of(part), ...choice }))),
    thresholds: intervened?.thresholds ?? [],
  };
}
