import type { DuckDBConnection, DuckDBDataChunk } from '@duckdb/node-api';
import { basename } from 'node:path';
import { DataError } from '../errors.ts';
import type { JsonValue } from '../types.ts';
import { duckdbError, fromDuckDB, openDuckDB, sqlFile, sqlName, withDuckDB } from './duckdb.ts';
import type { TableFile } from './files.ts';
import type { Column, RawRow, ReadRowsOptions } from './rows.ts';

/**
 * Parquet in small pages: the strings of one long stream lie outside every memory limit (2.8 GB seen), and a page that
 * ends inside a row group makes the rest of the group be unpacked again for the next one. So pages follow row groups
 * and are cut only where a group's text is larger than `pageBytes`: 32 MiB keeps a reader near 0.8 GB, 64 MiB near 1.1.
 */
const PAGE_BYTES = 32 << 20;
/** A real log expands 3 : 1; a bomb of 50 KB expanded to 1.6 GB. */
const MAX_EXPANSION = 200;
const BOMB_BYTES = 100_000_000;
/** DuckDB unpacks a column of a row group as one; past this it needs more memory than it is given. */
const MAX_COLUMN_CHUNK_BYTES = 2 ** 31;

/** Rows `from` to `to` (end-exclusive) that are read by one query. */
export interface Page {
  readonly from: number;
  readonly to: number;
}

export async function parquetColumns(file: TableFile): Promise<Column[]> {
  try {
    return await withDuckDB(async (connection) => {
      const result = await connection.runAndReadAll(`DESCRIBE SELECT * FROM read_parquet(${sqlFile(file.path)})`);
      return result
        .getRowObjects()
        .map((row) => ({ name: String(row['column_name']), type: String(row['column_type']) }));
    });
  } catch (error) {
    throw duckdbError(error, file.path);
  }
}

interface GroupRow {
  readonly group: number;
  readonly column: string;
  readonly rows: number;
  readonly raw: number;
  readonly packed: number;
}

function refuseBombs(file: TableFile, groups: readonly GroupRow[]): void {
  const columns = new Map<string, { raw: number; packed: number; largest: number }>();
  for (const { column, raw, packed } of groups) {
    const sum = columns.get(column) ?? { raw: 0, packed: 0, largest: 0 };
    columns.set(column, {
      raw: sum.raw + raw,
      packed: sum.packed + packed,
      largest: Math.max(sum.largest, raw),
    });
  }
  for (const [column, { raw, packed, largest }] of columns) {
    const name = column.split(',')[0];
    if (raw > BOMB_BYTES && raw > MAX_EXPANSION * packed) {
      throw new DataError(
        `${file.path}: ${name}: expected an uncompressed size of at most ${MAX_EXPANSION} times the stored one, got ${raw.toLocaleString('en')} bytes from ${packed.toLocaleString('en')} (a compression bomb?). Do not read this file, or write it again without compression`,
      );
    }
    if (largest > MAX_COLUMN_CHUNK_BYTES) {
      throw new DataError(
        `${file.path}: ${name}: expected row groups of at most ${MAX_COLUMN_CHUNK_BYTES.toLocaleString('en')} bytes a column, got ${largest.toLocaleString('en')}. Write the file again with smaller (not larger) row groups, 2,048 rows`,
      );
    }
  }
}

/** Row groups → pages, from the footer alone. @throws DataError (65) for what would not fit into memory */
async function planPages(connection: DuckDBConnection, file: TableFile, pageBytes: number): Promise<Page[]> {
  const result = await connection.runAndReadAll(
    `SELECT row_group_id::BIGINT AS "group", path_in_schema AS "column", row_group_num_rows::BIGINT AS "rows", total_uncompressed_size::BIGINT AS raw, total_compressed_size::BIGINT AS packed FROM parquet_metadata(${sqlFile(file.path)}) ORDER BY row_group_id`,
  );
  const groups = result.getRowObjects().map((row) => ({
    group: Number(row['group']),
    column: String(row['column']),
    rows: Number(row['rows']),
    raw: Number(row['raw']),
    packed: Number(row['packed']),
  }));
  refuseBombs(file, groups);
  const sizes = new Map<number, { rows: number; bytes: number }>();
  for (const { group, rows, raw } of groups) sizes.set(group, { rows, bytes: (sizes.get(group)?.bytes ?? 0) + raw });
  const pages: Page[] = [];
  let at = 0;
  let from = 0;
  let gathered = 0;
  const close = (): void => {
    if (at > from) pages.push({ from, to: at });
    from = at;
    gathered = 0;
  };
  for (const { rows, bytes } of sizes.values()) {
    if (gathered + bytes > pageBytes) close();
    const step = Math.max(1, Math.floor(rows / Math.max(1, Math.ceil(bytes / pageBytes))));
    const end = at + rows;
    while (at + step < end) {
      at += step;
      close();
    }
    at = end;
    gathered += bytes;
  }
  close();
  return pages;
}

/** Whether a column holds anything at all: a shard without a single event has a column of any type. */
export async function hasValues(file: TableFile, column: string): Promise<boolean> {
  return withDuckDB(async (connection) => {
    const result = await connection.runAndReadAll(
      `SELECT 1 FROM read_parquet(${sqlFile(file.path)}) WHERE ${sqlName(column)} IS NOT NULL LIMIT 1`,
    );
    return result.currentRowCount > 0;
  }).catch((error: unknown) => {
    throw duckdbError(error, file.path);
  });
}

/** Rows in the file, from its footer. */
export async function countParquetRows(file: TableFile): Promise<number> {
  return withDuckDB(async (connection) => {
    const result = await connection.runAndReadAll(
      `SELECT sum(num_rows)::BIGINT FROM parquet_file_metadata(${sqlFile(file.path)})`,
    );
    return Number(result.getRows()[0]?.[0] ?? 0);
  }).catch((error: unknown) => {
    throw duckdbError(error, file.path);
  });
}

/** Numbers (from 0) of the rows that pass, read from the columns of the filter alone. */
async function matchingRows(connection: DuckDBConnection, file: TableFile, where: string): Promise<number[]> {
  const result = await connection.runAndReadAll(
    `SELECT file_row_number FROM read_parquet(${sqlFile(file.path)}, file_row_number = true) WHERE ${where}`,
  );
  return result.getRows().map(([number]) => Number(number));
}

/** Rows to read (from 0), ascending; null = all. */
async function wantedRows(
  connection: DuckDBConnection,
  file: TableFile,
  where: string,
  rows: ReadonlySet<number> | undefined,
): Promise<number[] | null> {
  if (where === '') return rows === undefined ? null : Array.from(rows, (row) => row - 1).sort((a, b) => a - b);
  const found = await matchingRows(connection, file, where);
  return found.filter((row) => rows === undefined || rows.has(row + 1)).sort((a, b) => a - b);
}

/** One chunk of a result whose first column is the row's number. */
function* chunkRows(chunk: DuckDBDataChunk, columns: readonly Column[], file: string): Generator<RawRow> {
  const vectors = Array.from({ length: columns.length + 1 }, (_, index) => chunk.getColumnVector(index));
  for (let at = 0; at < chunk.rowCount; at += 1) {
    const values = new Map<string, JsonValue>();
    let problem: RawRow['problem'] = null;
    for (const [index, column] of columns.entries()) {
      try {
        values.set(column.name, fromDuckDB(vectors[index + 1].getItem(at)));
      } catch {
        problem = { field: column.name, message: `${column.name}: expected UTF-8 text, got invalid bytes` };
      }
    }
    yield { file, row: Number(vectors[0].getItem(at)) + 1, values, problem };
  }
}

/** Rows in the order of the file. `options.rows` (from 1) and `options.where` are applied by DuckDB. */
export async function* parquetRows(file: TableFile, options: ReadRowsOptions): AsyncGenerator<RawRow> {
  const all = await parquetColumns(file);
  const columns = all.filter((column) => options.columns === null || options.columns.includes(column.name));
  const select = ['file_row_number', ...columns.map((column) => sqlName(column.name))].join(', ');
  const name = basename(file.path);
  const { connection, close } = await openDuckDB();
  try {
    const pages = await planPages(connection, file, options.pageBytes ?? PAGE_BYTES);
    const wanted = await wantedRows(connection, file, options.where?.(all) ?? '', options.rows);
    let next = 0;
    for (const page of pages) {
      let test = `file_row_number BETWEEN ${page.from} AND ${page.to - 1}`;
      if (wanted !== null) {
        const start = next;
        while (next < wanted.length && wanted[next] < page.to) next += 1;
        if (next === start) continue;
        const here = wanted.slice(start, next);
        // A page that is wanted whole needs no list.
        if (here.length < page.to - page.from)
          test = `file_row_number BETWEEN ${here[0]} AND ${here.at(-1)} AND file_row_number IN (${here.join(', ')})`;
      }
      const result = await connection.stream(
        `SELECT ${select} FROM read_parquet(${sqlFile(file.path)}, file_row_number = true) WHERE ${test}`,
      );
      for (let chunk = await result.fetchChunk(); chunk && chunk.rowCount > 0; chunk = await result.fetchChunk())
        yield* chunkRows(chunk, columns, name);
    }
  } catch (error) {
    throw error instanceof DataError ? error : duckdbError(error, file.path);
  } finally {
    close();
  }
}
