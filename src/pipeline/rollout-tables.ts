import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Scenario } from '../environment/scenario.ts';
import { scenarioToRow } from '../environment/scenario-row.ts';
import { type Cell, type ColumnType, type Row as TableRow, writeParquet } from '../store/tables.ts';
import type { Played } from './rollout-record.ts';

/** Columns that stay whole numbers even where every cell is null. */
const EVENT_COLUMNS = new Set(['reveal_event', 'first_unsafe_event', 'first_critical_event']);

/** Types by value, so that a column of the scenarios' own (`extra`) is kept as it came. */
function columnsOf(rows: readonly TableRow[]): Readonly<Record<string, ColumnType>> {
  const typeOf = (name: string): ColumnType => {
    const values = rows.map((row) => row[name] ?? null).filter((value): value is Exclude<Cell, null> => value !== null);
    if (EVENT_COLUMNS.has(name)) return 'INTEGER';
    if (values.length > 0 && values.every((value) => typeof value === 'boolean')) return 'BOOLEAN';
    if (values.length > 0 && values.every((value) => typeof value === 'number'))
      return values.every((value) => value === (value | 0)) ? 'INTEGER' : 'DOUBLE';
    return 'VARCHAR';
  };
  const names = new Set(rows.flatMap((row) => Object.keys(row)));
  return Object.fromEntries(Array.from(names, (name) => [name, typeOf(name)]));
}

/** Cells of a column that holds values of several types become text. */
async function writeTable(path: string, rows: readonly TableRow[]): Promise<void> {
  const columns = columnsOf(rows);
  const cell = (name: string, value: Cell): Cell =>
    columns[name] === 'VARCHAR' && value !== null ? String(value) : value;
  const plain = rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, cell(name, value)])),
  );
  await writeParquet(path, columns, plain);
}

/** Whether the tables of a finished play lie in the folder. */
export async function isWritten(folder: string): Promise<boolean> {
  return stat(join(folder, 'episodes.parquet')).then(
    () => true,
    () => false,
  );
}

/** In the order of the scenarios. */
export function finished(scenarios: readonly Scenario[], played: ReadonlyMap<string, Played>): readonly Played[] {
  return scenarios.flatMap((scenario) => {
    const item = played.get(scenario.instanceId);
    return item === undefined ? [] : [item];
  });
}

export async function writeTables(
  folder: string,
  scenarios: readonly Scenario[],
  played: ReadonlyMap<string, Played>,
): Promise<void> {
  const items = finished(scenarios, played);
  await writeTable(
    join(folder, 'episodes.parquet'),
    items.map((item) => item.episode),
  );
  await writeTable(join(folder, 'scenarios.parquet'), scenarios.map(scenarioToRow));
  const reports = items.flatMap((item) => (item.report === null ? [] : [item.report]));
  if (reports.length > 0) await writeTable(join(folder, 'report_labels.parquet'), reports);
}
