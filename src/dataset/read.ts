import { basename } from 'node:path';
import type { Mapping } from '../config/mapping-fields.ts';
import { DataError, UserError } from '../errors.ts';
import type { Episode, EpisodeMeta, Exclusion } from '../types.ts';
import type { Warn } from './adapters/adapter.ts';
import { FieldProblem } from './cell.ts';
import { checkKeys, checkPairs } from './check.ts';
import { checkColumns } from './columns.ts';
import { keyOf, rowReader, type RowReader, toMeta } from './episode.ts';
import { findTables, type TableFile } from './files.ts';
import { countParquetRows } from './parquet.ts';
import { createQuarantine, type Quarantine } from './quarantine.ts';
import { type RawRow, readRows } from './rows.ts';
import { readSideTables } from './side-tables.ts';
import { type Where, whereMatches, whereSql } from './where.ts';

/** Files, folders (Hub layout) or globs of one data set. */
export interface DatasetSource {
  readonly episodes: readonly string[];
  readonly scenarios: readonly string[] | null;
  readonly reportLabels: readonly string[] | null;
  /** JSON list of tool schemas, for sources without such a column. */
  readonly tools: string | null;
}

export interface ReadOptions {
  readonly where: Where;
  /** Share of bad rows above which reading stops with a DataError; 1 = never. */
  readonly maxBad: number;
  /** Each row that is set aside; file and row name it. */
  readonly onExclusion: (exclusion: Exclusion) => void;
  /** Once per kind: the rows go on. */
  readonly onWarning: (kind: string, detail: string) => void;
  readonly signal?: AbortSignal;
}

/** What a mapping takes from tables that the source does not name. @throws UserError (2) */
export function checkSource(source: DatasetSource, mapping: Mapping): void {
  if (source.scenarios !== null) return;
  const needed = [mapping.opening.system, mapping.opening.user, mapping.tools].filter(
    (reference) => reference?.startsWith('scenarios.') === true,
  );
  if (needed.length > 0 && mapping.format === 'events')
    throw new UserError(
      `dataset.scenarios: expected the table that mapping ${mapping.name} takes ${needed.join(', ')} from, got none. Name it, or say in the mapping where the prompts stand (opening, tools)`,
    );
}

/** All rows of the files that pass `where`, good or bad. */
async function* filteredRows(
  files: readonly TableFile[],
  mapping: Mapping,
  options: Pick<ReadOptions, 'where' | 'signal'>,
): AsyncGenerator<RawRow> {
  const wanted = Object.keys(options.where);
  const known = new Set<string>();
  for (const file of files) {
    const read = readRows(file, {
      columns: null,
      nanLiteral: mapping.nanLiteral,
      ...(file.format === 'parquet'
        ? {
            where: (columns) => {
              for (const { name } of columns) known.add(name);
              return whereSql(options.where, columns);
            },
          }
        : {}),
    });
    for await (const row of read) {
      options.signal?.throwIfAborted();
      if (file.format === 'jsonl' && row.problem === null) {
        if (known.size < wanted.length) for (const name of wanted) if (row.values.has(name)) known.add(name);
        if (!whereMatches(options.where, row.values)) continue;
      }
      yield row;
    }
  }
  const strange = wanted.find((name) => !known.has(name));
  if (strange !== undefined)
    throw new UserError(
      `dataset.where.${strange}: expected a column of ${basename(files[0].path)}, got none of that name${known.size > 0 ? ` (there are ${[...known].slice(0, 30).join(', ')})` : ''}. Correct the filter`,
    );
}

/** One row → one episode, or null with the reason handed to the quarantine. */
function readRow(row: RawRow, mapping: Mapping, reader: RowReader, quarantine: Quarantine, warn: Warn): Episode | null {
  quarantine.seen();
  if (row.problem) {
    quarantine.setAside(row, row.problem.field === null ? 'bad_json' : 'bad_field', row.problem.message, null);
    return null;
  }
  try {
    return reader(row, warn);
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    quarantine.setAside(row, `bad_${error.field.split(' ')[0]}`, error.message, rowKey(row, mapping));
    return null;
  }
}

/** The key of a row whose other fields may be unusable; null where it has none. */
function rowKey(row: RawRow, mapping: Mapping): string | null {
  try {
    return keyOf(row.values, mapping);
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    return null;
  }
}

/** Warns once per kind, with the row. */
function onceEach(onWarning: ReadOptions['onWarning']): (row: RawRow) => Warn {
  const warned = new Set<string>();
  return (row) => (kind, detail) => {
    if (warned.has(kind)) return;
    warned.add(kind);
    onWarning(kind, `${row.file}: row ${row.row}: ${detail}`);
  };
}

/** More rows than this many cannot come, or null where only reading tells. */
async function mostRows(files: readonly TableFile[], where: Where): Promise<number | null> {
  if (Object.keys(where).length > 0 || files.some((file) => file.format !== 'parquet')) return null;
  let rows = 0;
  for (const file of files) rows += await countParquetRows(file);
  return rows;
}

/**
 * Every episode that passes `where`, in the order of files and rows. Bad rows are set aside through `onExclusion`.
 * @throws DataError (65) for unusable files, missing columns, no rows at all, or more than `maxBad` bad rows
 */
export async function* readEpisodes(
  source: DatasetSource,
  mapping: Mapping,
  options: ReadOptions,
): AsyncGenerator<Episode> {
  const files = await findTables(source.episodes);
  await checkColumns(files, mapping, options.onWarning);
  const tables = await readSideTables(source, mapping);
  const reader = rowReader(mapping, tables);
  const warn = onceEach(options.onWarning);
  const quarantine = createQuarantine(options.maxBad, await mostRows(files, options.where), options.onExclusion);
  let labelled = 0;
  for await (const row of filteredRows(files, mapping, options)) {
    const episode = readRow(row, mapping, reader, quarantine, warn(row));
    if (episode === null) continue;
    if (episode.reportLabel !== null) labelled += 1;
    yield episode;
  }
  quarantine.finish();
  if (quarantine.rows === 0) {
    const names = files.map((file) => basename(file.path)).join(', ');
    const filtered = Object.keys(options.where).length > 0;
    throw new DataError(
      `${names}: expected at least one row, got 0 rows${filtered ? ' that pass where' : ' (empty)'}. Check the file${filtered ? ' and the filter' : ''}`,
    );
  }
  if (labelled === 0 && (tables.reportLabels?.size ?? 0) > 0)
    options.onWarning(
      'no_report_label',
      `report labels: none of ${tables.reportLabels!.size.toLocaleString('en')} labels belongs to an episode that was read`,
    );
}

/** The light part of every episode, checked as a whole: unique keys, twins. @throws DataError (65) */
export async function readMetas(source: DatasetSource, mapping: Mapping, options: ReadOptions): Promise<EpisodeMeta[]> {
  const metas: EpisodeMeta[] = [];
  // A row that is set aside still tells that its id stands twice.
  const setAside: Pick<EpisodeMeta, 'key' | 'source'>[] = [];
  const onExclusion = (exclusion: Exclusion): void => {
    if (exclusion.episode !== null)
      setAside.push({ key: exclusion.episode, source: { file: exclusion.file ?? '', row: exclusion.row ?? 0 } });
    options.onExclusion(exclusion);
  };
  for await (const episode of readEpisodes(source, mapping, { ...options, onExclusion })) metas.push(toMeta(episode));
  checkKeys([...metas, ...setAside], mapping);
  checkPairs(metas, options.onWarning);
  return metas;
}

/** Text held in memory at once while episodes are put in order. */
const WAVE_BYTES = 128 << 20;

/**
 * Full episodes in the order of `metas` (as read by `readMetas`), whatever their order in the files: in waves that fit
 * in memory, each one pass over the rows that are wanted.
 * @throws DataError (65) when a row is no longer what it was
 */
export async function* readEpisodesInOrder(
  source: DatasetSource,
  mapping: Mapping,
  metas: readonly EpisodeMeta[],
  signal?: AbortSignal,
): AsyncGenerator<Episode> {
  const files = await findTables(source.episodes);
  const reader = rowReader(mapping, await readSideTables(source, mapping));
  const byName = new Map<string, TableFile[]>();
  for (const file of files) byName.set(basename(file.path), [...(byName.get(basename(file.path)) ?? []), file]);
  // Text unpacks about 3 : 1 from parquet; the count of rows is at least the largest row number seen.
  const bytes = files.reduce((sum, file) => sum + file.bytes * (file.format === 'parquet' ? 3 : 1), 0);
  const rows = Math.max(metas.length, ...[...byName.keys()].map((name) => maxRow(metas, name)));
  const wave = Math.max(1, Math.floor(WAVE_BYTES / Math.max(1, bytes / Math.max(1, rows))));
  for (let from = 0; from < metas.length; from += wave) {
    const here = metas.slice(from, from + wave);
    const keys = new Set(here.map((meta) => meta.key));
    const held = new Map<string, RawRow>();
    for (const [name, same] of byName) {
      const wanted = new Set(here.filter((meta) => meta.source.file === name).map((meta) => meta.source.row));
      if (wanted.size === 0) continue;
      for (const file of same) {
        for await (const row of readRows(file, { columns: null, nanLiteral: mapping.nanLiteral, rows: wanted })) {
          signal?.throwIfAborted();
          const key = row.problem === null ? rowKey(row, mapping) : null;
          if (key !== null && keys.has(key)) held.set(key, row);
        }
      }
    }
    for (const meta of here) {
      const row = held.get(meta.key);
      if (row === undefined)
        throw new DataError(
          `${meta.source.file}: row ${meta.source.row}: expected the episode ${meta.key.slice(0, 80)}, got another row. The file changed while it was read; run the command again`,
        );
      held.delete(meta.key);
      yield reader(row, () => undefined);
    }
  }
}

function maxRow(metas: readonly EpisodeMeta[], file: string): number {
  let most = 0;
  for (const { source } of metas) if (source.file === file && source.row > most) most = source.row;
  return most;
}
