import { beforeEach, describe, expect, it } from 'vitest';
import { toFloat16, toFloat32 } from '../../src/lib/float-formats.ts';
import { normal, seededRng } from '../../src/lib/rng.ts';
import { referenceGemm as gemm } from '../../src/math/gemm.ts';
import { streamedBlocks } from '../../src/math/streamed-blocks.ts';
import { fitLinearBatch } from '../../src/probe/fit-linear.ts';
import { type Dtype, writeShard } from '../../src/store/activation-shards.ts';
import { openFeatures } from '../../src/store/features.ts';
import type { FeatureKey } from '../../src/types.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';
import { defined } from '../math/golden.ts';

const [ROWS, COLUMNS] = [400, 12];
const TAP = 'resid_post.3';
const keys = Array.from({ length: ROWS }, (_, row): FeatureKey => ({
  episode: `e${row}`,
  turn: row % 3,
  position: 'pre_action',
}));
const rng = seededRng('streamed fit', 1);
/** Values that float16 holds exactly, so that both ways read the same matrix. */
const data = toFloat32(
  Uint8Array.from(
    new Uint8Array(toFloat16(Float32Array.from({ length: ROWS * COLUMNS }, () => 2 * normal(rng) + 1)).buffer),
  ),
  'F16',
);

let folder: string;
beforeEach(() => {
  folder = temporaryFolder('streamed-fit');
});

/** Three shards of unlike size, keys of each in falling order. */
async function store(dtype: Dtype): Promise<void> {
  const bounds = [0, 150, 151, ROWS];
  for (let shard = 0; shard < 3; shard += 1) {
    const order = Array.from({ length: bounds[shard + 1] - bounds[shard] }, (_, i) => bounds[shard + 1] - 1 - i);
    const part = new Float32Array(order.length * COLUMNS);
    order.forEach((row, at) => part.set(data.subarray(row * COLUMNS, (row + 1) * COLUMNS), at * COLUMNS));
    await writeShard(
      folder,
      { keyHash: 'k', shard, computedTokens: 0, seconds: 0, skipped: [], dtype },
      { keys: order.map((row) => keys[row]), taps: [TAP], width: COLUMNS, data: [part] },
    );
  }
}

describe('fits from shards that are read anew on every walk', () => {
  it.each(['float16', 'float32', 'bfloat16'] as const)('are those of the matrix in memory: %s', async (dtype) => {
    await store(dtype);
    const features = await openFeatures(folder, [0, 1, 2], 0);
    const x = await features.read(TAP, keys);
    if (dtype !== 'bfloat16') expect(x.data).toEqual(data);
    const source = features.stream(TAP, keys);
    expect(await source.read(0, 1)).toBeInstanceOf(dtype === 'float16' ? Uint16Array : Float32Array);
    const labels = Uint8Array.from({ length: ROWS }, (_, row) => (data[row * COLUMNS] + normal(rng) > 1 ? 1 : 0));
    const rows = Int32Array.from(keys.keys()).filter((row) => row % 5 !== 0);
    const problems = [0.01, 1, 100].map((C) => ({
      rows,
      labels: labels.filter((_, r) => r % 5 !== 0),
      weights: null,
      C,
    }));
    const inMemory = (await fitLinearBatch({ x, problems, gemm, tolerance: 1e-12 })).map(defined);
    const streamed = (await fitLinearBatch({ x: streamedBlocks(source), problems, gemm, tolerance: 1e-12 })).map(
      defined,
    );
    streamed.forEach((fit, at) => {
      expect(fit.convergence?.converged).toBe(true);
      fit.weights.forEach((weight, k) => expect(weight).toBeCloseTo(inMemory[at].weights[k], 6));
      fit.scale.forEach((scale, k) => expect(scale).toBeCloseTo(inMemory[at].scale[k], 9));
    });
  });

  it('name the first state or tap that was not captured before anything is read', async () => {
    await store('float16');
    const features = await openFeatures(folder, [0, 1, 2], 0);
    expect(() => features.stream(TAP, [...keys, { episode: 'none', turn: 0, position: 'pre_action' }])).toThrow(
      'expected a captured state at pre_action of turn 0, episode none, got none',
    );
    expect(() => features.stream('embed', keys)).toThrow(`expected the tap embed, got ${TAP}`);
  });
});
