import { basename } from 'node:path';
import { isJsonObject, JsonError, parseJson } from '../lib/json.ts';
import { readLines } from '../lib/jsonl.ts';
import type { JsonValue } from '../types.ts';
import type { TableFile } from './files.ts';
import { parquetRows } from './parquet.ts';

/** One row as read: column → value, or the reason why it is none. `row` counts from 1, without a header. */
export interface RawRow {
  readonly file: string;
  readonly row: number;
  readonly values: ReadonlyMap<string, JsonValue>;
  readonly problem: { readonly field: string | null; readonly message: string } | null;
}

export interface Column {
  readonly name: string;
  /** DuckDB's type name; "JSON" for JSON lines. */
  readonly type: string;
}

export interface ReadRowsOptions {
  /** Columns to read; null = all. Names a file does not have are left out. */
  readonly columns: readonly string[] | null;
  /** SQL over this file's columns, "" = all rows. Only parquet; JSON lines are filtered by the caller. */
  readonly where?: (columns: readonly Column[]) => string;
  /** Only these rows (from 1); absent = all. */
  readonly rows?: ReadonlySet<number>;
  readonly nanLiteral?: 'missing' | 'refuse';
  /** Uncompressed bytes that one query may read (parquet): more is quicker and takes more memory. */
  readonly pageBytes?: number;
}

async function* jsonlRows(file: TableFile, options: ReadRowsOptions): AsyncGenerator<RawRow> {
  const name = basename(file.path);
  const none = new Map<string, JsonValue>();
  for await (const { line, text, problem } of readLines(file.path)) {
    if (options.rows !== undefined && !options.rows.has(line)) continue;
    if (text === null) {
      yield { file: name, row: line, values: none, problem: { field: null, message: problem ?? 'expected text' } };
      continue;
    }
    if (text.trim() === '') continue;
    try {
      const value = parseJson(text, { strict: options.nanLiteral !== 'missing' });
      if (!isJsonObject(value)) throw new JsonError('expected an object, got another value', 0);
      yield { file: name, row: line, values: value, problem: null };
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      yield {
        file: name,
        row: line,
        values: none,
        problem: { field: null, message: `expected one JSON object, got ${error.message}` },
      };
    }
  }
}

/** All rows of a table file, bad ones included with their reason. @throws DataError (65) for a file that is none */
export function readRows(file: TableFile, options: ReadRowsOptions): AsyncGenerator<RawRow> {
  return file.format === 'parquet' ? parquetRows(file, options) : jsonlRows(file, options);
}
