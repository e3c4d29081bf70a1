import { mkdir, mkdtemp, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256 } from '../../src/lib/content-hash.ts';
import { decodeModel, encodeModel } from '../../src/model/graph/onnx-schema.ts';
import { inspectModel } from '../../src/model/inspect-model.ts';
import { openReplayer } from '../../src/model/open-replayer.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

let root: string;
let plain: string;
const SHARDS = ['model.onnx_data', 'model.onnx_data_1'];

/** The tiny model with its weights in two files beside the graph, as the hub has large ones. */
async function writeSharded(folder: string): Promise<void> {
  await writeTinyModel(folder, 5);
  const file = path.join(folder, 'model.onnx');
  const model = decodeModel(await readFile(file));
  const parts: Buffer[][] = SHARDS.map(() => []);
  const sizes = SHARDS.map(() => 0);
  for (const [i, tensor] of model.graph.initializer.entries()) {
    const raw = tensor.raw_data ?? new Uint8Array();
    if (raw.length < 100) continue;
    const shard = i % 2;
    parts[shard].push(Buffer.from(raw));
    tensor.external_data = [
      { key: 'location', value: SHARDS[shard] },
      { key: 'offset', value: String(sizes[shard]) },
      { key: 'length', value: String(raw.length) },
    ];
    tensor.data_location = 1;
    delete tensor.raw_data;
    sizes[shard] += raw.length;
  }
  await writeFile(file, encodeModel(model));
  for (const [shard, name] of SHARDS.entries()) await writeFile(path.join(folder, name), Buffer.concat(parts[shard]));
}

async function states(folder: string): Promise<Float32Array> {
  const replayer = await openReplayer({ folder, taps: ['resid_post.2'], threads: 1 });
  try {
    for await (const { data } of replayer.replay([{ ids: Int32Array.of(5, 6, 7), rows: Int32Array.of(0, 2) }]))
      return data;
    throw new Error('nothing was replayed');
  } finally {
    await replayer.close();
  }
}

beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'forewarn-external-'));
  plain = path.join(root, 'plain');
  await writeTinyModel(plain, 5);
});
afterAll(() => rm(root, { recursive: true }));

describe('weights outside the graph file', () => {
  it('are read from several shards, each of which is hashed', async () => {
    const folder = path.join(root, 'sharded');
    await writeSharded(folder);
    expect(await states(folder)).toEqual(await states(plain));
    const { info } = await inspectModel(folder);
    expect(Object.keys(info.hashes)).toEqual(['model.onnx', ...SHARDS]);
    expect(info.hashes[SHARDS[1]]).toBe(sha256(await readFile(path.join(folder, SHARDS[1]))));
  });

  it('are read through the links of a Hugging Face cache', async () => {
    const source = path.join(root, 'source');
    await writeSharded(source);
    const cache = path.join(root, 'models--org--name');
    const snapshot = path.join(cache, 'snapshots', 'abc123');
    await mkdir(path.join(snapshot, 'onnx'), { recursive: true });
    await mkdir(path.join(cache, 'blobs'));
    const files: readonly [string, string][] = [
      ['config.json', 'config.json'],
      ...['model.onnx', ...SHARDS].map((name): [string, string] => [name, `onnx/${name}`]),
    ];
    for (const [name, place] of files) {
      const bytes = await readFile(path.join(source, name));
      await writeFile(path.join(cache, 'blobs', sha256(bytes)), bytes);
      const up = place.split('/').length === 1 ? '../..' : '../../..';
      await symlink(`${up}/blobs/${sha256(bytes)}`, path.join(snapshot, place));
    }
    expect(await states(snapshot)).toEqual(await states(plain));
  });

  it('are refused when a shard is cut short by one byte, naming tensor, file and both sizes', async () => {
    const folder = path.join(root, 'short');
    await writeSharded(folder);
    const shard = path.join(folder, SHARDS[0]);
    const size = (await readFile(shard)).length;
    await truncate(shard, size - 1);
    await expect(inspectModel(folder)).rejects.toThrow(
      new RegExp(
        `model\\.onnx: tensor .*: expected ${size} bytes in model\\.onnx_data, got ${size - 1}: the file is cut short`,
      ),
    );
  });

  it('are refused when a link leaves the folder and is none of a cache', async () => {
    const folder = path.join(root, 'escaping');
    await writeSharded(folder);
    const outside = path.join(root, 'outside.bin');
    const shard = path.join(folder, SHARDS[0]);
    await writeFile(outside, await readFile(shard));
    await rm(shard);
    await symlink('../outside.bin', shard);
    await expect(inspectModel(folder)).rejects.toThrow(
      /inside the folder of the model, got model\.onnx_data -> \.\.\/outside\.bin/,
    );
  });
});
