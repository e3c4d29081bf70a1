import { afterAll, describe, expect, it } from 'vitest';
import { createGenerationCore, type Steering } from '../../../src/model/generation-core.ts';
import { readModel } from '../../../src/model/graph/read-model.ts';
import { steerGraph } from '../../../src/model/graph/steer-graph.ts';
import { cpuObstacle, isPassDependent } from '../../../src/model/graph/supported-ops.ts';
import { tapGraph } from '../../../src/model/graph/tap-graph.ts';
import { openSession } from '../../../src/model/session.ts';
import type { Tap } from '../../../src/types.ts';
import { listFixtures, type Fixture } from './models.ts';

/** Of the largest number of the tap; half precision keeps ten bits. */
const TOLERANCE = 5e-3;
const fixtures = listFixtures().filter((f) => f.golden.expect !== 'refuse' && f.tensors.size > 0);
let steered = 0;
let refused = 0;
afterAll(() => console.info(`steering: ${steered} graphs steered, ${refused} refuse it`));

/** Rows of `taps` at the last prompt token and two generated ones, with or without a change at `at`. */
async function statesOf(f: Fixture, taps: readonly Tap[], at: Tap, steer: Steering | null): Promise<Float32Array> {
  const read = await readModel(f.folder);
  const passDependent = isPassDependent(read.model.graph);
  steerGraph(read.model, read, at);
  const tapped = tapGraph(read.model, read.index, read, { taps, logits: true });
  const session = await openSession(read.file, tapped.model, read.external, { threads: 1, executionProvider: 'cpu' });
  try {
    const core = createGenerationCore(session, {
      io: read.io,
      states: tapped.states,
      inputs: tapped.inputs,
      taps,
      width: read.width,
      chunk: 512,
      sharing: true,
      passDependent,
      logits: read.io.logits,
      keep: 1,
    });
    const { data } = await core.generate(
      {
        ids: (f.tensors.get('seq0.input_ids') as Int32Array).subarray(0, 6),
        maxTokens: 2,
        temperature: 0,
        topP: 1,
        uniforms: new Float64Array(2),
        stopIds: [],
        capture: true,
        slot: '',
        steer,
        // The same tokens whatever is steered.
        forced: Int32Array.of(5, 6),
        logprobs: false,
      },
      null,
    );
    return data;
  } finally {
    await session.close();
  }
}

describe('steering works on the graphs of every exporter', () => {
  it.each(fixtures.map((f) => [f.name, f] as const))('%s', async (_, f) => {
    const read = await readModel(f.folder);
    const names = [...read.taps.keys()];
    const at = names.filter((name) => name.startsWith('resid_post.')).at(0) ?? '';
    // Without ids there is nothing to generate with.
    if (at === '' || read.io.ids === null || cpuObstacle(read.model.graph) !== null) return;
    const last = names.at(-1) ?? at;
    const { width } = read;
    const zeros = new Float32Array(width);
    const add = Float32Array.from(zeros, (__, i) => 2 * Math.sin(i + 1));
    const change = { add, read: zeros, write: zeros };
    const before = await statesOf(f, [at, last], at, null);
    if (read.io.states.length === 0 || isPassDependent(read.model.graph)) {
      await expect(statesOf(f, [at, last], at, change)).rejects.toThrow(/steering would change the prompt/);
      refused += 1;
      return;
    }
    const now = await statesOf(f, [at, last], at, change);
    const scale = Math.max(...before.subarray(0, 3 * width).map(Math.abs), 2);
    for (let i = 0; i < width; i += 1)
      expect(Math.abs((now[i] ?? NaN) - (before[i] ?? NaN) - (add[i] ?? NaN)) / scale).toBeLessThan(TOLERANCE);
    expect(now.subarray(3 * width).some((value, i) => value !== before[3 * width + i])).toBe(true);
    const norm = Math.hypot(...add);
    const direction = add.map((value) => value / norm);
    const write = direction.map((value) => -value);
    const without = await statesOf(f, [at, last], at, { add: zeros, read: direction, write });
    for (let row = 0; row < 3; row += 1) {
      let along = 0;
      for (let i = 0; i < width; i += 1) along += (without[row * width + i] ?? NaN) * (direction[i] ?? NaN);
      expect(Math.abs(along) / scale).toBeLessThan(TOLERANCE);
    }
    steered += 1;
  });
});
