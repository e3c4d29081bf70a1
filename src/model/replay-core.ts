import type { ReplaySequence, Tap } from '../types.ts';
import type { GraphIo, StateIo } from './graph/graph-io.ts';
import { INT64 } from './graph/onnx-schema.ts';
import { LOGIT_ROWS_INPUT, ROWS_INPUT, tapOutput } from './graph/tap-graph.ts';
import { commonPrefix } from '../lib/token-order.ts';
import { chunkBoundaries, gridBelow, planPasses, type Pass } from './plan-passes.ts';
import type { Counts } from './protocol.ts';
import type { Session } from './session.ts';
import { emptyState, isRewindable, keepFixed, rewind, type ModelState } from './state.ts';
import { createTapHealth, type TapHealth } from './tap-health.ts';
import { integers, type TensorData } from './tensors.ts';

export interface CoreOptions {
  readonly io: GraphIo;
  readonly states: readonly StateIo[];
  readonly inputs: ReadonlySet<string>;
  readonly taps: readonly Tap[];
  readonly width: number;
  /** Tokens per forward pass; Infinity = whole sequences. */
  readonly chunk: number;
  /** Compute each distinct prefix once. */
  readonly sharing: boolean;
  /** Take prefixes over from call to call, too (default true). */
  readonly carry?: boolean;
  /** Tokens that every sequence begins with (default 0): a boundary of chunks, so that they are taken over whole. */
  readonly rootTokens?: number;
  /** The graph scales activations by what else is in the pass (dynamic quantisation): nothing may be split or shared. */
  readonly passDependent: boolean;
}

export interface CoreEvents {
  /** A sequence is about to be computed: if the process dies now, it is the one to blame. */
  readonly onPass: (sequence: number) => Promise<void>;
  readonly onProgress: (tokens: number) => void;
  /** Blocks come as soon as they are whole, in any order. data: [taps, rows, width]. */
  readonly onBlock: (sequence: number, data: Float32Array) => Promise<void>;
}

/** Replays sets of sequences through one session. Holds the state of the last path, so that the next set can go on from its prefix. */
export interface ReplayCore {
  replay(sequences: readonly ReplaySequence[], events: CoreEvents): Promise<void>;
  /** What happened since the last call of it. */
  take(): { readonly counts: Counts; readonly health: readonly TapHealth[] };
}

export function createReplayCore(session: Session, options: CoreOptions): ReplayCore {
  const { states, taps, width, passDependent } = options;
  const sharing = options.sharing && !passDependent;
  // Without state a chunk would not see what stands before it.
  const chunk = options.io.states.length === 0 || passDependent ? Infinity : options.chunk;
  const rewindable = states.length > 0 && isRewindable(states);
  const root = Number.isFinite(chunk) ? (options.rootTokens ?? 0) : 0;
  const health = createTapHealth(taps);
  let state = emptyState(states);
  /** Ids the state was computed from. */
  let path = new Int32Array(0);
  /** Leading tokens of the state that were computed in chunks that any sequence would use: the same bits for whoever computes them. */
  let onGrid = 0;
  let kept: ModelState[] = [];
  let forwardPasses = 0;
  let computedTokens = 0;
  let naiveTokens = 0;

  /** Pushes ids[from, to) through the model; `state` holds [0, from). Returns the outputs. */
  const forward = async (
    ids: Int32Array,
    from: number,
    to: number,
    rows: Int32Array,
  ): Promise<ReadonlyMap<string, TensorData>> => {
    const feeds = chunkFeeds(options, ids, from, to, rows, state);
    const outputs = await session.run(feeds);
    state = { length: to, tensors: states.map((s) => outputs.get(s.output) as TensorData) };
    forwardPasses++;
    computedTokens += to - from;
    return outputs;
  };

  const runPass = async (
    pass: Pass,
    sequences: readonly ReplaySequence[],
    blocks: Blocks,
    events: CoreEvents,
  ): Promise<void> => {
    const { ids } = sequences[pass.sequence];
    const cuts = rewindable ? [] : pass.branches;
    const bounds = chunkBoundaries(
      pass.start,
      pass.end,
      chunk,
      root > 0 ? [...new Set([root, ...cuts])].sort((a, b) => a - b) : cuts,
    );
    let at = 0;
    let wanted = 0;
    if (pass.start === 0) {
      // The leading chunks may still be in the state from the call before; nothing of them may be wanted then.
      const shared = sharing && rewindable ? Math.min(commonPrefix(path, ids), onGrid, pass.wanted[0] ?? 0) : 0;
      while (at + 2 < bounds.length && (bounds[at + 1] ?? 0) <= shared) at++;
    }
    const start = bounds[at] ?? 0;
    const old = kept.findLast((k) => k.length <= start) ?? null;
    state = rewind(states, state, start, old);
    kept = kept.filter((k) => k.length <= start);
    onGrid = Math.min(onGrid, gridBelow(start, root, chunk));
    for (; at + 1 < bounds.length; at++) {
      const from = bounds[at];
      const to = bounds[at + 1];
      const until = wanted + countBelow(pass.wanted, to, wanted);
      const outputs = await forward(ids, from, to, pass.wanted.subarray(wanted, until));
      if (from === onGrid && (to <= root || to - from === chunk)) onGrid = to;
      health.see(
        taps.map((_, k) => (outputs.get(tapOutput(k)) as TensorData).data as Float32Array),
        width,
      );
      for (let row = wanted; row < until; row++) {
        for (const taker of pass.takers[row] ?? []) blocks.put(taker.sequence, taker.row, outputs, row - wanted);
      }
      wanted = until;
      if (!rewindable && pass.branches.includes(to)) kept.push(keepFixed(states, state));
      events.onProgress(to - from);
    }
    path = ids.slice(0, pass.end);
  };

  return {
    replay: async (sequences, events) => {
      const reuse = !sharing ? 'none' : states.length > 0 ? 'prefix' : 'whole';
      const blocks = createBlocks(sequences, taps.length, width);
      if (!rewindable || options.carry === false) {
        // A state that cannot be rewound is of no use to the next call unless its prompt extends the last one exactly.
        state = emptyState(states);
        path = new Int32Array(0);
        onGrid = 0;
      }
      kept = [];
      for (const s of sequences) naiveTokens += s.ids.length;
      for (const done of blocks.take()) await events.onBlock(done.sequence, done.data);
      for (const pass of planPasses(sequences, reuse)) {
        await events.onPass(pass.sequence);
        await runPass(pass, sequences, blocks, events);
        for (const done of blocks.take()) await events.onBlock(done.sequence, done.data);
      }
    },
    take: () => {
      const counts = { forwardPasses, computedTokens, naiveTokens };
      forwardPasses = computedTokens = naiveTokens = 0;
      return { counts, health: health.take() };
    },
  };
}

/** Inputs of one chunk: ids [1, S], mask of ones [1, T], positions from…to, rows within the chunk, the state. */
export function chunkFeeds(
  options: Pick<CoreOptions, 'io' | 'states' | 'inputs'>,
  ids: Int32Array,
  from: number,
  to: number,
  rows: Int32Array,
  state: ModelState,
): Map<string, TensorData> {
  const { io, states, inputs } = options;
  const size = to - from;
  const feeds = new Map<string, TensorData>();
  const feed = (name: string, tensor: TensorData): void => {
    if (inputs.has(name)) feeds.set(name, tensor);
  };
  if (io.ids) feed(io.ids.name, integers(io.ids.type, [1, size], ids.subarray(from, to)));
  if (io.mask) feed(io.mask.name, integers(io.mask.type, [1, to], new Uint8Array(to).fill(1)));
  if (io.positions) {
    const axes = io.positions.axes || 1;
    const positions = Int32Array.from({ length: axes * size }, (_, i) => from + (i % size));
    feed(io.positions.name, integers(io.positions.type, io.positions.axes ? [axes, 1, size] : [1, size], positions));
  }
  feed(
    ROWS_INPUT,
    integers(
      INT64,
      [rows.length],
      rows.map((r) => r - from),
    ),
  );
  feed(LOGIT_ROWS_INPUT, integers(INT64, [1], [size - 1]));
  if (io.logitsToKeep) feed(io.logitsToKeep.name, integers(INT64, io.logitsToKeep.scalar ? [] : [1], [1]));
  for (const [i, s] of states.entries()) feed(s.input, state.tensors[i]);
  return feeds;
}

function countBelow(values: Int32Array, limit: number, from: number): number {
  let at = from;
  while (at < values.length && (values[at] ?? 0) < limit) at++;
  return at - from;
}

interface Blocks {
  put(sequence: number, row: number, outputs: ReadonlyMap<string, TensorData>, from: number): void;
  /** Blocks that have become whole since the last call. */
  take(): { readonly sequence: number; readonly data: Float32Array }[];
}

function createBlocks(sequences: readonly ReplaySequence[], taps: number, width: number): Blocks {
  const open = new Map<number, { data: Float32Array; missing: number }>();
  const whole: { sequence: number; data: Float32Array }[] = [];
  for (const [sequence, { rows }] of sequences.entries()) {
    if (rows.length === 0) whole.push({ sequence, data: new Float32Array(0) });
  }
  return {
    put: (sequence, row, outputs, from) => {
      const rows = sequences[sequence]?.rows.length ?? 0;
      let block = open.get(sequence);
      if (!block) open.set(sequence, (block = { data: new Float32Array(taps * rows * width), missing: rows }));
      for (let k = 0; k < taps; k++) {
        const data = (outputs.get(tapOutput(k)) as TensorData).data as Float32Array;
        block.data.set(data.subarray(from * width, (from + 1) * width), (k * rows + row) * width);
      }
      if (--block.missing === 0) {
        open.delete(sequence);
        whole.push({ sequence, data: block.data });
      }
    },
    take: () => whole.splice(0),
  };
}
