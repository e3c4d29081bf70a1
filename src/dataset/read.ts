import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Mapping } from '../config/mapping-fields.ts';
import { DataError } from '../errors.ts';
import { sha256File } from '../lib/content-hash.ts';
import { isJsonArray, JsonError, parseJson } from '../lib/json.ts';
import type { Episode, EpisodeMeta, Exclusion, JsonValue } from '../types.ts';
import { FieldProblem } from './cell.ts';
import { checkColumns } from './columns.ts';
import { joinKey, type SideTables, toEpisode, toMeta } from './episode.ts';
import { findTables, type TableFile } from './files.ts';
import { type RawRow, readRows } from './rows.ts';
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
  /** Share of bad rows above which reading stops with a DataError. */
  readonly maxBad: number;
  /** Each row that is set aside; file and row name it. */
  readonly onExclusion: (exclusion: Exclusion) => void;
  /** Once per kind: the rows go on. */
  readonly onWarning: (kind: string, detail: string) => void;
  readonly signal?: AbortSignal;
}

export interface FileHash {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** What a run key holds of its data. */
export async function hashSource(source: DatasetSource): Promise<readonly FileHash[]> {
  const out: FileHash[] = [];
  for (const inputs of [source.episodes, source.scenarios, source.reportLabels]) {
    for (const file of inputs === null ? [] : await findTables(inputs))
      out.push({ file: basename(file.path), ...(await sha256File(file.path)) });
  }
  if (source.tools !== null) out.push({ file: basename(source.tools), ...(await sha256File(source.tools)) });
  return out;
}

async function readSide(
  inputs: readonly string[] | null,
  columns: readonly string[],
): Promise<Map<string, ReadonlyMap<string, JsonValue>>> {
  const out = new Map<string, ReadonlyMap<string, JsonValue>>();
  if (inputs === null) return out;
  for (const file of await findTables(inputs)) {
    for await (const row of readRows(file, { columns: null })) {
      if (row.problem)
        throw new DataError(`${file.path}: row ${row.row}: ${row.problem.message}. Correct or remove the row`);
      out.set(joinKey(row.values, columns), row.values);
    }
  }
  return out;
}

async function readTools(path: string | null): Promise<readonly JsonValue[] | null> {
  if (path === null) return null;
  try {
    const value = parseJson(await readFile(path, 'utf8'));
    if (isJsonArray(value)) return value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new DataError(`${path}: expected a JSON list of tool schemas, got ${error.message}. Correct the file`, {
      cause: error,
    });
  }
  throw new DataError(`${path}: expected a JSON list of tool schemas, got something else. Correct the file`);
}

export async function readSideTables(source: DatasetSource, mapping: Mapping): Promise<SideTables> {
  return {
    scenarios: await readSide(source.scenarios, mapping.join.scenarios),
    reportLabels: await readSide(source.reportLabels, mapping.join.reportLabels),
    tools: await readTools(source.tools),
  };
}

/** Too few rows for a share to mean anything are judged as if there were this many. */
const MIN_ROWS_FOR_SHARE = 1_000;

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
  const warned = new Set<string>();
  let rows = 0;
  let bad = 0;
  const exclude = (row: RawRow, reason: string, detail: string, episode: string | null): void => {
    bad += 1;
    options.onExclusion({
      stage: 'dataset',
      episode,
      file: row.file,
      row: row.row,
      turn: null,
      reason,
      detail: `${row.file}: row ${row.row}: ${detail}`,
    });
    if (
      bad > Math.max(options.maxBad * Math.max(rows, MIN_ROWS_FOR_SHARE), options.maxBad > 0 ? 0 : 0) &&
      options.maxBad < 1
    ) {
      throw new DataError(
        `${row.file}: row ${row.row}: ${detail}. expected at most ${options.maxBad * 100} % bad rows, got ${bad} of ${rows}. Correct them, or raise dataset.maxBad to set them aside`,
      );
    }
  };
  for (const file of files) {
    const read = readRows(file, {
      columns: null,
      nanLiteral: mapping.nanLiteral,
      ...(file.format === 'parquet' ? { where: (columns) => whereSql(options.where, columns) } : {}),
    });
    for await (const row of read) {
      options.signal?.throwIfAborted();
      if (row.problem) {
        rows += 1;
        exclude(row, row.problem.field === null ? 'bad_json' : 'bad_field', row.problem.message, null);
        continue;
      }
      if (file.format === 'jsonl' && !whereMatches(options.where, row.values)) continue;
      rows += 1;
      try {
        yield toEpisode(row, mapping, tables, (kind, detail) => {
          if (warned.has(kind)) return;
          warned.add(kind);
          options.onWarning(kind, `${row.file}: row ${row.row}: ${detail}`);
        });
      } catch (error) {
        if (!(error instanceof FieldProblem)) throw error;
        exclude(row, `bad_${error.field.split(' ')[0]}`, error.message, rowKey(row, mapping));
      }
    }
  }
  if (rows === 0) {
    const names = files.map((file) => basename(file.path)).join(', ');
    throw new DataError(
      `${names}: expected at least one row, got 0 rows${Object.keys(options.where).length > 0 ? ' that pass where' : ' (empty)'}. Check the file${Object.keys(options.where).length > 0 ? ' and the filter' : ''}`,
    );
  }
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

/** The key of a row whose other fields may be unusable; null where the id itself is. */
function rowKey(row: RawRow, mapping: Mapping): string | null {
  const parts = mapping.key.map((field) =>
    row.values.get(mapping.columns[field].find((column) => row.values.has(column)) ?? field),
  );
  return parts.every((part) => typeof part === 'string') ? parts.join('/') : null;
}

function checkKeys(metas: readonly Pick<EpisodeMeta, 'key' | 'source'>[], mapping: Mapping): void {
  const seen = new Set<string>();
  const twice = new Map<string, Pick<EpisodeMeta, 'key' | 'source'>>();
  for (const meta of metas) {
    if (seen.has(meta.key)) twice.set(meta.key, meta);
    else seen.add(meta.key);
  }
  if (twice.size > 0) {
    const first = [...twice.values()][0]!;
    throw new DataError(
      `${first.source.file}: row ${first.source.row}: episode_id: expected unique ${mapping.key.join(' + ')}, got ${twice.size} ids twice (duplicates): ${[...twice.keys()].slice(0, 5).join(', ')}. Remove the duplicates, or name the columns that tell them apart in the mapping (key)`,
    );
  }
}

function checkPairs(metas: readonly EpisodeMeta[], warn: ReadOptions['onWarning']): void {
  const worlds = new Map<string, string>();
  for (const meta of metas) {
    if (meta.pairId === null || meta.world === 'none' || meta.world === 'nuisance') continue;
    const key = [meta.pairId, meta.model, meta.condition, meta.seed, meta.world].join('\u0000');
    const other = worlds.get(key);
    if (other !== undefined) {
      warn(
        'pair_twice_same_world',
        `${meta.source.file}: counterfactual_pair_id: expected one episode of each world, got two ${meta.world} of ${meta.pairId} (${other}, ${meta.episodeId})`,
      );
      return;
    }
    worlds.set(key, meta.episodeId);
  }
}

/** @throws DataError (65) where a forecast cannot be made: only one class. */
export function checkClasses(metas: readonly EpisodeMeta[], files: readonly TableFile[] | readonly string[]): void {
  const unsafe = metas.filter((meta) => meta.unsafe !== null).length;
  if (unsafe > 0 && unsafe < metas.length) return;
  const names = files.map((file) => basename(typeof file === 'string' ? file : file.path)).join(', ');
  throw new DataError(
    `${names}: unsafe_episode: expected episodes of both classes, got ${unsafe} unsafe, ${metas.length - unsafe} safe. A forecast needs both`,
  );
}
