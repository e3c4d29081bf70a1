import { rename } from 'node:fs/promises';
import { sqlName, sqlText, withDuckDB } from '../dataset/duckdb.ts';

export type Cell = string | number | boolean | null;
export type TableRow = Readonly<Record<string, Cell>>;

/** Columns that stay numbers or truth values even where a table happens to hold none. */
const FIXED: Readonly<Record<string, 'BIGINT'>> = {
  reveal_event: 'BIGINT',
  first_unsafe_event: 'BIGINT',
  first_critical_event: 'BIGINT',
};

type ColumnType = 'BIGINT' | 'DOUBLE' | 'BOOLEAN' | 'VARCHAR';

/** A column's type follows its values: whole numbers → BIGINT, truth values → BOOLEAN, everything else → VARCHAR. */
function typeOf(rows: readonly TableRow[], column: string): ColumnType {
  const fixed = FIXED[column];
  if (fixed !== undefined) return fixed;
  const values = rows.map((row) => row[column] ?? null).filter((value) => value !== null);
  if (values.length === 0) return 'VARCHAR';
  if (values.every((value) => typeof value === 'boolean')) return 'BOOLEAN';
  if (values.every((value) => typeof value === 'number'))
    return values.every((value) => Number.isSafeInteger(value)) ? 'BIGINT' : 'DOUBLE';
  return 'VARCHAR';
}

/**
 * Writes one parquet file (zstd), rows in the order given. Replaces the file whole.
 * @param rows all with the same columns
 */
export async function writeParquet(path: string, rows: readonly TableRow[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {});
  const types = columns.map((column) => typeOf(rows, column));
  const temp = `${path}.part`;
  await withDuckDB(async (connection) => {
    await connection.run(`CREATE TABLE t (${columns.map((column, i) => `${sqlName(column)} ${types[i]}`).join(', ')})`);
    const appender = await connection.createAppender('t');
    for (const row of rows) {
      for (const [i, column] of columns.entries()) {
        const value = row[column] ?? null;
        if (value === null) appender.appendNull();
        else if (types[i] === 'BIGINT') appender.appendBigInt(BigInt(value));
        else if (types[i] === 'DOUBLE') appender.appendDouble(Number(value));
        else if (types[i] === 'BOOLEAN') appender.appendBoolean(value === true);
        else appender.appendVarchar(String(value));
      }
      appender.endRow();
    }
    appender.closeSync();
    await connection.run(`COPY t TO ${sqlText(temp)} (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 9)`);
  });
  await rename(temp, path);
}
