import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError } from '../errors.ts';
import { matchGlob } from './duckdb.ts';
import { sniffFile } from './sniff.ts';

export type TableFormat = 'parquet' | 'jsonl';
export interface TableFile {
  readonly path: string;
  readonly format: TableFormat;
  readonly bytes: number;
}

const TABLE = /\.(parquet|jsonl|ndjson)(\.gz)?$/i;

async function checkFooter(path: string, file: FileHandle, bytes: number): Promise<void> {
  const fail = (expected: string, got: string): never => {
    throw new DataError(`${path}: expected ${expected}, got ${got}. Fetch the file again`);
  };
  if (bytes < 12) fail('a parquet file', `${bytes} bytes`);
  const tail = Buffer.alloc(8);
  await file.read(tail, 0, 8, bytes - 8);
  const magic = tail.subarray(4).toString('latin1');
  if (magic === 'PARE') fail('the magic PAR1 at the end', 'PARE (an encrypted footer)');
  if (magic !== 'PAR1')
    fail('a footer with the magic PAR1 at the end', 'other bytes (the file is truncated or incomplete)');
  const footer = tail.readUInt32LE(0);
  if (footer > bytes - 12) fail('a footer length inside the file', String(footer));
}

/** What the system says about a path that cannot be read. */
function unreadable(path: string, error: unknown): DataError {
  const code = (error as NodeJS.ErrnoException).code ?? 'an error';
  const got = code === 'ENOENT' ? 'none (not found)' : code === 'EACCES' ? 'no permission to read it (EACCES)' : code;
  return new DataError(`${path}: expected an existing file, got ${got}. Check the path`, { cause: error });
}

async function checkOpened(path: string, file: FileHandle, bytes: number): Promise<TableFormat> {
  const packed = /\.gz$/i.test(path);
  const parquet = /\.parquet(\.gz)?$/i.test(path);
  const fail = (got: string, hint = ''): never => {
    throw new DataError(
      `${path}: expected ${parquet ? 'a parquet file' : 'JSON lines (at least one row)'}, got ${got}.${hint === '' ? '' : ` ${hint}`}`,
    );
  };
  const found = await sniffFile(file, bytes);
  if (found.kind === 'refused') fail(found.what);
  if (parquet) {
    if (packed) fail(found.inside?.kind === 'parquet' ? 'a parquet file packed with gzip' : found.what, 'Unpack it');
    if (found.kind !== 'parquet')
      fail(found.what, found.kind === 'jsonl' ? 'Rename it to .jsonl' : 'Unpack it, or name it for what it is');
    await checkFooter(path, file, bytes);
    return 'parquet';
  }
  if (found.kind === 'parquet') fail('a parquet file', 'Rename it to .parquet');
  if (packed && found.kind !== 'gzip') fail(`${found.what} that is not packed`, 'Rename it without .gz');
  if (!packed && found.kind === 'gzip') fail('gzip data', 'Rename it to .jsonl.gz');
  if (found.inside !== null && found.inside.kind !== 'jsonl') fail(`${found.inside.what} inside gzip`);
  return 'jsonl';
}

/** @throws DataError (65) saying what the file really is */
async function checkFile(path: string): Promise<TableFile> {
  let bytes: number;
  let file: FileHandle;
  try {
    // Before it is opened: opening a pipe waits for a writer.
    const info = await stat(path);
    if (!info.isFile())
      throw new DataError(`${path}: expected a file or a folder of parquet or JSON lines files, got something else`);
    bytes = info.size;
    file = await open(path, 'r');
  } catch (error) {
    throw error instanceof DataError ? error : unreadable(path, error);
  }
  try {
    return { path, format: await checkOpened(path, file, bytes), bytes };
  } finally {
    await file.close();
  }
}

/** `train-00000-of-00007.parquet`: a shard that is not there is an error, not fewer rows. */
function checkShards(paths: readonly string[]): void {
  const seen = new Map<string, { readonly of: number; readonly have: Set<number> }>();
  for (const path of paths) {
    const match = /^(.*)-(\d{5})-of-(\d{5})(\.[^/]*)$/.exec(path);
    if (!match) continue;
    const key = `${match[1]}-of-${match[3]}${match[4]}`;
    const entry = seen.get(key) ?? { of: Number(match[3]), have: new Set<number>() };
    entry.have.add(Number(match[2]));
    seen.set(key, entry);
  }
  for (const [key, { of, have }] of seen) {
    const missing = Array.from({ length: of }, (_, index) => index).filter((index) => !have.has(index));
    if (missing.length > 0) {
      throw new DataError(
        `${key}: expected ${of} shards, got ${have.size}: shard ${missing
          .slice(0, 5)
          .map((index) => String(index).padStart(5, '0'))
          .join(', ')} is missing. Fetch it`,
      );
    }
  }
}

async function expand(input: string): Promise<string[]> {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(input)?.[1];
  if (scheme !== undefined)
    throw new DataError(
      `${scheme}://…: expected a local path, got an address. Fetch the files first and name the folder they are in`,
    );
  const info = await stat(input).catch(() => null);
  if (info === null && /[*?[\]{}]/.test(input)) {
    const found = (await matchGlob(input)).filter((path) => TABLE.test(path));
    if (found.length === 0) throw new DataError(`${input}: expected files that match, got none (not found)`);
    return found.sort();
  }
  if (info?.isDirectory() !== true) return [input];
  const names = await readdir(input, { recursive: true }).catch((error: unknown) => {
    throw unreadable(input, error);
  });
  // Hidden folders hold caches and locks of the tools that fetched the data.
  const found = names.filter((name) => TABLE.test(name) && !name.split(/[\\/]/).some((part) => part.startsWith('.')));
  if (found.length === 0)
    throw new DataError(`${input}: expected a folder that holds parquet or JSON lines files, got one without`);
  return found.sort().map((name) => join(input, name));
}

/** Files, folders (Hub layout) and globs → checked table files in a fixed order. @throws DataError (65) */
export async function findTables(inputs: readonly string[]): Promise<TableFile[]> {
  const paths: string[] = [];
  for (const input of inputs) for (const path of await expand(input)) if (!paths.includes(path)) paths.push(path);
  checkShards(paths);
  const files: TableFile[] = [];
  for (const path of paths) files.push(await checkFile(path));
  return files;
}
