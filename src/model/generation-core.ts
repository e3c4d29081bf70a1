import type { Tap } from '../types.ts';
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
}

export interface GenerationResult {
  /** Generated ids, the stop id included. */
  readonly ids: Int32Array;
  readonly stop: 'stop_id' | 'length' | 'stopped';
  /** Positions (in prompt ++ generated) of the rows: the last prompt token, then each generated token. Empty without capture. */
  readonly positions: Int32Array;
  /** [taps, positions, width] */
  readonly data: Float32Array;
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
      const path = [...request.ids];
      let { from, state } = resume(request.ids, request.slot);
      let computedTokens = 0;
      const rows: Float32Array[] = [];
      const stops = new Set(request.stopIds);
      /** Computes path[from, to) and returns the outputs; rows of the last token are kept when asked for. */
      const advance = async (to: number): Promise<ReadonlyMap<string, TensorData>> => {
        const ids = Int32Array.from(path);
        let outputs: ReadonlyMap<string, TensorData> = new Map();
        const bounds = chunkBoundaries(from, to, chunk);
        for (let k = 0; k + 1 < bounds.length; k++) {
          const [a, b] = [bounds[k], bounds[k + 1]];
          const wanted = b === to && request.capture ? Int32Array.of(to - 1) : new Int32Array(0);
          outputs = await session.run(chunkFeeds(options, ids, a, b, wanted, state));
          state = { length: b, tensors: states.map((s) => outputs.get(s.output) as TensorData) };
          computedTokens += b - a;
        }
        from = options.io.states.length === 0 ? 0 : to;
        if (request.capture) rows.push(joinTaps(outputs, taps, width));
        return outputs;
      };
      let stop: GenerationResult['stop'] = 'length';
      for (let step = 0; step < request.maxTokens; step++) {
        const outputs = await advance(path.length);
        const id = sampleToken(
          lastLogits(outputs, options.logits),
          request.temperature,
          request.topP,
          request.uniforms[step] ?? 0,
        );
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
      if (options.io.states.length > 0) held = [{ slot: request.slot, ids, state }, ...held].slice(0, options.keep);
      const first = request.ids.length - 1;
      const positions = request.capture
        ? Int32Array.from({ length: rows.length }, (_, i) => first + i)
        : new Int32Array(0);
      return {
        ids: ids.slice(request.ids.length),
        stop,
        positions,
        data: interleave(rows, taps.length, width),
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
