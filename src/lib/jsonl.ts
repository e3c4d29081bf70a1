import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { DataError } from '../errors.ts';

/**
 * Lines of a UTF-8 text file, plain or gzip. A reader that skips what it cannot parse loses good rows (DuckDB's
 * ignore_errors nulls the line after a bad one), so every line comes back: as text, or with the reason why it is none.
 */

/** One line of a JSON-lines log is tens of kilobytes; this keeps a gzip bomb from filling memory. */
export const MAX_LINE_BYTES = 32 << 20;

export interface TextLine {
  /** From 1. */
  readonly line: number;
  readonly text: string | null;
  /** Set where `text` is null. */
  readonly problem: string | null;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decode(bytes: Buffer, line: number, offset: number): TextLine {
  const end = bytes.at(-1) === 0x0d ? bytes.length - 1 : bytes.length;
  const start = line === 1 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  try {
    return { line, text: utf8.decode(bytes.subarray(start, end)), problem: null };
  } catch {
    let good = start;
    // Half the range is valid or not: the first bad byte is found by bisection on the longest valid prefix.
    const valid = (to: number): boolean => {
      try {
        new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(start, to), { stream: true });
        return true;
      } catch {
        return false;
      }
    };
    let bad = end;
    while (bad - good > 1) {
      const middle = (good + bad) >> 1;
      if (valid(middle)) good = middle;
      else bad = middle;
    }
    const byte = bytes[good] ?? 0;
    return {
      line,
      text: null,
      problem: `expected UTF-8, got byte 0x${byte.toString(16).toUpperCase().padStart(2, '0')} at offset ${offset + good}`,
    };
  }
}

/** @throws DataError (65) for a damaged gzip stream or a line over MAX_LINE_BYTES */
export async function* readLines(path: string): AsyncGenerator<TextLine> {
  const file = createReadStream(path, { highWaterMark: 1 << 18 });
  const gzip = path.endsWith('.gz');
  const stream = gzip ? file.pipe(createGunzip()) : file;
  if (gzip) file.on('error', (error) => stream.destroy(error));
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let line = 1;
  let offset = 0;
  const take = (last: Buffer): Buffer => {
    const whole = pending.length === 0 ? last : Buffer.concat([...pending, last]);
    pending = [];
    pendingBytes = 0;
    return whole;
  };
  try {
    for await (const chunk of stream) {
      let rest = chunk as Buffer;
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        const bytes = take(rest.subarray(0, end));
        yield decode(bytes, line, offset);
        offset += bytes.length + 1;
        line += 1;
        rest = rest.subarray(end + 1);
      }
      pending.push(rest);
      pendingBytes += rest.length;
      if (pendingBytes > MAX_LINE_BYTES) {
        throw new DataError(
          `${path}:${line}: expected lines of at most ${MAX_LINE_BYTES >> 20} MiB, got a longer (larger) one. Is this a JSON lines file?`,
        );
      }
    }
  } catch (error) {
    if (error instanceof DataError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (code.startsWith('Z_'))
      throw new DataError(
        `${path}: expected a complete gzip stream, got ${code} (truncated or damaged: unexpected end). Fetch the file again`,
        { cause: error },
      );
    throw error;
  } finally {
    file.destroy();
  }
  if (pendingBytes > 0) yield decode(take(Buffer.alloc(0)), line, offset);
}
