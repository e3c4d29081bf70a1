import { DuckDBInstance } from '@duckdb/node-api';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadMapping } from '../../src/config/mapping.ts';
import type { Mapping } from '../../src/config/mapping-fields.ts';
import type { DatasetSource, ReadOptions } from '../../src/dataset/read.ts';
import type { Exclusion } from '../../src/types.ts';

/** Small tables that the tests write themselves. */

export const mappingPath = (name: string): string =>
  fileURLToPath(new URL(`../../mappings/${name}.yaml`, import.meta.url));
export const capeMapping = (): Promise<Mapping> => loadMapping(mappingPath('cape-bench'));

/** The CAPE mapping with keys changed, through a real file. */
export async function mappingWith(yaml: string): Promise<Mapping> {
  const path = join(newFolder(), 'mapping.yaml');
  writeFileSync(path, `name: test\n${yaml}`);
  return loadMapping(path);
}

export const newFolder = (): string => mkdtempSync(join(tmpdir(), 'forewarn-dataset-'));

export type Row = Record<string, unknown>;

export interface EventOptions {
  readonly turns?: number;
  readonly unsafe?: number | null;
  readonly from?: 0 | 1;
}

/** Events of an episode that acts in turn `unsafe` and reports in its last turn. */
export function eventsOf({ turns = 3, unsafe = null, from = 0 }: EventOptions): Row[] {
  return Array.from({ length: turns }, (_, index) => ({
    step: index + from,
    reasoning: `I look at item ${index}.`,
    content: index === turns - 1 ? 'Done.' : '',
    tool_name: index === turns - 1 ? null : index === unsafe ? 'delete_item' : 'read_item',
    tool_args: index === turns - 1 ? null : { path: `/items/${index}` },
    tool_result: index === turns - 1 ? null : 'ok',
    unsafe_action: index === unsafe,
    critical: index === unsafe,
    escalation: false,
    violations: index === unsafe ? ['unauthorized'] : [],
  }));
}

/** A row in CAPE's columns; even numbers are unsafe in turn 1. */
export function episodeRow(number: number, change: Row = {}): Row {
  const unsafe = number % 2 === 0 ? 1 : null;
  return {
    run: 'run_minus',
    model: 'model-a',
    episode_id: `ep-${number}`,
    scenario_id: `scenario-${number}`,
    instance_id: `instance-${number}`,
    template: 'delete',
    scenario_family: 'ownership',
    counterfactual_pair_id: `pair-${Math.floor(number / 2)}`,
    cf_value: 'unsafe',
    nuisance: false,
    seed: number,
    reveal_event: 0,
    first_unsafe_event: unsafe,
    unsafe_episode: unsafe !== null,
    informed_violation: unsafe !== null,
    escalated: false,
    critical_done: unsafe !== null,
    first_critical_event: unsafe,
    success: true,
    status: 'completed',
    final_answer: 'Done.',
    events_json: JSON.stringify(eventsOf({ unsafe })),
    ...change,
  };
}

export const episodeRows = (count: number): Row[] => Array.from({ length: count }, (_, index) => episodeRow(index));

export function writeJsonl(rows: readonly (Row | string)[], name = 'episodes.jsonl', folder = newFolder()): string {
  const path = join(folder, name);
  writeFileSync(path, rows.map((row) => `${typeof row === 'string' ? row : JSON.stringify(row)}\n`).join(''));
  return path;
}

/** Parquet from rows, DuckDB choosing the types, or from a query over them (`FROM rows`). */
export async function writeParquet(
  rows: readonly Row[],
  options: {
    readonly name?: string;
    readonly folder?: string;
    readonly select?: string;
    readonly groupRows?: number;
  } = {},
): Promise<string> {
  const folder = options.folder ?? newFolder();
  const path = join(folder, options.name ?? 'episodes.parquet');
  const source = writeJsonl(rows, 'source.ndjson', newFolder());
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  await connection.run(
    `CREATE VIEW rows AS SELECT * FROM read_json('${source}', format = 'newline_delimited', sample_size = -1)`,
  );
  await connection.run(
    `COPY (${options.select ?? 'SELECT * FROM rows'}) TO '${path}' (FORMAT parquet${options.groupRows === undefined ? '' : `, ROW_GROUP_SIZE ${options.groupRows}`})`,
  );
  connection.closeSync();
  instance.closeSync();
  return path;
}

export const sourceOf = (episodes: string | readonly string[], more: Partial<DatasetSource> = {}): DatasetSource => ({
  episodes: typeof episodes === 'string' ? [episodes] : episodes,
  scenarios: null,
  reportLabels: null,
  tools: null,
  ...more,
});

/** Options that collect what was set aside and warned of. */
export function collect(change: Partial<ReadOptions> = {}): ReadOptions & {
  readonly exclusions: Exclusion[];
  readonly warnings: string[];
} {
  const exclusions: Exclusion[] = [];
  const warnings: string[] = [];
  return {
    where: {},
    maxBad: 1,
    onExclusion: (exclusion) => exclusions.push(exclusion),
    onWarning: (kind) => warnings.push(kind),
    ...change,
    exclusions,
    warnings,
  };
}
