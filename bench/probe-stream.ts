import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { toFloat16 } from '../src/lib/float-formats.ts';
import { halfToFloat, streamedBlocks } from '../src/math/streamed-blocks.ts';
import { writeShard } from '../src/store/activation-shards.ts';
import { openFeatures } from '../src/store/features.ts';
import type { RowBlocks } from '../src/math/row-blocks.ts';
import type { FeatureKey, FeatureMatrix } from '../src/types.ts';

const SHARD_ROWS = 2000;
const TAP = 'resid_post.0';

/**
 * The same fits from float16 shards that are read anew on every walk, and from those values in memory.
 * @param fit all fits of the row @param make [rows × columns] float32, asked for once
 * @returns seconds of both, and the megabytes that the streamed fit held beyond what was held before it (sampled)
 */
export async function measureStreamed(
  n: number,
  d: number,
  make: () => Float32Array,
  fit: (x: FeatureMatrix | RowBlocks) => Promise<unknown>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'forewarn-bench-stream-'));
  try {
    const keys = Array.from({ length: n }, (_, row): FeatureKey => ({
      episode: String(row),
      turn: 0,
      position: 'pre_action',
    }));
    const shards: number[] = [];
    const data = make();
    for (let from = 0; from < n; from += SHARD_ROWS) {
      const part = keys.slice(from, from + SHARD_ROWS);
      const rows = data.subarray(from * d, (from + part.length) * d);
      const done = { keyHash: 'bench', shard: shards.length, computedTokens: 0, seconds: 0, skipped: [] };
      await writeShard(folder, { ...done, dtype: 'float16' }, { keys: part, taps: [TAP], width: d, data: [rows] });
      shards.push(shards.length);
    }
    const features = await openFeatures(folder, shards, 0);
    const before = process.memoryUsage.rss();
    let most = before;
    const timer = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 20);
    const seconds = async (x: FeatureMatrix | RowBlocks): Promise<number> => {
      const from = performance.now();
      await fit(x);
      return (performance.now() - from) / 1000;
    };
    const streamedSeconds = await seconds(streamedBlocks(features.stream(TAP, keys)));
    clearInterval(timer);
    const extraMegabytes = Math.round((most - before) / 1e6);
    halfToFloat(toFloat16(data), data);
    const memorySeconds = await seconds({ data, rows: n, columns: d });
    return { streamedSeconds, memorySeconds, timesMemory: streamedSeconds / memorySeconds, extraMegabytes };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
