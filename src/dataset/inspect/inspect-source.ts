import type { EpisodeField, LogFormat } from '../../config/mapping-fields.ts';
import { isJsonNumber, JsonError, parseJson, toPlain } from '../../lib/json.ts';
import type { JsonValue } from '../../types.ts';
import { type Column, type RawRow, readRows } from '../rows.ts';
import { findColumn } from './column-names.ts';
import { discoverTables, type FoundTable, type Role } from './discover.ts';
import { addEvents, createEventProfile, type EventKeys, type EventProfile, formatOf } from './event-profile.ts';
import { addLabels, createLabelProfile, type LabelProfile } from './label-profile.ts';
import { addValue, createProfile, type ValueProfile } from './value-profile.ts';

/** What is in a source, seen in one pass over all of its rows. */
export interface SourceProfile {
  readonly tables: readonly TableProfile[];
  readonly format: LogFormat;
  readonly logColumn: string | null;
  readonly events: EventProfile;
  readonly labels: LabelProfile;
  /** Logs that could not be read, by reason, with the first row of each. */
  readonly badLogs: ReadonlyMap<string, { count: number; readonly first: string }>;
  /** Logs whose JSON text was encoded twice, or that are nested columns. */
  readonly twiceEncoded: number;
  readonly nested: number;
  readonly notes: readonly string[];
}

export interface TableProfile {
  readonly name: string;
  readonly role: Role;
  readonly files: readonly string[];
  readonly bytes: number;
  readonly rows: number;
  readonly badRows: number;
  readonly columns: readonly { readonly name: string; readonly type: string; readonly profile: ValueProfile }[];
}

export interface InspectOptions {
  /** Names that the mapping's fields may have in the events. */
  readonly keys: EventKeys;
  readonly fields: readonly EpisodeField[];
  readonly onProgress: (rows: number) => void;
  readonly signal: AbortSignal;
}

/** Rows of the side tables that are looked at: their columns are all alike. */
const SIDE_ROWS = 2_000;
const PROGRESS_ROWS = 500;
/** Nothing of a row is kept here, so memory is there for the quicker reading. */
const PAGE_BYTES = 64 << 20;

const plainCell = (value: JsonValue | undefined): unknown =>
  isJsonNumber(value) ? (value.lexeme === 'NaN' ? Number.NaN : Number(value.lexeme)) : value;

interface Pass {
  readonly events: EventProfile;
  readonly labels: LabelProfile;
  readonly bad: Map<string, { count: number; readonly first: string }>;
  /** Canonical field → the column that most likely holds it. */
  readonly columns: ReadonlyMap<EpisodeField, string>;
  format: LogFormat | null;
  twice: number;
  nested: number;
}

/** The list of events, read by the engine's own parser: lexemes do not matter here. Or the reason why there is none. */
function parseLog(value: JsonValue | undefined, pass: Pass): readonly unknown[] | string {
  let log: unknown;
  if (value === undefined || value === null) return 'missing';
  if (typeof value === 'string') {
    try {
      log = JSON.parse(value);
    } catch {
      try {
        parseJson(value);
        return 'NaN or Infinity in JSON text (mapping: nanLiteral)';
      } catch (error) {
        if (!(error instanceof JsonError)) throw error;
        return 'not JSON';
      }
    }
    if (typeof log === 'string') {
      pass.twice += 1;
      try {
        log = JSON.parse(log);
      } catch {
        return 'not JSON';
      }
    }
  } else {
    pass.nested += 1;
    log = toPlain(value);
  }
  const inner = log !== null && typeof log === 'object' && 'messages' in log ? log.messages : log;
  if (!Array.isArray(inner)) return 'not a list';
  return inner.length === 0 ? 'no events' : inner;
}

function addRow(row: RawRow, logColumn: string | null, pass: Pass, keys: EventKeys): void {
  let events: readonly unknown[] | null = null;
  if (logColumn !== null) {
    const log = parseLog(row.values.get(logColumn), pass);
    if (typeof log === 'string') {
      const known = pass.bad.get(log);
      if (known) known.count += 1;
      else pass.bad.set(log, { count: 1, first: `${row.file}: row ${row.row}` });
    } else {
      pass.format ??= formatOf(log);
      events = log;
      addEvents(pass.events, log, pass.format, keys);
    }
  }
  addLabels(pass.labels, (field) => row.values.get(pass.columns.get(field) ?? field), events);
}

async function profileTable(
  table: FoundTable,
  pass: Pass,
  logColumn: string | null,
  options: InspectOptions,
  before: number,
): Promise<TableProfile> {
  const profiles = new Map<string, { readonly column: Column; readonly profile: ValueProfile }>();
  for (const column of table.columns) profiles.set(column.name, { column, profile: createProfile() });
  let rows = 0;
  let bad = 0;
  for (const file of table.files) {
    for await (const row of readRows(file, { columns: null, nanLiteral: 'missing', pageBytes: PAGE_BYTES })) {
      options.signal.throwIfAborted();
      rows += 1;
      if (row.problem !== null) bad += 1;
      else {
        for (const [name, value] of row.values) {
          let entry = profiles.get(name);
          if (entry === undefined) {
            entry = { column: { name, type: 'JSON' }, profile: createProfile() };
            profiles.set(name, entry);
          }
          addValue(entry.profile, plainCell(value));
        }
        if (table.role === 'episodes') addRow(row, logColumn, pass, options.keys);
      }
      if (table.role !== 'episodes' && rows >= SIDE_ROWS) break;
      if (rows % PROGRESS_ROWS === 0) options.onProgress(before + rows);
    }
  }
  return {
    name: table.name,
    role: table.role,
    files: table.files.map((file) => file.path),
    bytes: table.files.reduce((sum, file) => sum + file.bytes, 0),
    rows,
    badRows: bad,
    columns: Array.from(profiles.values(), ({ column, profile }) => ({ ...column, profile })),
  };
}

/** Reads everything once. @throws DataError (65) for files that are none, with what they are */
export async function inspectSource(inputs: readonly string[], options: InspectOptions): Promise<SourceProfile> {
  const notes: string[] = [];
  const found = await discoverTables(inputs, (detail) => notes.push(detail));
  const logColumn = found.find((table) => table.log !== null)?.log ?? null;
  const names = found
    .filter((table) => table.role === 'episodes')
    .flatMap((table) => table.columns.map(({ name }) => name));
  const columns = new Map<EpisodeField, string>();
  for (const field of options.fields) {
    const name = findColumn(field, names);
    if (name !== null) columns.set(field, name);
  }
  const pass: Pass = {
    events: createEventProfile(),
    labels: createLabelProfile(),
    bad: new Map(),
    columns,
    format: null,
    twice: 0,
    nested: 0,
  };
  const tables: TableProfile[] = [];
  let rows = 0;
  for (const table of found) {
    const profile = await profileTable(table, pass, logColumn, options, rows);
    if (table.role === 'episodes') rows += profile.rows;
    else if (profile.rows >= SIDE_ROWS) notes.push(`${table.name}: the first ${SIDE_ROWS} rows were looked at`);
    tables.push(profile);
  }
  return {
    tables,
    format: pass.format ?? 'events',
    logColumn,
    events: pass.events,
    labels: pass.labels,
    badLogs: pass.bad,
    twiceEncoded: pass.twice,
    nested: pass.nested,
    notes,
  };
}
