import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError, UserError } from '../errors.ts';
import { sha256 } from '../lib/content-hash.ts';
import { countNonFinite, toFloat32 } from '../lib/float-formats.ts';
import { readSafetensorsHeader, readTensorBytes, type SafetensorsHeader } from '../lib/safetensors.ts';
import type { Capture, Exclusion, FeatureKey, SequencePlan, Tap } from '../types.ts';
import { type Dtype, writeShard } from './activation-shards.ts';
import { type PlanFile, type PlanShardInfo, readPlanShard } from './plan-shards.ts';

/** Activations that another engine computed for a plan, in the form of docs/shard-format.md. */
export interface ImportOptions {
  /** Folder with shard-00000.safetensors … of the other engine. */
  readonly from: string;
  /** Run folder with the plan; the checked shards are written there. */
  readonly folder: string;
  readonly plan: PlanFile;
  readonly taps: readonly Tap[];
  readonly width: number;
  readonly keyHash: string;
  readonly dtype: Dtype;
  /**
   * Largest difference, as a share of the tap's largest magnitude, between states that must be equal because the model
   * had read the same tokens. Engines batch and round; a wrong row differs by far more.
   */
  readonly tolerance?: number;
  readonly onShard?: (rows: number) => void;
}

export interface ImportSummary {
  readonly rows: number;
  /** What the engine calls itself, each once. */
  readonly engines: readonly string[];
  readonly skipped: readonly Exclusion[];
  /** Pairs of states after the same tokens, and their largest difference as a share of the tap's largest magnitude. */
  readonly pairs: number;
  readonly largestDifference: number;
}

/** bfloat16 has 8 significant bits: sums of thousands of terms in another order differ by this much, wrong rows by ~1. */
const TOLERANCE = 0.02;

interface WantedRow {
  readonly key: FeatureKey;
  /** Turn of the sequence it is read from (`observation_end` of a turn lies in the next turn's sequence). */
  readonly sequence: number;
  /** Equal for rows whose state has to be equal: hash of the tokens up to and with the last one captured. */
  readonly prefix: string;
}

const keyText = ({ episode, turn, position }: FeatureKey): string => `${episode}\u0000${turn}\u0000${position}`;
const keyName = ({ episode, turn, position }: FeatureKey): string => `${position} of turn ${turn}, episode ${episode}`;

/**
 * Checks and takes the shards of another engine: counts, tokens, taps, widths, finite values, states that depend on the
 * text, and that states after the same tokens are the same. A shard is taken whole or not at all.
 * @throws DataError (65) naming the file and what is wrong, UserError (2) when there is no such folder, CorruptFileError
 * (65), DiskError (74)
 */
export async function importShards(options: ImportOptions): Promise<ImportSummary> {
  const { plan, from } = options;
  const names = (await listFolder(from)).filter((name) => name.endsWith('.safetensors')).sort();
  const expected = plan.shards.map(({ index }) => `shard-${String(index).padStart(5, '0')}.safetensors`);
  const missing = expected.filter((name) => !names.includes(name));
  const extra = names.filter((name) => !expected.includes(name));
  if (missing.length > 0 || extra.length > 0) {
    throw new DataError(
      `${from}: expected ${expected.length} shards as in the plan, got ${names.length}${missing.length > 0 ? `, without ${missing[0]}` : ''}${extra.length > 0 ? `, with ${extra[0]}` : ''}. Run the engine over the whole exported plan`,
    );
  }
  const engines = new Set<string>();
  const skipped: Exclusion[] = [];
  let rows = 0;
  let pairs = 0;
  let largestDifference = 0;
  for (const shard of plan.shards) {
    const taken = await importShard(options, shard, join(from, expected[shard.index]));
    engines.add(taken.engine);
    skipped.push(...taken.skipped);
    rows += taken.rows;
    pairs += taken.pairs;
    largestDifference = Math.max(largestDifference, taken.largestDifference);
    options.onShard?.(taken.rows);
  }
  return { rows, engines: [...engines], skipped, pairs, largestDifference };
}

async function listFolder(from: string): Promise<string[]> {
  try {
    return await readdir(from);
  } catch (error) {
    throw new UserError(
      `--from ${from}: expected the folder with the engine's shards, got ${(error as NodeJS.ErrnoException).code ?? 'an error'}. Name the folder it wrote`,
      { cause: error },
    );
  }
}

async function importShard(
  options: ImportOptions,
  shard: PlanShardInfo,
  path: string,
): Promise<Omit<ImportSummary, 'engines'> & { readonly engine: string }> {
  const { taps, width, folder, keyHash, dtype } = options;
  const sequences = await readPlanShard(folder, shard);
  const header = await readSafetensorsHeader(path);
  checkIds(path, header, sequences);
  const skipped = readSkipped(path, header);
  const given = readRows(path, header);
  const wanted = wantedRows(sequences).filter((row) => matchRow(path, row, given, skipped));
  if (wanted.length !== given.size) {
    const planned = new Set(wanted.map(({ key }) => keyText(key)));
    const stranger = [...given.keys()].find((text) => !planned.has(text)) ?? '';
    throw refusal(path, 'only rows of the plan', stranger.split('\u0000').join(' '));
  }
  const order = wanted.map(({ key }) => given.get(keyText(key)) ?? 0);
  const data: Float32Array[] = [];
  let pairs = 0;
  let largestDifference = 0;
  for (const tap of taps) {
    const values = await readTap(path, header, tap, given.size, width);
    const sorted = new Float32Array(values.length);
    for (const [row, at] of order.entries()) sorted.set(values.subarray(at * width, (at + 1) * width), row * width);
    checkStates(path, tap, sorted, wanted, width);
    const twins = checkTwins(path, tap, sorted, wanted, width, options.tolerance ?? TOLERANCE);
    pairs = twins.pairs;
    largestDifference = Math.max(largestDifference, twins.largest);
    data.push(sorted);
  }
  const engine = header.metadata.get('engine') ?? 'unnamed';
  const done = { keyHash, shard: shard.index, computedTokens: 0, seconds: 0, skipped, dtype, engine };
  await writeShard(folder, done, { keys: wanted.map(({ key }) => key), taps, width, data });
  return { rows: wanted.length, engine, skipped, pairs, largestDifference };
}

const refusal = (path: string, expected: string, got: string): DataError =>
  new DataError(`${path}: expected ${expected}, got ${got}. See docs/shard-format.md`);

/** The engine says which tokens it read: sha256 of all ids of the shard end to end, int32 little-endian. */
function checkIds(path: string, header: SafetensorsHeader, sequences: readonly SequencePlan[]): void {
  const own = sha256(
    Buffer.concat(sequences.map(({ ids }) => new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength))),
  );
  const theirs = header.metadata.get('ids_sha256');
  if (theirs !== own) throw refusal(path, `metadata "ids_sha256" of ${own}`, theirs ?? 'none');
}

/** What every capture of the plan asks for, in the order of the plan. */
function wantedRows(sequences: readonly SequencePlan[]): WantedRow[] {
  return sequences.flatMap(({ episode, turn, ids, captures }) =>
    captures.map((capture) => ({
      key: { episode, turn: capture.turn, position: capture.position },
      sequence: turn,
      prefix: `${sha256(new Uint8Array(ids.buffer, ids.byteOffset, capture.end * 4))} ${stretchOf(capture)}`,
    })),
  );
}

/** A single token's state is that of its prefix; a pooled one also depends on where it begins and how it is pooled. */
function stretchOf({ start, end, pooling }: Capture): string {
  return end - start === 1 || pooling === 'none' || pooling === 'last' ? '' : `${start} ${pooling}`;
}

function readJson(path: string, header: SafetensorsHeader, name: string): unknown {
  const text = header.metadata.get(name);
  try {
    return text === undefined ? null : JSON.parse(text);
  } catch {
    throw refusal(path, `JSON in metadata ${JSON.stringify(name)}`, JSON.stringify(text?.slice(0, 60)));
  }
}

/** Key → row of the file. */
function readRows(path: string, header: SafetensorsHeader): Map<string, number> {
  const rows = readJson(path, header, 'rows');
  const given = new Map<string, number>();
  for (const [index, row] of (Array.isArray(rows) ? rows : [null]).entries()) {
    const [episode, turn, position] = (Array.isArray(row) ? row : []) as readonly unknown[];
    if (typeof episode !== 'string' || typeof turn !== 'number' || typeof position !== 'string')
      throw refusal(path, 'metadata "rows" with [episode, turn, position] of every row', JSON.stringify(row));
    const key = { episode, turn, position };
    if (given.has(keyText(key))) throw refusal(path, 'each row once', `${keyName(key)} again`);
    given.set(keyText(key), index);
  }
  return given;
}

/** Sequences the engine could not do: metadata `skipped` = [[episode, turn, reason], …]. */
function readSkipped(path: string, header: SafetensorsHeader): Exclusion[] {
  const list = readJson(path, header, 'skipped') ?? [];
  return (Array.isArray(list) ? list : [null]).map((item: unknown): Exclusion => {
    const [episode, turn, detail] = (Array.isArray(item) ? item : []) as readonly unknown[];
    if (typeof episode !== 'string' || typeof turn !== 'number' || typeof detail !== 'string')
      throw refusal(path, 'metadata "skipped" with [episode, turn, reason] of every sequence', JSON.stringify(item));
    return { stage: 'extract', episode, file: null, row: null, turn, reason: 'engine_skipped', detail };
  });
}

/** Whether the row was given; one that was neither given nor skipped is refused. */
function matchRow(
  path: string,
  { key, sequence }: WantedRow,
  given: ReadonlyMap<string, number>,
  skipped: readonly Exclusion[],
): boolean {
  if (given.has(keyText(key))) return true;
  if (skipped.some(({ episode, turn }) => episode === key.episode && turn === sequence)) return false;
  throw refusal(path, `a row for ${keyName(key)}`, 'none, and it is not listed as skipped');
}

async function readTap(
  path: string,
  header: SafetensorsHeader,
  tap: Tap,
  rows: number,
  width: number,
): Promise<Float32Array> {
  const info = header.tensors.get(tap);
  if (info === undefined) throw refusal(path, `the tap ${tap}`, [...header.tensors.keys()].join(', ') || 'no tensor');
  const fits = info.shape.length === 2 && info.shape[0] === rows && info.shape[1] === width;
  if (!fits || !['F32', 'F16', 'BF16'].includes(info.dtype))
    throw refusal(path, `${tap} as F32, F16 or BF16 [${rows}, ${width}]`, `${info.dtype} [${info.shape.join(', ')}]`);
  return toFloat32(await readTensorBytes(path, header, tap), info.dtype);
}

/** States are finite, never all zero, and (but for the embedding of the last token) depend on what was read. */
function checkStates(path: string, tap: Tap, data: Float32Array, rows: readonly WantedRow[], width: number): void {
  let same = true;
  for (const [index, { key }] of rows.entries()) {
    const row = data.subarray(index * width, (index + 1) * width);
    const bad = countNonFinite(row);
    if (bad > 0) throw refusal(path, `finite values of ${tap}`, `${bad} that are not at ${keyName(key)}`);
    if (row.every((value) => value === 0)) throw refusal(path, `states of ${tap}`, `zeros at ${keyName(key)}`);
    same &&= row.every((value, column) => value === data[column]);
  }
  if (same && tap !== 'embed' && new Set(rows.map(({ prefix }) => prefix)).size > 1)
    throw refusal(path, `states of ${tap} that depend on the text`, `the same in all ${rows.length} rows`);
}

/** Twins (worlds, trials, further turns) agree as long as they have read the same tokens. */
function checkTwins(
  path: string,
  tap: Tap,
  data: Float32Array,
  rows: readonly WantedRow[],
  width: number,
  tolerance: number,
): { readonly pairs: number; readonly largest: number } {
  let scale = 0;
  for (const value of data) scale = Math.max(scale, Math.abs(value));
  const first = new Map<string, number>();
  let pairs = 0;
  let largest = 0;
  for (const [index, { key, prefix }] of rows.entries()) {
    const twin = first.get(prefix);
    if (twin === undefined) {
      first.set(prefix, index);
      continue;
    }
    let difference = 0;
    for (let column = 0; column < width; column += 1)
      difference = Math.max(difference, Math.abs(data[index * width + column] - data[twin * width + column]));
    const share = difference / scale;
    if (share > tolerance) {
      throw refusal(
        path,
        `equal states of ${tap} after the same tokens (within ${tolerance} of the largest value)`,
        `${share.toPrecision(3)} between ${keyName(rows[twin].key)} and ${keyName(key)}`,
      );
    }
    pairs += 1;
    largest = Math.max(largest, share);
  }
  return { pairs, largest };
}
