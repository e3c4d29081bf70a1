import type { ModelConfig } from '../model-config.ts';
import { GraphError, type GraphIndex } from './index-graph.ts';
import {
  attribute,
  BFLOAT16,
  dataTypeName,
  FLOAT,
  FLOAT16,
  INT32,
  INT64,
  toNumber,
  type OnnxValueInfo,
} from './onnx-schema.ts';

/** What has to be fed and what comes back, worked out from the graph's own inputs and outputs. */
export interface GraphIo {
  /** Token ids; absent where the graph takes embeddings instead. */
  readonly ids: { readonly name: string; readonly type: number } | null;
  readonly embeds: { readonly name: string; readonly type: number } | null;
  readonly mask: { readonly name: string; readonly type: number } | null;
  /** `axes` = leading axes before [batch, sequence]: 3 for multimodal rotary positions, 0 otherwise. */
  readonly positions: { readonly name: string; readonly type: number; readonly axes: number } | null;
  /** Number of last positions whose logits are computed; 0 = all. */
  readonly logitsToKeep: { readonly name: string; readonly type: number; readonly scalar: boolean } | null;
  readonly states: readonly StateIo[];
  readonly logits: string;
}

/** One piece of memory carried from chunk to chunk. */
export interface StateIo {
  readonly input: string;
  readonly output: string;
  readonly type: number;
  /** Shape of the empty state for one sequence; the length axis holds its initial slots (0, or the window). */
  readonly dims: readonly number[];
  /** Axis that grows by one slot per token; null: fixed size (convolution, recurrence, sliding window), which cannot be rewound. */
  readonly lengthAxis: number | null;
}

const STATE_OUTPUTS: readonly ((input: string) => string)[] = [
  (n) => n.replace(/^past_key_values\./, 'present.'),
  (n) => n.replace(/^past_key_values/, 'present_key_values'),
  (n) => n.replace(/^past_key_values/, 'present'),
  (n) => n.replace(/^past([._])/, 'present$1'),
  (n) => n.replace(/^past/, 'present'),
];

/** @throws GraphError naming the input or output that cannot be served */
export function readGraphIo(index: GraphIndex, config: ModelConfig): GraphIo {
  const inputs = index.graph.input.filter((v) => index.inputs.has(v.name));
  const known = new Map(inputs.map((v) => [v.name, v]));
  const take = (name: string, types: readonly number[]): { name: string; type: number } | null => {
    const v = known.get(name);
    if (!v) return null;
    const type = elementType(v);
    if (!types.includes(type)) {
      throw new GraphError(
        `input ${name}: expected ${types.map(dataTypeName).join(' or ')}, got ${dataTypeName(type)}${type === BFLOAT16 ? ', which onnxruntime-node cannot be fed' : ''}`,
      );
    }
    known.delete(name);
    return { name, type };
  };
  const ids = take('input_ids', [INT64, INT32]);
  const embeds = take('inputs_embeds', [FLOAT, FLOAT16]);
  const mask = take('attention_mask', [INT64, INT32]);
  const positionShape = known.get('position_ids');
  const positions = take('position_ids', [INT64, INT32]);
  const keepShape = known.get('num_logits_to_keep');
  const keep = take('num_logits_to_keep', [INT64]);
  const outputs = new Set(index.graph.output.map((v) => v.name));
  const states: StateIo[] = [];
  for (const v of inputs) {
    if (!v.name.startsWith('past')) continue;
    const output = STATE_OUTPUTS.map((f) => f(v.name)).find((name) => outputs.has(name));
    if (output === undefined) {
      throw new GraphError(`input ${v.name}: expected an output that returns this state (present…), got none`);
    }
    known.delete(v.name);
    states.push(stateOf(index, config, v, output));
  }
  const strange = [...known.keys()];
  if (strange.length > 0) {
    throw new GraphError(
      `expected only inputs that text can fill (input_ids or inputs_embeds, attention_mask, position_ids, past…, num_logits_to_keep), got ${strange.join(', ')}`,
    );
  }
  if (!ids && !embeds)
    throw new GraphError(
      `expected an input input_ids or inputs_embeds, got ${inputs.map((v) => v.name).join(', ') || 'none'}`,
    );
  return {
    ids,
    embeds,
    mask,
    positions: positions && { ...positions, axes: shapeOf(positionShape).length > 2 ? 3 : 0 },
    logitsToKeep: keep && { ...keep, scalar: shapeOf(keepShape).length === 0 },
    states,
    logits: findLogits(index),
  };
}

function findLogits(index: GraphIndex): string {
  const outputs = index.graph.output;
  const named = outputs.find((v) => v.name === 'logits') ?? outputs.find((v) => v.name === 'hidden_states');
  const first = named ?? outputs.find((v) => !v.name.startsWith('present'));
  if (!first) throw new GraphError('expected an output with logits or hidden states, got only states');
  return first.name;
}

const elementType = (v: OnnxValueInfo | undefined): number => v?.type?.tensor_type?.elem_type ?? 0;
const shapeOf = (v: OnnxValueInfo | undefined): readonly (number | string)[] =>
  (v?.type?.tensor_type?.shape?.dim ?? []).map((d) => d.dim_param || toNumber(d.dim_value));

/**
 * Only symbols that mean a length may be 0 at the start; onnxruntime-genai ≥ 0.18 also writes the head size as a symbol.
 * A sliding-window cache is a fixed number of slots, which start as zeros: an empty one is rejected by the kernel.
 */
function stateOf(index: GraphIndex, config: ModelConfig, v: OnnxValueInfo, output: string): StateIo {
  const layer = Number(/(\d+)/.exec(v.name)?.[1] ?? -1);
  const shape = shapeOf(v);
  let lengthAxis: number | null = null;
  const dims = shape.map((d, axis) => {
    if (typeof d === 'number' && d > 0) return d;
    const symbol = String(d);
    if (axis === 0 || /batch/i.test(symbol)) return 1;
    if (/sliding|window/i.test(symbol)) return slidingSlots(index, config, v.name);
    if (/len|seq|past|total/i.test(symbol)) {
      lengthAxis = axis;
      return 0;
    }
    const full = config.layerTypes?.[layer] === 'full_attention';
    const size =
      axis === shape.length - 1
        ? ((full ? config.globalHeadDim : null) ?? config.headDim)
        : shape.length === 4 && axis === 1
          ? ((full ? config.globalKvHeads : null) ?? config.kvHeads)
          : null;
    if (size === null) {
      throw new GraphError(
        `input ${v.name}: expected a size for axis ${axis} (${symbol || 'unnamed'}) from the graph or config.json, got none`,
      );
    }
    return size;
  });
  return { input: v.name, output, type: elementType(v), dims, lengthAxis };
}

function slidingSlots(index: GraphIndex, config: ModelConfig, name: string): number {
  for (const i of index.consumers.get(name) ?? []) {
    const node = index.nodes[i];
    const window = node && toNumber(attribute(node, 'local_window_size')?.i);
    if (window && window > 0) return window;
  }
  if (config.slidingWindow !== null) return config.slidingWindow;
  throw new GraphError(
    `input ${name}: expected its window size in the graph (local_window_size) or config.json (sliding_window)`,
  );
}
