import type { FileHandle } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';

/** What a file is, by its first bytes, whatever it is called. */

export type FileKind = 'parquet' | 'jsonl' | 'gzip' | 'refused';
export interface Sniffed {
  readonly kind: FileKind;
  /** For messages: "an HTML page (a login or download error?)". */
  readonly what: string;
}

const HEAD_BYTES = 1024;

/** Formats that people have by mistake where a table should be, by their first bytes. */
const MAGIC: readonly (readonly [string, string])[] = [
  ['PARE', 'PARE (parquet with an encrypted footer), which cannot be read'],
  ['ARROW1', 'an Arrow (Feather) file; write it as parquet'],
  ['FEA1', 'a Feather file; write it as parquet'],
  ['Obj\u0001', 'an Avro file; write it as parquet'],
  ['ORC', 'an ORC file; write it as parquet'],
  ['SQLite format 3', 'an SQLite database; write the table as parquet'],
  ['DUCK', 'a DuckDB database; write the table as parquet'],
  ['PK\u0003\u0004', 'a zip archive; unpack it'],
  ['\u0028\u00b5\u002f\u00fd', 'zstd data; unpack it'],
  ['BZh', 'bzip2 data; unpack it'],
  ['\u00fd7zXZ', 'xz data; unpack it'],
  ['\u0080\u0004', 'a Python pickle, which can run code and is never read; write it as parquet'],
  ['\u0093NUMPY', 'a NumPy array'],
  ['%PDF', 'a PDF'],
];

function sniffText(head: Buffer): Sniffed {
  const refused = (what: string): Sniffed => ({ kind: 'refused', what });
  const text = head.toString('latin1');
  if (text.startsWith('version https://git-lfs')) {
    const size = /size (\d+)/.exec(text)?.[1] ?? 'unknown';
    return refused(`a Git LFS pointer (size ${size}): run git lfs pull`);
  }
  const plain = text.replace(/^\u00ef\u00bb\u00bf/, '').trimStart();
  if (/^<(!doctype|html|head|body|\?xml|!--)/i.test(plain)) return refused('an HTML page (a login or download error?)');
  const utf16 = (head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff);
  if (
    utf16 ||
    (head.length > 3 && head[0] !== 0 && head[1] === 0 && head[3] === 0) ||
    (head[0] === 0 && head[1] === 0x7b)
  )
    return refused('UTF-16 text; save it as UTF-8');
  if (plain[0] === '[') return refused('one JSON array over many lines; write one object a line');
  return { kind: 'jsonl', what: plain[0] === '{' ? 'JSON lines text' : 'text that is no JSON object' };
}

function sniffBytes(head: Buffer): Sniffed {
  const text = head.toString('latin1');
  if (head.length === 0) return { kind: 'refused', what: '0 bytes (an empty file)' };
  if (text.startsWith('PAR1')) return { kind: 'parquet', what: 'a parquet file' };
  if (head[0] === 0x1f && head[1] === 0x8b) return { kind: 'gzip', what: 'gzip data' };
  const known = MAGIC.find(([magic]) => text.startsWith(magic));
  return known ? { kind: 'refused', what: known[1] } : sniffText(head);
}

/** The first bytes of what a gzip stream holds; fewer where it is damaged, which its reader will say. */
function unpackHead(packed: Buffer): Promise<Buffer> {
  return new Promise((resolve) => {
    const stream = createGunzip();
    let head = Buffer.alloc(0);
    const done = (): void => {
      stream.destroy();
      resolve(head.subarray(0, HEAD_BYTES));
    };
    stream.on('data', (chunk: Buffer) => {
      head = Buffer.concat([head, chunk]);
      if (head.length >= HEAD_BYTES) done();
    });
    stream.on('error', done);
    stream.on('end', done);
    stream.end(packed);
  });
}

async function readHead(file: FileHandle, bytes: number): Promise<Buffer> {
  const head = Buffer.alloc(Math.min(bytes, 4 * HEAD_BYTES));
  const { bytesRead } = await file.read(head, 0, head.length, 0);
  return head.subarray(0, bytesRead);
}

export interface SniffedFile extends Sniffed {
  /** What a gzip file holds; null for other files. */
  readonly inside: Sniffed | null;
}

export async function sniffFile(file: FileHandle, bytes: number): Promise<SniffedFile> {
  const head = await readHead(file, bytes);
  const outside = sniffBytes(head.subarray(0, HEAD_BYTES));
  return { ...outside, inside: outside.kind === 'gzip' ? sniffBytes(await unpackHead(head)) : null };
}
