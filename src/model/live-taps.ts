import { nudgeGraph, nudgeInput } from './graph/nudge-graph.ts';
import { FLOAT, INT64 } from './graph/onnx-schema.ts';
import { readModel } from './graph/read-model.ts';
import { chunkFeeds } from './replay-core.ts';
import { openSession, type SessionOptions } from './session.ts';
import { emptyState } from './state.ts';
import { integers, type TensorData } from './tensors.ts';
import type { Tap } from '../types.ts';

/** What adding a vector at a tap does to the logits. */
export interface TapEffect {
  readonly tap: Tap;
  /** Largest change of a logit; 0 = the model does not read the tap. */
  readonly moved: number;
}

/** Tokens that are read: enough for attention to have something to attend to. */
const TOKENS = 6;
/** Magnitudes of the vector, tried in turn: half precision loses a small one beside a large stream. */
const SIZES = [1, 64, 4096];

/**
 * Runs the model once as it is and once with a vector added at each tap. Loads the weights; call it in a process that may
 * be ended.
 * @throws DataError as the session does; Error when the same run twice gives two results
 */
export async function measureTaps(
  folder: string,
  dtype: string | null,
  taps: readonly Tap[],
  options: SessionOptions,
): Promise<readonly TapEffect[]> {
  const read = await readModel(folder, dtype === null ? {} : { dtype });
  const graph = nudgeGraph(read.model, read.index, read, taps);
  const session = await openSession(read.file, read.model, read.external, options);
  const vocabulary = read.config.vocabularySize ?? TOKENS + 1;
  const ids = Int32Array.from({ length: TOKENS }, (_, i) => (i + 1) % vocabulary);
  const feeds = chunkFeeds(
    { io: read.io, states: graph.states, inputs: graph.inputs },
    ids,
    0,
    TOKENS,
    new Int32Array(0),
    emptyState(graph.states),
  );
  const vector = (size: number): TensorData => ({
    type: FLOAT,
    dims: [read.width],
    // No constant: a norm takes the mean away, and a zero sum could cancel.
    data: Float32Array.from({ length: read.width }, (_, i) => size * Math.sin(i + 1)),
  });
  if (read.io.logitsToKeep)
    feeds.set(read.io.logitsToKeep.name, integers(INT64, read.io.logitsToKeep.scalar ? [] : [1], [0]));
  const still = vector(0);
  const nudged = new Set(graph.nudged);
  const logits = async (at: number, size: number): Promise<ArrayLike<number>> => {
    const given = new Map(feeds);
    for (const [k, tap] of taps.entries())
      if (nudged.has(tap)) given.set(nudgeInput(k), k === at ? vector(size) : still);
    return (await session.run(given)).get(read.io.logits)?.data as Float32Array | Uint16Array;
  };
  try {
    const plain = await logits(-1, 0);
    if (change(plain, await logits(-1, 0)) !== 0) throw new Error('the same run twice gave two results');
    const effects: TapEffect[] = [];
    for (const [k, tap] of taps.entries()) {
      let moved = 0;
      for (const size of nudged.has(tap) ? SIZES : []) if (moved === 0) moved = change(plain, await logits(k, size));
      effects.push({ tap, moved });
    }
    return effects;
  } finally {
    await session.close();
  }
}

/** Largest difference; of float16 bits it only matters whether there is one. */
function change(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let most = 0;
  for (let i = 0; i < a.length; i += 1) {
    const difference = Math.abs(a[i] - b[i]);
    if (difference > most) most = difference;
    else if (Number.isNaN(difference) && !Object.is(a[i], b[i])) most = Infinity;
  }
  return most;
}
