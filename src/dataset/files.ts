import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { DataError } from '../errors.ts';
import { matchGlob } from './duckdb.ts';

export type TableFormat = 'parquet' | 'jsonl';
export interface TableFile {
  readonly path: string;
  readonly format: TableFormat;
  readonly bytes: number;
}

const TABLE = /\.(parquet|jsonl|ndjson)(\.gz)?$/i;

/** The first bytes say what a file is, whatever it is called. */
async function sniff(file: FileHandle, bytes: number): Promise<{ readonly kind: string; readonly detail: string }> {
  const head = Buffer.alloc(Math.min(512, bytes));
  await file.read(head, 0, head.length, 0);
  const text = head.toString('latin1');
  if (bytes === 0) return { kind: 'empty', detail: '0 bytes (an empty file)' };
  if (text.startsWith('PAR1')) return { kind: 'parquet', detail: '' };
  if (text.startsWith('PARE')) return { kind: 'encrypted', detail: 'PARE (parquet with an encrypted footer)' };
  if (head[0] === 0x1f && head[1] === 0x8b) return { kind: 'gzip', detail: 'gzip data' };
  if (text.startsWith('version https://git-lfs')) {
    return {
      kind: 'lfs',
      detail: `a Git LFS pointer (size ${/size (\d+)/.exec(text)?.[1] ?? 'unknown'}): run git lfs pull`,
    };
  }
  if (/^\s*<(!doctype|html|head|body)/i.test(text))
    return { kind: 'html', detail: 'an HTML page (a login or download error?)' };
  if (
    (head[0] === 0xff && head[1] === 0xfe) ||
    (head[0] === 0xfe && head[1] === 0xff) ||
    (head[1] === 0 && head[3] === 0)
  ) {
    return { kind: 'utf16', detail: 'UTF-16 text; save it as UTF-8' };
  }
  const first = text.replace(/^\u00ef\u00bb\u00bf/, '').trimStart()[0];
  if (first === '[') return { kind: 'array', detail: 'one JSON array over many lines; write one object a line' };
  if (first === '{') return { kind: 'jsonl', detail: 'JSON lines text' };
  return { kind: 'text', detail: 'something else' };
}

async function checkParquet(path: string, file: FileHandle, bytes: number): Promise<void> {
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

/** @throws DataError (65) saying what the file really is */
async function checkFile(path: string): Promise<TableFile> {
  let bytes: number;
  try {
    const info = await stat(path);
    if (!info.isFile())
      throw new DataError(`${path}: expected a file or a folder of parquet or JSON lines files, got something else`);
    bytes = info.size;
  } catch (error) {
    if (error instanceof DataError) throw error;
    throw new DataError(
      `${path}: expected an existing file, got ${(error as NodeJS.ErrnoException).code ?? 'an error'} (not found). Check the path`,
      { cause: error },
    );
  }
  const format: TableFormat = /\.parquet$/i.test(path) ? 'parquet' : 'jsonl';
  const file = await open(path, 'r');
  try {
    const found = await sniff(file, bytes);
    if (format === 'parquet') {
      if (found.kind !== 'parquet')
        throw new DataError(
          `${path}: expected a parquet file, got ${found.detail}.${found.kind === 'jsonl' ? ' Rename it to .jsonl' : ''}`,
        );
      await checkParquet(path, file, bytes);
    } else if (found.kind === 'parquet')
      throw new DataError(`${path}: expected JSON lines, got a parquet file. Rename it to .parquet`);
    else if (['empty', 'lfs', 'html', 'utf16', 'array'].includes(found.kind))
      throw new DataError(`${path}: expected JSON lines (at least one row), got ${found.detail}`);
    return { path, format, bytes };
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
  if (/[*?[\]{}]/.test(input)) {
    const found = (await matchGlob(input)).filter((path) => TABLE.test(path));
    if (found.length === 0) throw new DataError(`${input}: expected files that match, got none (not found)`);
    return found.sort();
  }
  const info = await stat(input).catch(() => null);
  if (info?.isDirectory() !== true) return [input];
  const found = (await readdir(input, { recursive: true })).filter(
    (name) => TABLE.test(name) && !basename(name).startsWith('.'),
  );
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
