import { isJsonNumber } from '../lib/json.ts';
import type { JsonValue } from '../types.ts';
import { sqlName, sqlText } from './duckdb.ts';
import type { Column } from './rows.ts';

type Scalar = string | number | boolean | null;
export interface Comparison {
  readonly not?: Scalar | readonly Scalar[];
  readonly gte?: number;
  readonly lte?: number;
  readonly gt?: number;
  readonly lt?: number;
  /** SQL pattern over a text column: % any text, _ any character. */
  readonly like?: string;
}
/** `column: value`, `column: [values]` or `column: {comparisons}`; all have to hold. null matches a missing value. */
export type Where = Readonly<Record<string, Scalar | readonly Scalar[] | Comparison>>;

const isComparison = (value: unknown): value is Comparison =>
  value !== null && typeof value === 'object' && !Array.isArray(value);
const list = (value: Scalar | readonly Scalar[]): readonly Scalar[] =>
  Array.isArray(value) ? (value as readonly Scalar[]) : [value as Scalar];

/** Numbers are compared as numbers (3 is 3.0, and "3" in a text column), everything else as text. */
function sqlIn(name: string, values: readonly Scalar[]): string {
  const some = values.filter((value) => value !== null);
  const parts = some.map((value) =>
    typeof value === 'number'
      ? `coalesce(TRY_CAST(CAST(${name} AS VARCHAR) AS DOUBLE) = ${value}, false)`
      : `coalesce(CAST(${name} AS VARCHAR) = ${sqlText(String(value))}, false)`,
  );
  if (values.includes(null)) parts.push(`${name} IS NULL OR CAST(${name} AS VARCHAR) = 'nan'`);
  return parts.length === 0 ? 'false' : `(${parts.join(' OR ')})`;
}

/** The filter as SQL; a column the file does not have is missing in every row. */
export function whereSql(where: Where, columns: readonly Column[]): string {
  const parts = Object.entries(where).map(([column, condition]) => {
    const name = columns.some((item) => item.name === column) ? sqlName(column) : 'NULL';
    if (!isComparison(condition)) return sqlIn(name, list(condition));
    const tests: string[] = [];
    if (condition.not !== undefined) tests.push(`NOT ${sqlIn(name, list(condition.not))}`);
    for (const [key, sign] of [
      ['gte', '>='],
      ['lte', '<='],
      ['gt', '>'],
      ['lt', '<'],
    ] as const) {
      // NaN is missing here, and the largest number there.
      const number = `nullif(TRY_CAST(CAST(${name} AS VARCHAR) AS DOUBLE), 'nan'::DOUBLE)`;
      if (condition[key] !== undefined) tests.push(`coalesce(${number} ${sign} ${condition[key]}, false)`);
    }
    if (condition.like !== undefined)
      tests.push(
        `coalesce(typeof(${name}) = 'VARCHAR' AND CAST(${name} AS VARCHAR) LIKE ${sqlText(condition.like)}, false)`,
      );
    return tests.length === 0 ? 'true' : `(${tests.join(' AND ')})`;
  });
  return parts.join(' AND ');
}

function plain(value: JsonValue | undefined): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'boolean' || typeof value === 'string') return String(value);
  return isJsonNumber(value) && value.lexeme !== 'NaN' ? value.lexeme : null;
}

const matchesLike = (text: string, pattern: string): boolean =>
  new RegExp(
    `^${pattern
      .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replaceAll('%', '[\\s\\S]*')
      .replaceAll('_', '[\\s\\S]')}$`,
  ).test(text);

/** The same filter over a row in memory (JSON lines). */
export function whereMatches(where: Where, values: ReadonlyMap<string, JsonValue>): boolean {
  return Object.entries(where).every(([column, condition]) => {
    const cell = values.get(column);
    const value = plain(cell);
    const number = value === null || value.trim() === '' ? Number.NaN : Number(value);
    const isIn = (wanted: readonly Scalar[]): boolean =>
      wanted.some((item) =>
        item === null ? value === null : typeof item === 'number' ? number === item : value === String(item),
      );
    if (!isComparison(condition)) return isIn(list(condition));
    return (
      (condition.not === undefined || !isIn(list(condition.not))) &&
      (condition.gte === undefined || number >= condition.gte) &&
      (condition.lte === undefined || number <= condition.lte) &&
      (condition.gt === undefined || number > condition.gt) &&
      (condition.lt === undefined || number < condition.lt) &&
      (condition.like === undefined || (typeof cell === 'string' && matchesLike(cell, condition.like)))
    );
  });
}
