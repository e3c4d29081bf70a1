import type { Tap } from '../../types.ts';
import { type GraphIndex, nodeReads } from './index-graph.ts';
import { FLOAT, intAttribute, type OnnxGraph, type OnnxModel, toNumber } from './onnx-schema.ts';
import type { ReadModel } from './read-model.ts';
import { isSkipNorm } from './residual-ops.ts';
import type { StateIo } from './graph-io.ts';
import { tapGraph } from './tap-graph.ts';

/** Input of tap `k`: float32 [width], added to the stream at every token. */
export const nudgeInput = (k: number): string => `forewarn.nudge.${k}`;

export interface NudgedGraph {
  readonly states: readonly StateIo[];
  readonly inputs: ReadonlySet<string>;
  /** Taps with an input {@link nudgeInput}, numbered as they were asked for. */
  readonly nudged: readonly Tap[];
  /** Taps that no path leads from to the logits. */
  readonly unread: readonly Tap[];
}

/** CastLike, which takes the type from the graph itself, is there from this opset on. */
const CAST_LIKE_OPSET = 15;

/**
 * The graph with its logits and, at every tap, a vector that is added to the stream: what a probe reads
 * there is only worth something when the model reads it too. `model` is changed in place.
 *
 * A Skip*LayerNormalization gives the stream and its norm at once, so there the vector is added to an operand of the sum.
 */
export function nudgeGraph(
  model: OnnxModel,
  index: GraphIndex,
  read: Pick<ReadModel, 'io' | 'stream' | 'taps'>,
  taps: readonly Tap[],
): NudgedGraph {
  const tapped = tapGraph(model, index, read, { taps: [], logits: 'every row' });
  const { graph } = model;
  const opset = model.opset_import.find(({ domain }) => (domain ?? '') === '')?.version;
  const inputs = new Set(tapped.inputs);
  const left = new Set(graph.node);
  const readNames = new Set(graph.node.flatMap(nodeReads));
  const nudged: Tap[] = [];
  const unread: Tap[] = [];
  for (const [k, tap] of taps.entries()) {
    const ref = read.taps.get(tap);
    if (!ref) throw new Error(`no tap ${tap}`);
    const node = ref.node < 0 ? undefined : index.nodes[ref.node];
    const atSum = node !== undefined && isSkipNorm(node) && ref.slot === 3;
    // What the logits do not depend on was pruned away.
    if (ref.name !== read.io.logits && !(atSum ? left.has(node) : readNames.has(ref.name))) {
      unread.push(tap);
      continue;
    }
    nudged.push(tap);
    const input = nudgeInput(k);
    graph.input.push({
      name: input,
      type: { tensor_type: { elem_type: FLOAT, shape: { dim: [{ dim_param: 'width' }] } } },
    });
    inputs.add(input);
    const value = atSum ? node.input[1] : ref.name;
    const sum = `${input}.sum`;
    if (atSum) node.input[1] = sum;
    else rename(graph, value, sum);
    const type = index.types.get(value) ?? index.types.get(ref.name);
    let vector = input;
    if (type !== FLOAT) {
      vector = `${input}.cast`;
      const like = type === undefined && toNumber(opset) >= CAST_LIKE_OPSET;
      if (like) graph.node.push({ op_type: 'CastLike', name: vector, input: [input, value], output: [vector] });
      else
        graph.node.push({
          op_type: 'Cast',
          name: vector,
          input: [input],
          output: [vector],
          attribute: [intAttribute('to', type ?? FLOAT)],
        });
    }
    graph.node.push({ op_type: 'Add', name: sum, input: [value, vector], output: [sum] });
  }
  return { states: tapped.states, inputs, nudged, unread };
}

/** Everything that reads `from` reads `to` instead, subgraphs and outputs of the graph too. */
function rename(graph: OnnxGraph, from: string, to: string): void {
  for (const node of graph.node) {
    node.input = node.input.map((name) => (name === from ? to : name));
    for (const { g, graphs } of node.attribute ?? []) for (const sub of g ? [g] : (graphs ?? [])) rename(sub, from, to);
  }
}
