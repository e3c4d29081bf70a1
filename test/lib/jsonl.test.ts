import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_LINE_BYTES, readLines, type TextLine } from '../../src/lib/jsonl.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

const folder = temporaryFolder('lines');
async function linesOf(content: string | Uint8Array, name = 'x.jsonl'): Promise<TextLine[]> {
  const path = join(folder, name);
  writeFileSync(path, content);
  const out: TextLine[] = [];
  for await (const line of readLines(path)) out.push(line);
  return out;
}
const textsOf = async (content: string | Uint8Array, name?: string): Promise<(string | null)[]> =>
  (await linesOf(content, name)).map((line) => line.text);

/** Without what ends a line or marks the order of bytes. */
const clean = (text: string): string => text.replaceAll(/[\r\n\ufeff]/g, ' ');

describe('lines of a file', () => {
  it('come back as they were written, plain and gzip, with LF and CRLF', async () => {
    const content = fc.array(fc.string({ unit: 'grapheme', maxLength: 30 }).map(clean), {
      maxLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(content, fc.constantFrom('\n', '\r\n'), async (list, end) => {
        const file = list.map((line) => line + end).join('');
        expect(await textsOf(file)).toEqual(list);
        expect(await textsOf(gzipSync(file), 'x.jsonl.gz')).toEqual(list);
      }),
      { numRuns: 50 },
    );
  });

  it('are numbered from 1, and the last may have no end', async () => {
    expect(await linesOf('a\n\nb')).toEqual([
      { line: 1, text: 'a', problem: null },
      { line: 2, text: '', problem: null },
      { line: 3, text: 'b', problem: null },
    ]);
    expect(await linesOf('')).toEqual([]);
  });

  it('lose a byte order mark at the start of the file and nowhere else', async () => {
    expect(await textsOf('\ufeffa\n\ufeffb\n')).toEqual(['a', '\ufeffb']);
  });

  it('may be longer than what is read at once, with characters across the seam', async () => {
    const long = `x${'é'.repeat(400_000)}`;
    expect(await textsOf(`${long}\nshort\n${long}`)).toEqual([long, 'short', long]);
  });

  it('keep other separators of lines, NUL and lone carriage returns as text', async () => {
    expect(await textsOf('a\u2028b\u0085\0c\rd\n')).toEqual(['a\u2028b\u0085\0c\rd']);
  });
});

describe('a line that is no text', () => {
  it('comes back with the offset of the first bad byte in the file, and the others are read', async () => {
    const bytes = Buffer.concat([
      Buffer.from('good é\n'),
      Buffer.from('bad é'),
      Buffer.from([0x92]),
      Buffer.from('\nnext\n'),
    ]);
    expect(await linesOf(bytes)).toEqual([
      { line: 1, text: 'good é', problem: null },
      { line: 2, text: null, problem: 'expected UTF-8, got byte 0x92 at offset 14' },
      { line: 3, text: 'next', problem: null },
    ]);
  });

  it('is found wherever the byte stands', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), async (before, after) => {
        const head = Buffer.from(`first\n${clean(before)}`);
        const lines = await linesOf(Buffer.concat([head, Buffer.from([0xff]), Buffer.from(clean(after))]));
        expect(lines[1]).toMatchObject({
          text: null,
          problem: `expected UTF-8, got byte 0xFF at offset ${head.length}`,
        });
      }),
      { numRuns: 50 },
    );
  });

  it('is told by a character cut off at the end', async () => {
    const [line] = await linesOf(Buffer.from('aé').subarray(0, 2));
    expect(line.problem).toMatch(/byte 0xC3 at offset 1/);
  });
});

describe('refusals', () => {
  it('a line above the limit, before it fills memory', async () => {
    const bomb = gzipSync(Buffer.alloc(MAX_LINE_BYTES + (1 << 20), 0x61));
    await expect(linesOf(bomb, 'bomb.gz')).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringMatching(/bomb\.gz:1: expected lines of at most 32 MiB/) as string,
    });
  });

  it('a gzip stream that is cut or is none', async () => {
    const whole = gzipSync('{"a":1}\n'.repeat(1000));
    await expect(linesOf(whole.subarray(0, whole.length - 9), 'cut.gz')).rejects.toMatchObject({ exitCode: 65 });
    await expect(linesOf('plain text\n', 'plain.gz')).rejects.toMatchObject({ exitCode: 65 });
  });

  it('a reader that stops early closes the file', async () => {
    const path = join(folder, 'early.jsonl');
    writeFileSync(path, 'a\nb\nc\n');
    for await (const line of readLines(path)) if (line.line === 1) break;
    expect(await textsOf('again\n', 'early.jsonl')).toEqual(['again']);
  });
});
