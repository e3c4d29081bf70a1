import type { StateIo } from './graph/graph-io.ts';
import { emptyData, type TensorData } from './tensors.ts';

/** Memory of the model after `length` tokens of one sequence: one tensor per state of the graph, in the graph's order. Never changed in place. */
export interface ModelState {
  readonly length: number;
  readonly tensors: readonly TensorData[];
}

export function emptyState(states: readonly StateIo[]): ModelState {
  return { length: 0, tensors: states.map((s) => emptyData(s.type, s.dims)) };
}

/** The part of the state that cannot be computed from a longer one. */
export const isRewindable = (states: readonly StateIo[]): boolean => states.every((s) => s.lengthAxis !== null);

/**
 * The state after the first `length` tokens. Growing tensors are cut (a copy of what stays: the axis lies inside);
 * fixed-size ones are taken from `kept`, a state of exactly that length.
 */
export function rewind(
  states: readonly StateIo[],
  state: ModelState,
  length: number,
  kept: ModelState | null,
): ModelState {
  if (length === state.length) return state;
  if (length === 0) return emptyState(states);
  return {
    length,
    tensors: states.map((s, i) => {
      if (s.lengthAxis !== null) return cut(state.tensors[i], s.lengthAxis, length);
      if (kept?.length !== length) throw new Error(`no state of ${length} tokens was kept for ${s.input}`);
      return kept.tensors[i];
    }),
  };
}

/** Only what {@link rewind} cannot restore by cutting; growing tensors are left out to free their memory. */
export function keepFixed(states: readonly StateIo[], state: ModelState): ModelState {
  return {
    length: state.length,
    tensors: states.map((s, i) => (s.lengthAxis === null ? state.tensors[i] : emptyData(s.type, s.dims))),
  };
}

function cut(tensor: TensorData, axis: number, length: number): TensorData {
  const outer = tensor.dims.slice(0, axis).reduce((a, b) => a * b, 1);
  const inner = tensor.dims.slice(axis + 1).reduce((a, b) => a * b, 1);
  const slots = tensor.dims[axis] ?? 0;
  const dims = tensor.dims.map((d, i) => (i === axis ? length : d));
  const result = emptyData(tensor.type, dims);
  for (let o = 0; o < outer; o++) {
    const from = o * slots * inner;
    const part = tensor.data.subarray(from, from + length * inner);
    result.data.set(part as never, o * length * inner);
  }
  return result;
}
