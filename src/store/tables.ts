import { DuckDBInstance, type DuckDBAppender, type DuckDBConnection } from '@duckdb/node-api';
import { stat, unlink } from 'node:fs/promises';
import { CorruptFileError, DataError, DiskError } from '../errors.ts';
import { publishFile, temporaryPath } from '../lib/atomic-write.ts';

/** Tables of a run: rows in memory ↔ zstd parquet files that any reader of parquet takes. Null cells are allowed everywhere. */
export type ColumnType = 'VARCHAR' | 'INTEGER' | 'DOUBLE' | 'BOOLEAN';
export type Cell = string | number | boolean | null;
export type Columns = Readonly<Record<string, ColumnType>>;
export type Row = Readonly<Record<string, Cell>>;

const quoteText = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** An in-memory database that fetches nothing from anywhere. */
async function withDuckDb<T>(body: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  const instance = await DuckDBInstance.create(':memory:', {
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    // One thread writes rows in their order.
    threads: '1',
  });
  try {
    const connection = await instance.connect();
    try {
      return await body(connection);
    } finally {
      connection.closeSync();
    }
  } finally {
    instance.closeSync();
  }
}

/** A cell that does not fit its column is a bug of the stage that made it: it must not become null or a wrong number. */
function append(appender: DuckDBAppender, type: ColumnType, value: Cell, where: string): void {
  if (value === null) appender.appendNull();
  else if (type === 'VARCHAR' && typeof value === 'string') appender.appendVarchar(value);
  else if (type === 'BOOLEAN' && typeof value === 'boolean') appender.appendBoolean(value);
  else if (type === 'DOUBLE' && typeof value === 'number' && Number.isFinite(value)) appender.appendDouble(value);
  else if (type === 'INTEGER' && typeof value === 'number' && value === (value | 0)) appender.appendInteger(value);
  else throw new TypeError(`${where}: expected ${type}, got ${typeof value} ${String(value)}`);
}

/** Rows → a parquet file, written whole. Cells left out are null. @throws DiskError (74), TypeError for a cell of another type */
export async function writeParquet(path: string, columns: Columns, rows: readonly Row[]): Promise<void> {
  const names = Object.keys(columns);
  const temp = temporaryPath(path);
  try {
    await withDuckDb(async (connection) => {
      await connection.run(`CREATE TABLE t (${names.map((name) => `${quoteName(name)} ${columns[name]}`).join(', ')})`);
      const appender = await connection.createAppender('t');
      for (const [index, row] of rows.entries()) {
        for (const name of names) append(appender, columns[name], row[name] ?? null, `row ${index}, ${name}`);
        appender.endRow();
      }
      appender.closeSync();
      await connection.run(`COPY t TO ${quoteText(temp)} (FORMAT parquet, COMPRESSION zstd)`);
    });
  } catch (error) {
    await unlink(temp).catch(() => undefined);
    if (error instanceof TypeError) throw error;
    throw new DiskError(
      `${path}: expected to write ${rows.length} rows, got: ${firstLine(error)}. Make room or choose another --out, then run the same command again`,
      { cause: error },
    );
  }
  await publishFile(temp, path);
}

/** Rows of a parquet file of ours, in order. @throws DataError (65) when it is not there, CorruptFileError (65) */
export async function readParquet(path: string): Promise<Record<string, Cell>[]> {
  await stat(path).catch((error: unknown) => {
    throw new DataError(
      `${path}: expected a table, got ${(error as NodeJS.ErrnoException).code ?? 'an error'}. Run the stage that makes it`,
      { cause: error },
    );
  });
  try {
    return await withDuckDb(async (connection) => {
      const result = await connection.runAndReadAll(`SELECT * FROM read_parquet(${quoteText(path)})`);
      return result.getRowObjects() as Record<string, Cell>[];
    });
  } catch (error) {
    throw new CorruptFileError(
      `${path}: expected a parquet table, got: ${firstLine(error)}. Remove the file and run the same command again`,
      { cause: error },
    );
  }
}

const firstLine = (error: unknown): string => (error as Error).message.split('\n')[0];
