import { type DuckDBConnection, DuckDBInstance, type DuckDBValue } from '@duckdb/node-api';
import { tmpdir } from 'node:os';
import { DataError } from '../errors.ts';
import { jsonNumber } from '../lib/json.ts';
import type { JsonValue } from '../types.ts';

/**
 * DuckDB, closed by the caller. Extensions are never installed or loaded (it would fetch them from its own site), memory
 * is bounded, temp files go where temp files go. A second query on a connection silently ends an open stream, so every
 * query is read to its end before the next.
 */
export async function openDuckDB(): Promise<{ readonly connection: DuckDBConnection; close: () => void }> {
  const instance = await DuckDBInstance.create(':memory:', {
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    allow_community_extensions: 'false',
    memory_limit: '1GB',
    threads: '1',
    temp_directory: tmpdir(),
    preserve_insertion_order: 'true',
  });
  const connection = await instance.connect();
  return {
    connection,
    close: () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

export async function withDuckDB<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  const { connection, close } = await openDuckDB();
  try {
    return await work(connection);
  } finally {
    close();
  }
}

export const sqlText = (text: string): string => `'${text.replaceAll("'", "''")}'`;
export const sqlName = (name: string): string => `"${name.replaceAll('"', '""')}"`;
/** `read_parquet` takes patterns; a file name is meant as it stands. */
export const sqlFile = (path: string): string => sqlText(path.replace(/[*?[]/g, '[$&]'));

/** Files that match a shell pattern, sorted. Node 20 has no glob of its own. */
export function matchGlob(pattern: string): Promise<string[]> {
  return withDuckDB(async (connection) => {
    const result = await connection.runAndReadAll(`SELECT file FROM glob(${sqlText(pattern)}) ORDER BY file`);
    return result.getRows().map((row) => String(row[0]));
  });
}

/** A DuckDB value in our lossless JSON: integers keep every digit, padded nulls of nested structs are dropped. */
export function fromDuckDB(value: DuckDBValue): JsonValue {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'bigint') return jsonNumber(value);
  if (typeof value === 'number') return jsonNumber(Object.is(value, -0) ? '-0.0' : value);
  if (typeof value === 'object') {
    if ('items' in value && Array.isArray(value.items)) return (value.items as DuckDBValue[]).map(fromDuckDB);
    if ('entries' in value) {
      const { entries } = value as { entries: unknown };
      if (Array.isArray(entries)) {
        return new Map(
          (entries as { key: DuckDBValue; value: DuckDBValue }[]).map((item) => [
            String(item.key),
            fromDuckDB(item.value),
          ]),
        );
      }
      const map = new Map<string, JsonValue>();
      for (const [key, item] of Object.entries(entries as Record<string, DuckDBValue>))
        if (item !== null) map.set(key, fromDuckDB(item));
      return map;
    }
    if ('bytes' in value)
      return new TextDecoder('utf-8', { fatal: true }).decode((value as { bytes: Uint8Array }).bytes);
  }
  return String(value);
}

/** DuckDB's messages are long and name internals; one line that names the file is what a reader needs. */
export function duckdbError(error: unknown, file: string): DataError {
  const message = (error instanceof Error ? error.message : String(error)).split('\n')[0].slice(0, 300);
  const hint = /out of memory|failed to allocate/i.test(message)
    ? 'Write the file again with smaller row groups (2,048 rows)'
    : /string encoding|UTF-?8/i.test(message)
      ? 'Write the text columns as UTF-8'
      : 'Fetch the file again';
  return new DataError(`${file}: expected a readable parquet file, got: ${message}. ${hint}`, { cause: error });
}
