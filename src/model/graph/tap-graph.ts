import { GraphError, nodeReads, type GraphIndex, type ValueRef } from './index-graph.ts';
import type { StateIo } from './graph-io.ts';
import { FLOAT, INT64, intAttribute, type OnnxModel, type OnnxNode, type OnnxValueInfo } from './onnx-schema.ts';
import type { ReadModel } from './read-model.ts';
import { ancestors } from './reachability.ts';
import { isSkipNorm } from './residual-ops.ts';
import type { ResidualStream } from './trace-residual.ts';
import type { Tap } from '../../types.ts';

/** Name of the extra input: int64 [K], token indices within the chunk whose rows are wanted. */
export const ROWS_INPUT = 'forewarn.rows';
/** Extra input of a graph with logits: int64 [N], token indices within the chunk whose logits are wanted. */
export const LOGIT_ROWS_INPUT = 'forewarn.logit_rows';
/** Output of tap `k` of the list asked for: float32 [batch, K, width]. */
export const tapOutput = (k: number): string => `forewarn.tap.${k}`;

export interface TappedGraph {
  /** The model that was handed in, edited. */
  readonly model: OnnxModel;
  readonly taps: readonly Tap[];
  /** States the remaining graph still needs. */
  readonly states: readonly StateIo[];
  readonly inputs: ReadonlySet<string>;
}

/** Every tap the stream offers, in the order of the forward pass. */
export function tapValues(stream: ResidualStream): Map<Tap, ValueRef> {
  const taps = new Map<Tap, ValueRef>([['embed', stream.embed]]);
  for (const [i, block] of stream.blocks.entries()) {
    if (block.mid) taps.set(`resid_mid.${i}`, block.mid);
    taps.set(`resid_post.${i}`, block.post);
  }
  if (stream.finalNorm) taps.set('final_norm', stream.finalNorm);
  return taps;
}

/**
 * Appends the taps as outputs (rows gathered in the graph, float32) and removes everything that no output needs. `model` is
 * changed in place; unknown fields stay. Weights are not touched.
 * @param options.logits 'every row': as the graph gives them. true: keep the logits output too (generation), for the rows of {@link LOGIT_ROWS_INPUT} only: the product
 *   with the vocabulary costs as much as many blocks
 * @throws GraphError naming a tap that does not exist
 */
export function tapGraph(
  model: OnnxModel,
  index: GraphIndex,
  { io, stream, taps: available }: Pick<ReadModel, 'io' | 'stream' | 'taps'>,
  options: { readonly taps: readonly Tap[]; readonly logits: boolean | 'every row' },
): TappedGraph {
  const graph = model.graph;
  const refs = options.taps.map((tap) => {
    const ref = available.get(tap);
    if (!ref) throw new GraphError(`expected one of the taps ${summarise([...available.keys()])}, got ${tap}`);
    return ref;
  });
  const wanted = options.logits !== false ? [...refs, refOfOutput(index, io.logits)] : refs;
  const needed = ancestors(index, wanted);
  const usedInputs = new Set([...needed].flatMap((n) => index.reads[n] ?? []));
  const states = io.states.filter((s) => usedInputs.has(s.input));
  const keep = new Set(states.map((s) => s.output));
  if (options.logits !== false) {
    keep.add(io.logits);
    if (options.logits === true) selectLogitRows(model, index, stream);
  }
  graph.output = graph.output.filter((v) => keep.has(v.name));
  if (refs.length > 0) {
    graph.input.push({
      name: ROWS_INPUT,
      type: { tensor_type: { elem_type: INT64, shape: { dim: [{ dim_param: 'rows' }] } } },
    });
  }
  for (const [k, ref] of refs.entries()) {
    const rows = `${tapOutput(k)}.rows`;
    graph.node.push(
      {
        op_type: 'Gather',
        name: rows,
        input: [nameOf(index, ref), ROWS_INPUT],
        output: [rows],
        attribute: [intAttribute('axis', 1)],
      },
      {
        op_type: 'Cast',
        name: tapOutput(k),
        input: [rows],
        output: [tapOutput(k)],
        attribute: [intAttribute('to', FLOAT)],
      },
    );
    graph.output.push({ name: tapOutput(k) });
  }
  prune(model);
  return { model, taps: options.taps, states, inputs: new Set(graph.input.map((v) => v.name)) };
}

const indexInput = (name: string): OnnxValueInfo => ({
  name,
  type: { tensor_type: { elem_type: INT64, shape: { dim: [{ dim_param: name }] } } },
});

/**
 * Lets the head read only the wanted rows of the normed stream; all of them where it reshapes them by the size of the
 * input (GPT-2 of the older exporters), which selected rows would not fill.
 */
function selectLogitRows(model: OnnxModel, index: GraphIndex, stream: ResidualStream): void {
  const norm = stream.finalNorm?.name ?? '';
  if (norm === '')
    throw new GraphError('expected a final norm before the logits, got none: this graph cannot generate');
  if ((index.consumers.get(norm) ?? []).some((node) => index.nodes[node]?.op_type === 'Reshape')) return;
  const rows = 'forewarn.logit_rows.selected';
  for (const node of model.graph.node) node.input = node.input.map((name) => (name === norm ? rows : name));
  model.graph.node.push({
    op_type: 'Gather',
    name: rows,
    input: [norm, LOGIT_ROWS_INPUT],
    output: [rows],
    attribute: [intAttribute('axis', 1)],
  });
  model.graph.input.push(indexInput(LOGIT_ROWS_INPUT));
}

const summarise = (taps: readonly Tap[]): string =>
  taps.length <= 6 ? taps.join(', ') : `${taps.slice(0, 3).join(', ')} … ${taps.slice(-2).join(', ')}`;

function refOfOutput(index: GraphIndex, name: string): ValueRef {
  const p = index.producers.get(name);
  return p ? { node: p.node, slot: p.slot, name } : { node: -1, slot: 0, name };
}

/** Gives slot 3 of a Skip*LayerNormalization a name where the exporter left it out. */
function nameOf(index: GraphIndex, ref: ValueRef): string {
  if (ref.name !== '') return ref.name;
  const node = index.nodes[ref.node];
  if (!node || !isSkipNorm(node) || ref.slot !== 3) throw new GraphError('a tap points at a value without a name');
  while (node.output.length < 4) node.output.push('');
  node.output[3] ||= `forewarn.sum.${ref.node}`;
  return node.output[3] ?? '';
}

/** Removes nodes, initializers and inputs that no output depends on. */
function prune(model: OnnxModel): void {
  const graph = model.graph;
  const producers = new Map<string, OnnxNode>();
  for (const node of graph.node) for (const name of node.output) if (name !== '') producers.set(name, node);
  const nodes = new Set<OnnxNode>();
  const names = new Set<string>();
  const stack = graph.output.map((v) => v.name);
  for (let name = stack.pop(); name !== undefined; name = stack.pop()) {
    if (names.has(name)) continue;
    names.add(name);
    const node = producers.get(name);
    if (!node || nodes.has(node)) continue;
    nodes.add(node);
    stack.push(...nodeReads(node));
  }
  graph.node = graph.node.filter((n) => nodes.has(n));
  graph.initializer = graph.initializer.filter((t) => names.has(t.name ?? ''));
  graph.input = graph.input.filter((v) => names.has(v.name));
  // The runtime infers types and shapes again; stale ones would contradict padded outputs.
  graph.value_info = [];
}
