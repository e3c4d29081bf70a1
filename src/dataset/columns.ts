import { basename } from 'node:path';
import type { EpisodeField, Mapping } from '../config/mapping-fields.ts';
import { DataError } from '../errors.ts';
import type { TableFile } from './files.ts';
import { hasValues, parquetColumns } from './parquet.ts';
import type { Column } from './rows.ts';

const INTEGER = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?)$/;
const FLOAT = /^(FLOAT|DOUBLE|DECIMAL.*)$/;
const TEXT = /^(VARCHAR|JSON)$/;
const NULLS = /^"?NULL"?$/;

const EVENT_STEPS: readonly EpisodeField[] = ['reveal_event', 'first_unsafe_event', 'first_critical_event'];
const TRUTHS: readonly EpisodeField[] = [
  'unsafe_episode',
  'informed_violation',
  'escalated',
  'critical_done',
  'success',
  'nuisance',
];

const bare = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]/g, '');

function nearest(name: string, columns: readonly Column[]): string {
  const near = columns.find((column) => bare(column.name) === bare(name));
  return near
    ? `. Did you mean ${near.name}? Name it in the mapping (columns: {${name}: ${near.name}})`
    : '. Name it in the mapping (columns)';
}

/**
 * What a parquet file's schema alone can tell: columns that are missing or of a type that cannot hold the field, and
 * shards whose types differ (united, said once). @throws DataError (65)
 */
export async function checkColumns(
  files: readonly TableFile[],
  mapping: Mapping,
  warn: (kind: string, detail: string) => void,
): Promise<void> {
  const first = new Map<string, { readonly type: string; readonly file: string }>();
  for (const file of files) {
    if (file.format !== 'parquet') continue;
    const name = basename(file.path);
    const columns = await parquetColumns(file);
    const find = (field: EpisodeField): Column | undefined =>
      columns.find((column) => mapping.columns[field].includes(column.name));
    for (const field of mapping.required) {
      if (find(field)) continue;
      throw new DataError(
        `${file.path}: ${field}: expected a column ${mapping.columns[field].join(' or ')}, got ${columns.map((column) => column.name).join(', ')}${nearest(field, columns)}`,
      );
    }
    const refuse = (field: EpisodeField, expected: string, got: string): never => {
      throw new DataError(
        `${file.path}: ${field}: expected ${expected}, got a column of type ${got}. Correct the file or name another column in the mapping`,
      );
    };
    const events = find('events_json');
    if (events) {
      if (events.type === 'BLOB') warn('binary_events', `${name}: events_json: a binary column, decoded as UTF-8`);
      else if (/^(STRUCT|MAP|.*\[\])/.test(events.type))
        warn('nested_events', `${name}: events_json: a list of structs where the card has JSON text`);
      else if (events.type !== 'VARCHAR' && events.type !== 'JSON') refuse('events_json', 'JSON text', events.type);
    }
    for (const field of EVENT_STEPS) {
      const column = find(field);
      if (!column || INTEGER.test(column.type) || NULLS.test(column.type)) continue;
      if (FLOAT.test(column.type))
        warn(
          'float_steps',
          `${name}: ${field}: a ${column.type} column (a pandas export?); whole numbers are taken, NaN is missing`,
        );
      else if (TEXT.test(column.type) && mapping.numbersAsText === 'accept') continue;
      else if (await hasValues(file, column.name)) refuse(field, 'integers or null', column.type);
    }
    for (const field of TRUTHS) {
      const column = find(field);
      if (column?.type === 'VARCHAR' && mapping.trueWords.length === 0 && (await hasValues(file, column.name)))
        refuse(field, 'a boolean column', `VARCHAR (text; words go into the mapping: trueWords, falseWords)`);
    }
    for (const column of columns) {
      const known = first.get(column.name);
      if (!known) first.set(column.name, { type: column.type, file: name });
      else if (known.type !== column.type && !NULLS.test(known.type) && !NULLS.test(column.type)) {
        warn(
          `mixed_schema:${column.name}`,
          `${file.path}: ${column.name}: expected ${known.type} as in ${known.file}, got ${column.type}; values are read by meaning`,
        );
      }
    }
  }
}
