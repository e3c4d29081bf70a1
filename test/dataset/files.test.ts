import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { findTables } from '../../src/dataset/files.ts';
import { DataError } from '../../src/errors.ts';
import { episodeRows, newFolder, writeJsonl, writeParquet } from './fixtures.ts';

const write = (name: string, bytes: string | Buffer): string => {
  const path = join(newFolder(), name);
  writeFileSync(path, bytes);
  return path;
};
const row = '{"episode_id":"a"}\n';

describe('findTables', () => {
  it('says what a file really is, whatever it is called', async () => {
    const cases: readonly (readonly [string, string | Buffer, RegExp])[] = [
      ['a.parquet', '', /0 bytes \(an empty file\)/],
      ['a.parquet', row, /expected a parquet file, got JSON lines text\. Rename it to \.jsonl/],
      ['a.parquet', '<!DOCTYPE html><html>', /an HTML page/],
      [
        'a.parquet',
        'version https://git-lfs.github.com/spec/v1\noid x\nsize 123\n',
        /Git LFS pointer \(size 123\): run git lfs pull/,
      ],
      ['a.parquet', Buffer.from('PAR1 and then nothing'), /footer with the magic PAR1 at the end/],
      ['a.parquet', 'PK\u0003\u0004zip', /a zip archive/],
      ['a.parquet', 'ARROW1\0\0', /an Arrow \(Feather\) file/],
      ['a.jsonl', '[{"a":1}]', /one JSON array over many lines; write one object a line/],
      ['a.jsonl', gzipSync(row), /expected JSON lines .* got gzip data\. Rename it to \.jsonl\.gz/],
      ['a.jsonl', Buffer.from('\ufeff{"a":1}', 'utf16le'), /UTF-16 text/],
      ['a.jsonl', Buffer.from([0x80, 0x04, 0x95, 0]), /a Python pickle/],
      ['a.jsonl.gz', row, /JSON lines text that is not packed\. Rename it without \.gz/],
      ['a.jsonl.gz', gzipSync('<html>no</html>'), /an HTML page .* inside gzip/],
    ];
    for (const [name, bytes, message] of cases) {
      const error: unknown = await findTables([write(name, bytes)]).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(DataError);
      expect((error as Error).message).toMatch(message);
    }
  });

  it('takes a byte order mark, and gzip of JSON lines', async () => {
    for (const [name, bytes] of [
      ['a.jsonl', `\ufeff${row}`],
      ['a.jsonl.gz', gzipSync(row)],
    ] as const)
      expect(await findTables([write(name, bytes)])).toMatchObject([{ format: 'jsonl' }]);
  });

  it('reads a folder in the order of names, without hidden folders and other files', async () => {
    const folder = newFolder();
    for (const name of ['data', '.cache', 'data/.locks']) mkdirSync(join(folder, name));
    for (const name of ['data/b.jsonl', 'data/a.jsonl', '.cache/c.jsonl', 'data/.locks/d.jsonl', 'README.md'])
      writeFileSync(join(folder, name), row);
    const found = await findTables([folder]);
    expect(found.map((file) => file.path)).toEqual([join(folder, 'data/a.jsonl'), join(folder, 'data/b.jsonl')]);
    expect(await findTables([join(folder, 'data', '*.jsonl'), folder])).toEqual(found);
  });

  it('notices a missing shard', async () => {
    const folder = newFolder();
    await writeParquet(episodeRows(2), { folder, name: 'train-00000-of-00003.parquet' });
    await writeParquet(episodeRows(2), { folder, name: 'train-00002-of-00003.parquet' });
    await expect(findTables([folder])).rejects.toThrow(/expected 3 shards, got 2: shard 00001 is missing/);
  });

  it('follows links, as in the cache of the Hub', async () => {
    const folder = newFolder();
    symlinkSync(writeJsonl(episodeRows(1)), join(folder, 'train.jsonl'));
    expect(await findTables([folder])).toHaveLength(1);
  });

  it('refuses addresses, pipes and what is not there, without opening them', async () => {
    await expect(findTables(['https://user:secret@host/x.parquet'])).rejects.toThrow(
      /https:\/\/….*expected a local path/,
    );
    await expect(findTables(['https://user:secret@host/x.parquet'])).rejects.not.toThrow(/secret/);
    await expect(findTables(['/dev/null'])).rejects.toThrow(/expected a file or a folder/);
    await expect(findTables([join(newFolder(), 'none.parquet')])).rejects.toThrow(/not found/);
    await expect(findTables([newFolder()])).rejects.toThrow(/got one without/);
    await expect(findTables([join(newFolder(), '*.jsonl')])).rejects.toThrow(/expected files that match, got none/);
  });

  it('takes a name with pattern characters as it stands where a file has it', async () => {
    const path = await writeParquet(episodeRows(2), { name: 'a[1].parquet' });
    expect(await findTables([path])).toMatchObject([{ path, format: 'parquet' }]);
  });
});
