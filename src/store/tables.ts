import { DuckDBInstance } from '@duckdb/node-api';
import { rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DiskError } from '../errors.ts';

/** A column of a table in memory; null cells are allowed everywhere. */
export type ColumnType = 'VARCHAR' | 'INTEGER' | 'DOUBLE' | 'BOOLEAN';
export type Cell = string | number | boolean | null;

const quoteText = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Rows → a zstd parquet file, written whole. @throws DiskError (74) */
export async function writeParquet(
  path: string,
  columns: Readonly<Record<string, ColumnType>>,
  rows: readonly Readonly<Record<string, Cell>>[],
): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:', {
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    threads: '1',
  });
  const connection = await instance.connect();
  const temp = join(dirname(path), `.${Buffer.from(path).toString('hex').slice(-12)}.tmp`);
  try {
    const names = Object.keys(columns);
    await connection.run(`CREATE TABLE t (${names.map((name) => `"${name}" ${columns[name]}`).join(', ')})`);
    const appender = await connection.createAppender('t');
    for (const row of rows) {
      for (const name of names) {
        const value = row[name] ?? null;
        const type = columns[name];
        if (value === null) appender.appendNull();
        else if (type === 'VARCHAR') appender.appendVarchar(String(value));
        else if (type === 'INTEGER') appender.appendInteger(Number(value));
        else if (type === 'DOUBLE') appender.appendDouble(Number(value));
        else appender.appendBoolean(value === true);
      }
      appender.endRow();
    }
    appender.closeSync();
    await connection.run(`COPY t TO ${quoteText(temp)} (FORMAT parquet, COMPRESSION zstd)`);
    await rename(temp, path);
  } catch (error) {
    await unlink(temp).catch(() => undefined);
    throw new DiskError(
      `${path}: expected to write ${rows.length} rows, got: ${(error as Error).message.split('\n')[0]}. Make room or choose another --out`,
      { cause: error },
    );
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Rows of a parquet file of ours, as plain objects. */
export async function readParquet(path: string): Promise<Record<string, Cell>[]> {
  const instance = await DuckDBInstance.create(':memory:', {
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    threads: '1',
  });
  const connection = await instance.connect();
  try {
    const result = await connection.runAndReadAll(`SELECT * FROM read_parquet(${quoteText(path)})`);
    return result.getRowObjects() as Record<string, Cell>[];
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
