import { basename, dirname, relative } from 'node:path';
import { DataError } from '../../errors.ts';
import type { JsonValue } from '../../types.ts';
import { findTables, type TableFile } from '../files.ts';
import { parquetColumns } from '../parquet.ts';
import { type Column, readRows } from '../rows.ts';

export type Role = 'episodes' | 'scenarios' | 'reportLabels' | 'other';

/** Files that are parts of one table. */
export interface FoundTable {
  readonly name: string;
  readonly role: Role;
  readonly files: readonly TableFile[];
  /** Columns of all parts, with the types of the first that has each. */
  readonly columns: readonly Column[];
  /** The column that holds the log, for episodes. */
  readonly log: string | null;
}

const LOG_COLUMNS = [
  'events_json',
  'events',
  'messages',
  'conversation',
  'trajectory',
  'transcript',
  'turns',
  'steps',
  'log',
];

/** `episodes/part-00000.parquet`, `train-00003-of-00007.parquet` → what the parts have in common. */
function tableName(path: string, base: string): string {
  const name = basename(path).replace(/(\.(parquet|jsonl|ndjson|json))?(\.gz)?$/i, '');
  const stem = name.replace(/[-_.]?(part|shard)?[-_.]?\d{2,}(-of-\d+)?$/i, '').replace(/-\d{5}-of-\d{5}$/, '');
  const folder = relative(base, dirname(path));
  return [folder, stem === '' ? null : stem].filter((part) => part !== null && part !== '').join('/') || name;
}

async function columnsOf(file: TableFile): Promise<readonly Column[]> {
  if (file.format === 'parquet') return parquetColumns(file);
  const seen = new Map<string, Column>();
  let rows = 0;
  for await (const row of readRows(file, { columns: null, nanLiteral: 'missing' })) {
    for (const name of row.values.keys()) if (!seen.has(name)) seen.set(name, { name, type: 'JSON' });
    rows += 1;
    if (rows === 20) break;
  }
  return [...seen.values()];
}

const isLog = (value: JsonValue | undefined): boolean =>
  typeof value === 'string' ? /^\s*(\[\s*\{|\{\s*"messages")/.test(value) : Array.isArray(value) && value.length > 0;

/** The column whose first values read as a list of events or messages; the usual names first. */
async function findLog(files: readonly TableFile[], columns: readonly Column[]): Promise<string | null> {
  const usual = LOG_COLUMNS.filter((name) => columns.some((column) => column.name === name));
  const [file] = files;
  if (file === undefined) return null;
  for await (const row of readRows(file, { columns: null, nanLiteral: 'missing' })) {
    const found = [...usual, ...row.values.keys()].find((name) => name !== 'tools' && isLog(row.values.get(name)));
    return found ?? usual.find((name) => name === 'events_json') ?? null;
  }
  return usual[0] ?? null;
}

function roleOf(name: string, columns: readonly Column[], log: string | null): Role {
  const has = (column: string): boolean => columns.some((item) => item.name === column);
  if (has('label') && has('episode_id') && !has('events_json')) return 'reportLabels';
  const scenarioLike = ['system_prompt', 'task_prompt', 'critical', 'causal_var'].filter(has).length;
  if (scenarioLike >= 2 && !has('episode_id')) return 'scenarios';
  if (log !== null || has('events_json') || has('first_unsafe_event')) return 'episodes';
  return /scenario/i.test(name) ? 'scenarios' : 'other';
}

/**
 * Tables under the paths, by what their columns say. The same table in parquet and JSON lines is read once (parquet);
 * what was left out is said. @throws DataError (65) for unreadable files and where there is no table
 */
export async function discoverTables(
  inputs: readonly string[],
  warn: (detail: string) => void,
): Promise<readonly FoundTable[]> {
  const groups = new Map<string, TableFile[]>();
  for (const input of inputs) {
    for (const file of await findTables([input])) {
      const base = file.path === input ? dirname(input) : input.replace(/[*?[{].*$/, '');
      const key = tableName(file.path, base);
      const files = groups.get(key) ?? [];
      if (!files.some((known) => known.path === file.path)) files.push(file);
      groups.set(key, files);
    }
  }
  const tables: FoundTable[] = [];
  for (const [name, all] of groups) {
    const parquet = all.filter((file) => file.format === 'parquet');
    const files = parquet.length > 0 ? parquet : all;
    if (files.length < all.length)
      warn(`${name}: ${all.length - files.length} JSON lines files beside parquet of the same name were left out`);
    const columns = new Map<string, Column>();
    for (const file of files)
      for (const column of await columnsOf(file)) if (!columns.has(column.name)) columns.set(column.name, column);
    const list = [...columns.values()];
    const log = await findLog(files, list);
    const role = roleOf(name, list, log);
    tables.push({ name, role, files, columns: list, log: role === 'episodes' ? log : null });
  }
  if (tables.length === 0)
    throw new DataError(`${inputs.join(', ')}: expected parquet or JSON lines files, got none. Check the path`);
  return tables;
}
