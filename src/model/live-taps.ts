import path from 'node:path';
import { DataError } from '../errors.ts';
import { toFloat32 } from '../lib/float-formats.ts';
import { nudgeGraph, nudgeInput } from './graph/nudge-graph.ts';
import { FLOAT, INT64 } from './graph/onnx-schema.ts';
import { readModel } from './graph/read-model.ts';
import { isPassDependent } from './graph/supported-ops.ts';
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
 * @throws DataError as the session does, and when a token sees later ones; Error when the same run twice gives two results
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
  const logits = async (
    at: number,
    size: number,
    changed: ReadonlyMap<string, TensorData> = feeds,
  ): Promise<Float32Array> => {
    const given = new Map(changed);
    for (const [k, tap] of taps.entries())
      if (nudged.has(tap)) given.set(nudgeInput(k), k === at ? vector(size) : still);
    const { data } = (await session.run(given)).get(read.io.logits) as TensorData;
    return data instanceof Uint16Array
      ? toFloat32(new Uint8Array(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)), 'F16')
      : (data as Float32Array);
  };
  try {
    const plain = await logits(-1, 0);
    // Says nothing about masks or taps (nothing moved, and nothing stood still); replay names the tap where it begins.
    if (!plain.every(Number.isFinite)) return taps.map((tap) => ({ tap, moved: Number.NaN }));
    if (change(plain, await logits(-1, 0)) !== 0) throw new Error('the same run twice gave two results');
    const otherEnd = new Map(feeds);
    if (read.io.ids)
      otherEnd.set(
        read.io.ids.name,
        integers(read.io.ids.type, [1, TOKENS], [...ids.subarray(0, -1), (ids[TOKENS - 1] + 1) % vocabulary]),
      );
    // Dynamic quantisation lets every token of a pass move every other a little.
    if (!isPassDependent(read.model.graph)) refuseLookahead(read.file, plain, await logits(-1, 0, otherEnd));
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

/** Of the largest logit: what sums in another order may move; a mask that lets a token see the next moves far more. */
const LOOKAHEAD = 1e-2;

/**
 * A graph traced with one token (old decoders with a cache) may hold no mask at all: right for one token at a time, wrong
 * for a whole prompt, without an error.
 * @throws DataError when another last token changes the logits of those before it
 */
function refuseLookahead(file: string, plain: Float32Array, other: Float32Array): void {
  if (plain.length % TOKENS !== 0) return; // logits of the last token alone
  const before = (plain.length / TOKENS) * (TOKENS - 1);
  const scale = plain.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  if (change(plain.subarray(0, before), other.subarray(0, before)) <= LOOKAHEAD * scale) return;
  throw new DataError(
    `${path.basename(file)}: expected a token not to see later ones, got logits that change with the token after them. The graph holds a mask for one token at a time: export it again`,
  );
}

/** Largest difference. */
function change(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let most = 0;
  for (let i = 0; i < a.length; i += 1) {
    const difference = Math.abs(a[i] - b[i]);
    if (difference > most) most = difference;
    else if (Number.isNaN(difference) && !Object.is(a[i], b[i])) most = Infinity;
  }
  return most;
}
