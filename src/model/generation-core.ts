import type { Tap } from '../types.ts';
import { FLOAT } from './graph/onnx-schema.ts';
import { STEER } from './graph/steer-graph.ts';
import { tapOutput } from './graph/tap-graph.ts';
import { commonPrefix } from '../lib/token-order.ts';
import { chunkBoundaries } from './plan-passes.ts';
import { chunkFeeds, type CoreOptions } from './replay-core.ts';
import { sampleToken } from './sampling.ts';
import type { Session } from './session.ts';
import { emptyState, isRewindable, rewind, type ModelState } from './state.ts';
import type { TensorData } from './tensors.ts';

/** What one call of `generate` asks of the model, in a form that crosses a process boundary. */
export interface GenerationRequest {
  readonly ids: Int32Array;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  /** One number in [0, 1) per step; [maxTokens]. */
  readonly uniforms: Float64Array;
  readonly stopIds: readonly number[];
  /** Which rows of the taps to return: of the last prompt token and all generated ones, or none. */
  readonly capture: boolean;
  /** Only states of the same slot are gone on from. */
  readonly slot: string;
  /** Change of the residual stream at the steered tap, from the last prompt token on; null = none. */
  readonly steer: Steering | null;
  /** Tokens that are taken instead of sampled ones, from step 0 on; null = none. */
  readonly forced: Int32Array | null;
  /** Return the log-probability (temperature 1, natural logarithm) of every generated token. */
  readonly logprobs: boolean;
}

/** x ← x + add + (x · read) · write at every token from the last one of the prompt on. All [width]. */
export interface Steering {
  readonly add: Float32Array;
  readonly read: Float32Array;
  readonly write: Float32Array;
}

export interface GenerationResult {
  /** Generated ids, the stop id included. */
  readonly ids: Int32Array;
  readonly stop: 'stop_id' | 'length' | 'stopped';
  /** Positions (in prompt ++ generated) of the rows: the last prompt token, then each generated token. Empty without capture. */
  readonly positions: Int32Array;
  /** [taps, positions, width] */
  readonly data: Float32Array;
  /** [generated] where asked for, else empty. */
  readonly logprobs: Float64Array;
  /** Tokens pushed through the model: what the states held from earlier calls did not cover. */
  readonly computedTokens: number;
}

export interface GenerationCore {
  /** @param onToken called with each token before the next is computed; false stops after it */
  generate(request: GenerationRequest, onToken: ((id: number) => Promise<boolean>) | null): Promise<GenerationResult>;
}

interface Held {
  readonly slot: string;
  readonly ids: Int32Array;
  readonly state: ModelState;
}

/**
 * States are never changed in place, so a new prompt goes on from whichever earlier path shares the longest prefix with it:
 * a conversation that grows, a fork of one, or a resampled turn. `keep` of them are held, least recently used first out.
 */
export function createGenerationCore(
  session: Session,
  options: CoreOptions & { readonly logits: string; readonly keep: number },
): GenerationCore {
  const { states, taps, width } = options;
  const rewindable = isRewindable(states);
  const chunk = options.io.states.length === 0 || options.passDependent ? Infinity : options.chunk;
  let held: Held[] = [];

  return {
    generate: async (request, onToken) => {
      if (request.steer !== null && (options.io.states.length === 0 || options.passDependent))
        throw new RangeError(
          'expected a graph with past state whose numbers do not depend on the pass, got one where steering would change the prompt too',
        );
      const path = [...request.ids];
      let { from, state } = resume(request.ids, request.slot);
      let computedTokens = 0;
      const rows: Float32Array[] = [];
      const stops = new Set(request.stopIds);
      const plain = steerFeeds(null, width);
      const steered = request.steer === null ? plain : steerFeeds(request.steer, width);
      const logprobs: number[] = [];
      /** Computes path[from, to) and returns the outputs; rows of the last token are kept when asked for. */
      const advance = async (to: number): Promise<ReadonlyMap<string, TensorData>> => {
        const ids = Int32Array.from(path);
        let outputs: ReadonlyMap<string, TensorData> = new Map();
        // Steering begins with the token that predicts the first generated one.
        const cuts = request.steer === null ? [] : [request.ids.length - 1];
        const bounds = chunkBoundaries(from, to, chunk, cuts);
        for (let k = 0; k + 1 < bounds.length; k++) {
          const [a, b] = [bounds[k], bounds[k + 1]];
          const wanted = b === to && request.capture ? Int32Array.of(to - 1) : new Int32Array(0);
          const feeds = chunkFeeds(options, ids, a, b, wanted, state);
          for (const [name, tensor] of b < request.ids.length ? plain : steered)
            if (options.inputs.has(name)) feeds.set(name, tensor);
          outputs = await session.run(feeds);
          state = { length: b, tensors: states.map((s) => outputs.get(s.output) as TensorData) };
          computedTokens += b - a;
          // The prompt before its last token is not steered: the same prompt with another direction goes on from here.
          if (request.steer !== null && b === request.ids.length - 1)
            held = [{ slot: request.slot, ids: ids.slice(0, b), state }, ...held].slice(0, options.keep);
        }
        from = options.io.states.length === 0 ? 0 : to;
        if (request.capture) rows.push(joinTaps(outputs, taps, width));
        return outputs;
      };
      let stop: GenerationResult['stop'] = 'length';
      for (let step = 0; step < request.maxTokens; step++) {
        const outputs = await advance(path.length);
        const logits = lastLogits(outputs, options.logits);
        const id =
          request.forced?.[step] ?? sampleToken(logits, request.temperature, request.topP, request.uniforms[step] ?? 0);
        if (request.logprobs) logprobs.push(logProbability(logits, id));
        path.push(id);
        const goOn = onToken === null || (await onToken(id));
        if (stops.has(id)) {
          stop = 'stop_id';
          break;
        }
        if (!goOn) {
          stop = 'stopped';
          break;
        }
      }
      // The last token was sampled but not computed; its row is wanted, and its state starts the next turn.
      if (path.length > from) await advance(path.length);
      const ids = Int32Array.from(path);
      // What steering left in the state is no part of the conversation: the next turn reads it as it was written.
      if (options.io.states.length > 0 && request.steer === null)
        held = [{ slot: request.slot, ids, state }, ...held].slice(0, options.keep);
      const first = request.ids.length - 1;
      const positions = request.capture
        ? Int32Array.from({ length: rows.length }, (_, i) => first + i)
        : new Int32Array(0);
      return {
        ids: ids.slice(request.ids.length),
        stop,
        positions,
        data: interleave(rows, taps.length, width),
        logprobs: Float64Array.from(logprobs),
        computedTokens,
      };
    },
  };

  /** The longest usable prefix among the held paths of the slot; the last prompt token is always computed, for its logits. */
  function resume(ids: Int32Array, slot: string): { from: number; state: ModelState } {
    let best: Held | null = null;
    let shared = 0;
    for (const h of held) {
      if (h.slot !== slot) continue;
      const n = Math.min(commonPrefix(h.ids, ids), ids.length - 1);
      if (n > shared && (rewindable || n === h.ids.length)) {
        best = h;
        shared = n;
      }
    }
    if (!best) return { from: 0, state: emptyState(states) };
    const found = best;
    held = [found, ...held.filter((h) => h !== found)];
    return { from: shared, state: rewind(states, found.state, shared, null) };
  }
}

/** Inputs of a graph that can be steered. */
function steerFeeds(steer: Steering | null, width: number): ReadonlyMap<string, TensorData> {
  const zeros = new Float32Array(width);
  const { add, read, write } = steer ?? { add: zeros, read: zeros, write: zeros };
  return new Map<string, TensorData>([
    [STEER.add, { type: FLOAT, dims: [width], data: add }],
    [STEER.read, { type: FLOAT, dims: [width, 1], data: read }],
    [STEER.write, { type: FLOAT, dims: [width], data: write }],
  ]);
}

/** ln softmax(logits)[id], with the largest logit taken out first. */
function logProbability(logits: Float32Array, id: number): number {
  let top = -Infinity;
  for (const value of logits) if (value > top) top = value;
  let sum = 0;
  for (const value of logits) if (value > -Infinity) sum += Math.exp(value - top);
  return (logits[id] ?? Number.NaN) - top - Math.log(sum);
}

function lastLogits(outputs: ReadonlyMap<string, TensorData>, name: string): Float32Array {
  const t = outputs.get(name) as TensorData;
  const vocabulary = t.dims[t.dims.length - 1] ?? 0;
  const last = t.data.subarray(t.data.length - vocabulary);
  return last instanceof Float32Array ? last : Float32Array.from(last as Uint16Array, fromFloat16);
}

/** A float16 from its bits. */
function fromFloat16(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

/** [taps × width] of the single row in each tap output. */
function joinTaps(outputs: ReadonlyMap<string, TensorData>, taps: readonly Tap[], width: number): Float32Array {
  const row = new Float32Array(taps.length * width);
  for (let k = 0; k < taps.length; k++)
    row.set((outputs.get(tapOutput(k)) as TensorData).data as Float32Array, k * width);
  return row;
}

/** Rows of [taps, width] to [taps, rows, width]. */
function interleave(rows: readonly Float32Array[], taps: number, width: number): Float32Array {
  const data = new Float32Array(taps * rows.length * width);
  for (const [r, row] of rows.entries()) {
    for (let k = 0; k < taps; k++) data.set(row.subarray(k * width, (k + 1) * width), (k * rows.length + r) * width);
  }
  return data;
}
