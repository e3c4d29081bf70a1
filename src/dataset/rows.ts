import type { DuckDBConnection } from '@duckdb/node-api';
import { basename } from 'node:path';
import { DataError } from '../errors.ts';
import { isJsonObject, JsonError, parseJson } from '../lib/json.ts';
import { readLines } from '../lib/jsonl.ts';
import type { JsonValue } from '../types.ts';
import { duckdbError, fromDuckDB, sqlName, sqlText, withDuckDB } from './duckdb.ts';
import type { TableFile } from './files.ts';

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
  readonly nanLiteral?: 'missing' | 'refuse';
}

/** Small pages keep memory low: the strings of a stream over a large file live outside every limit (2.8 GB seen). */
const PAGE_ROWS = 1_000;
/** A real log expands 3 : 1; a bomb of 50 KB expanded to 1.6 GB. */
const MAX_EXPANSION = 200;
const MAX_ROW_GROUP_BYTES = 2 ** 31;

export async function parquetColumns(file: TableFile): Promise<Column[]> {
  try {
    return await withDuckDB(async (connection) => {
      const result = await connection.runAndReadAll(`DESCRIBE SELECT * FROM read_parquet(${sqlText(file.path)})`);
      return result
        .getRowObjects()
        .map((row) => ({ name: String(row['column_name']), type: String(row['column_type']) }));
    });
  } catch (error) {
    throw duckdbError(error, file.path);
  }
}

/** Rows and the refusal of compression bombs, from the footer alone. */
async function preflight(connection: DuckDBConnection, file: TableFile): Promise<number> {
  const result = await connection.runAndReadAll(
    `SELECT path_in_schema AS name, sum(total_uncompressed_size)::BIGINT AS raw, sum(total_compressed_size)::BIGINT AS packed, max(total_uncompressed_size)::BIGINT AS largest FROM parquet_metadata(${sqlText(file.path)}) GROUP BY ALL`,
  );
  for (const row of result.getRowObjects()) {
    const [raw, packed, largest] = [Number(row['raw']), Number(row['packed']), Number(row['largest'])];
    if ((raw > 1e8 && raw > MAX_EXPANSION * packed) || largest > MAX_ROW_GROUP_BYTES) {
      throw new DataError(
        `${file.path}: ${String(row['name']).split(',')[0]}: expected an uncompressed size of at most ${MAX_EXPANSION} times the stored one, got ${raw.toLocaleString('en')} bytes from ${packed.toLocaleString('en')} (a compression bomb?). Write the file again with smaller row groups`,
      );
    }
  }
  const rows = await connection.runAndReadAll(
    `SELECT sum(num_rows)::BIGINT FROM parquet_file_metadata(${sqlText(file.path)})`,
  );
  return Number(rows.getRows()[0]?.[0] ?? 0);
}

async function* parquetRows(file: TableFile, options: ReadRowsOptions): AsyncGenerator<RawRow> {
  const columns = await parquetColumns(file);
  const wanted = columns.filter((column) => options.columns === null || options.columns.includes(column.name));
  const where = options.where?.(columns) ?? '';
  const name = basename(file.path);
  const select = ['file_row_number', ...wanted.map((column) => sqlName(column.name))].join(', ');
  let total: number;
  try {
    total = await withDuckDB((connection) => preflight(connection, file));
  } catch (error) {
    throw error instanceof DataError ? error : duckdbError(error, file.path);
  }
  for (let from = 0; from < total; from += PAGE_ROWS) {
    const page = await withDuckDB(async (connection) => {
      const result = await connection.runAndReadAll(
        `SELECT ${select} FROM read_parquet(${sqlText(file.path)}, file_row_number = true) WHERE file_row_number BETWEEN ${from} AND ${from + PAGE_ROWS - 1}${where === '' ? '' : ` AND (${where})`} ORDER BY file_row_number`,
      );
      return result.getRows();
    }).catch((error: unknown) => {
      throw duckdbError(error, file.path);
    });
    for (const cells of page) {
      const row = Number(cells[0]) + 1;
      const values = new Map<string, JsonValue>();
      let problem: RawRow['problem'] = null;
      for (const [index, column] of wanted.entries()) {
        try {
          values.set(column.name, fromDuckDB(cells[index + 1] ?? null));
        } catch {
          problem = { field: column.name, message: `${column.name}: expected UTF-8 text, got invalid bytes` };
        }
      }
      yield { file: name, row, values, problem };
    }
  }
}

async function* jsonlRows(file: TableFile, options: ReadRowsOptions): AsyncGenerator<RawRow> {
  const name = basename(file.path);
  const none = new Map<string, JsonValue>();
  for await (const { line, text, problem } of readLines(file.path)) {
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
