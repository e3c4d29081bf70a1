import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { TryAgainError, UserError } from '../../src/errors.ts';
import { isUnder, parseHubAddress } from '../../src/hub/address.ts';
import type { HubClient } from '../../src/hub/client.ts';
import { localCopy } from '../../src/hub/local-copy.ts';
import { isModelFile } from '../../src/hub/model-files.ts';

const root = mkdtempSync(join(tmpdir(), 'forewarn-hub-'));
afterAll(() => rmSync(root, { recursive: true }));
const COMMIT = '0123456789abcdef0123456789abcdef01234567';
let cacheDir: string;
let count = 0;
beforeEach(() => {
  cacheDir = join(root, `cache-${(count += 1)}`);
});

/** Puts a file into the cache as the hub's tools do: bytes in blobs/, a link in snapshots/COMMIT/. */
function put(repository: string, path: string, text: string): void {
  const blob = join(cacheDir, repository, 'blobs', path.replaceAll('/', '-'));
  const link = join(cacheDir, repository, 'snapshots', COMMIT, path);
  mkdirSync(dirname(blob), { recursive: true });
  mkdirSync(dirname(link), { recursive: true });
  writeFileSync(blob, text);
  symlinkSync(relative(dirname(link), blob), link);
}

/** A hub with some files, which fails at the `failAt`-th download. */
function fakeHub(
  files: Readonly<Record<string, string>>,
  failAt = Infinity,
): HubClient & { readonly fetched: string[] } {
  const fetched: string[] = [];
  return {
    fetched,
    commitOf: () => Promise.resolve(COMMIT),
    async *listFiles() {
      for (const [path, text] of Object.entries(files)) yield await Promise.resolve({ path, size: text.length });
    },
    download: ({ type, name }, _commit, path) => {
      const repository = `${type}s--${name.replace('/', '--')}`;
      if (existsSync(join(cacheDir, repository, 'snapshots', COMMIT, path))) return Promise.resolve();
      if (fetched.length + 1 >= failAt) return Promise.reject(new Error('socket hang up\nat somewhere'));
      fetched.push(path);
      put(repository, path, files[path]);
      return Promise.resolve();
    },
  };
}

describe('parseHubAddress', () => {
  it('reads models and data sets, with a path or glob inside', () => {
    expect(parseHubAddress('hf://datasets/cais/cape@v1.0/data/*.parquet')).toEqual({
      type: 'dataset',
      name: 'cais/cape',
      revision: 'v1.0',
      path: 'data/*.parquet',
    });
    expect(parseHubAddress(`hf://Qwen/Qwen3-0.6B@${COMMIT}`)).toMatchObject({
      type: 'model',
      revision: COMMIT,
      path: '',
    });
  });

  it.each([
    ['hf://datasets/cais/cape', /expected a revision that stays what it is .*, got none/],
    ['hf://datasets/cais/cape@main', /got the branch main/],
    ['hf://cape@v1', /expected hf:\/\/OWNER\/NAME@REV/],
    ['hf://a/b@v1/../../c', /got one with \.\. in it/],
  ])('refuses %s', (text, message) => {
    expect(() => parseHubAddress(text)).toThrow(UserError);
    expect(() => parseHubAddress(text)).toThrow(message);
  });

  it('takes the files below a path, or below what stands before the first wildcard', () => {
    const address = parseHubAddress('hf://datasets/a/b@v1/data/part-*.parquet');
    expect(['data/part-0.parquet', 'data/other.parquet', 'README.md'].filter((file) => isUnder(address, file))).toEqual(
      ['data/part-0.parquet'],
    );
    expect(isUnder(parseHubAddress('hf://a/b@v1/onnx'), 'onnx/model.onnx')).toBe(true);
    expect(isUnder(parseHubAddress('hf://a/b@v1/onnx'), 'onnx2/model.onnx')).toBe(false);
  });
});

describe('localCopy', () => {
  it('is the folder of the cache, offline, for a commit and for a tag that was fetched before', async () => {
    put('datasets--a--b', 'data/episodes.jsonl', '{}');
    mkdirSync(join(cacheDir, 'datasets--a--b', 'refs'));
    writeFileSync(join(cacheDir, 'datasets--a--b', 'refs', 'v1'), `${COMMIT}\n`);
    const options = { cacheDir, client: null };
    const folder = join(cacheDir, 'datasets--a--b', 'snapshots', COMMIT);
    expect(await localCopy(`hf://datasets/a/b@${COMMIT}`, options)).toBe(folder);
    expect(await localCopy('hf://datasets/a/b@v1/data/*.jsonl', options)).toBe(join(folder, 'data/*.jsonl'));
    await expect(localCopy('hf://datasets/a/b@v2', options)).rejects.toThrow(TryAgainError);
    await expect(localCopy('hf://a/b@v1', options)).rejects.toThrow(/expected the revision on the hub or in the cache/);
  });

  it('goes on where an interrupted fetch stopped, and reports bytes', async () => {
    const files = { 'a.json': '12', 'b.json': '3456', 'c.txt': '7' };
    const wanted = (path: string): boolean => path.endsWith('.json');
    const broken = fakeHub(files, 2);
    const notes: string[] = [];
    const address = `hf://a/b@${COMMIT}`;
    // What is there is used, as after a fetch elsewhere, and the reader is told.
    await localCopy(address, { cacheDir, client: broken, wanted, onNote: (line) => notes.push(line) });
    expect(notes).toEqual([`${address}: the hub says: socket hang up; the files in the cache are used`]);
    const hub = fakeHub(files);
    const progress: [number, number][] = [];
    const folder = await localCopy(address, {
      cacheDir,
      client: hub,
      wanted,
      onProgress: (done, total) => progress.push([done, total]),
    });
    expect(hub.fetched).toEqual(['b.json']);
    expect(progress).toEqual([
      [2, 6],
      [6, 6],
    ]);
    expect(readFileSync(join(folder, 'b.json'), 'utf8')).toBe('3456');
    expect(existsSync(join(folder, 'c.txt'))).toBe(false);
  });

  it('knows offline what a tag named when it was fetched', async () => {
    const folder = await localCopy('hf://a/b@v1', { cacheDir, client: fakeHub({ 'a.json': '1' }) });
    expect(await localCopy('hf://a/b@v1', { cacheDir, client: null })).toBe(folder);
  });

  it('says what the hub said when the cache has nothing either', async () => {
    await expect(localCopy('hf://a/b@v1', { cacheDir, client: fakeHub({ x: '' }, 1) })).rejects.toThrow(
      /got neither \(the hub says: socket hang up\)/,
    );
  });
});

describe('isModelFile', () => {
  const files = [
    'config.json',
    'tokenizer.json',
    'chat_template.jinja',
    'model.safetensors',
    'onnx/model.onnx',
    'onnx/model.onnx_data',
    'onnx/model_q4f16.onnx',
    'onnx/model_q4f16.onnx_data',
    'onnx/model_q4f16.onnx_data_1',
    'onnx/decoder_model.onnx',
  ];
  it('takes one graph with its weights, and what every graph needs', () => {
    expect(files.filter((path) => isModelFile(path, 'q4f16'))).toEqual([
      'config.json',
      'tokenizer.json',
      'chat_template.jinja',
      'onnx/model_q4f16.onnx',
      'onnx/model_q4f16.onnx_data',
      'onnx/model_q4f16.onnx_data_1',
    ]);
    expect(files.filter((path) => isModelFile(path, null))).toEqual([
      'config.json',
      'tokenizer.json',
      'chat_template.jinja',
      'onnx/model.onnx',
      'onnx/model.onnx_data',
    ]);
  });
});
