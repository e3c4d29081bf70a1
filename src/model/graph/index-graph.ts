import { BFLOAT16, type OnnxGraph, type OnnxNode, type OnnxTensor } from './onnx-schema.ts';

/** A value as the output `slot` of node `node`; node −1 is a graph input, named `name`. */
export interface ValueRef {
  readonly node: number;
  readonly slot: number;
  /** Empty for an output that the exporter did not name (slot 3 of a Skip*LayerNormalization). */
  readonly name: string;
}

export interface GraphIndex {
  readonly graph: OnnxGraph;
  readonly nodes: readonly OnnxNode[];
  /** Who makes a value. Graph inputs and initializers have no entry. */
  readonly producers: ReadonlyMap<string, { readonly node: number; readonly slot: number }>;
  readonly consumers: ReadonlyMap<string, readonly number[]>;
  readonly initializers: ReadonlyMap<string, OnnxTensor>;
  readonly inputs: ReadonlySet<string>;
  /** Values that depend on no graph input. */
  readonly constants: ReadonlySet<string>;
  /** Rank of each node in a topological order. */
  readonly rank: Int32Array;
  /** Names a node reads, with what its subgraphs capture from outside; "" removed. */
  readonly reads: readonly (readonly string[])[];
  /** Element type from value_info, inputs and outputs, where the exporter wrote it. */
  readonly types: ReadonlyMap<string, number>;
}

export class GraphError extends Error {}

/** @throws GraphError for a cycle, a value made twice, or a value nobody makes */
export function indexGraph(graph: OnnxGraph): GraphIndex {
  const nodes = graph.node;
  const producers = new Map<string, { node: number; slot: number }>();
  const consumers = new Map<string, number[]>();
  const initializers = new Map(graph.initializer.map((t) => [t.name ?? '', t]));
  // An initializer that is also listed as an input is a default value; the runtime never lets it be fed.
  const inputs = new Set(graph.input.map((v) => v.name).filter((name) => !initializers.has(name)));
  for (const [i, node] of nodes.entries()) {
    for (const [slot, name] of node.output.entries()) {
      if (name === '') continue;
      if (producers.has(name)) throw new GraphError(`the value ${name} is made by two nodes`);
      producers.set(name, { node: i, slot });
    }
  }
  const reads = nodes.map(nodeReads);
  for (const [i, names] of reads.entries()) {
    for (const name of names) {
      const list = consumers.get(name);
      if (list) list.push(i);
      else consumers.set(name, [i]);
    }
  }
  const { rank, constants } = sortNodes(nodes, reads, producers, initializers, inputs);
  const types = new Map<string, number>();
  for (const v of [...graph.value_info, ...graph.input, ...graph.output]) {
    const type = v.type?.tensor_type?.elem_type;
    if (type !== undefined && type !== 0) types.set(v.name, type);
  }
  return { graph, nodes, producers, consumers, initializers, inputs, constants, rank, reads, types };
}

/** Inputs of a node and everything its subgraphs (If, Loop, Scan) read from the graph around it. */
export function nodeReads(node: OnnxNode): string[] {
  const names = new Set(node.input);
  for (const a of node.attribute ?? []) {
    for (const g of a.g ? [a.g] : (a.graphs ?? [])) for (const name of freeNames(g)) names.add(name);
  }
  names.delete('');
  return [...names];
}

/** Names a subgraph uses but does not define. */
export function freeNames(graph: OnnxGraph): string[] {
  const own = new Set<string>(graph.initializer.map((t) => t.name ?? ''));
  for (const v of graph.input) own.add(v.name);
  for (const n of graph.node) for (const name of n.output) own.add(name);
  const free = new Set<string>();
  for (const n of graph.node) for (const name of nodeReads(n)) if (!own.has(name)) free.add(name);
  for (const v of graph.output) if (!own.has(v.name)) free.add(v.name);
  return [...free];
}

function sortNodes(
  nodes: readonly OnnxNode[],
  reads: readonly (readonly string[])[],
  producers: ReadonlyMap<string, { node: number }>,
  initializers: ReadonlyMap<string, OnnxTensor>,
  inputs: ReadonlySet<string>,
): { rank: Int32Array; constants: Set<string> } {
  const waiting = new Int32Array(nodes.length);
  const followers: number[][] = nodes.map(() => []);
  const constants = new Set(initializers.keys());
  for (const [i, names] of reads.entries()) {
    for (const name of names) {
      const producer = producers.get(name);
      if (producer) {
        waiting[i] = (waiting[i] ?? 0) + 1;
        followers[producer.node]?.push(i);
      } else if (!inputs.has(name) && !initializers.has(name)) {
        throw new GraphError(
          `node ${describeNode(nodes[i])} reads ${name}, which is no input, initializer or output of a node`,
        );
      }
    }
  }
  const ready = [...nodes.keys()].filter((i) => waiting[i] === 0);
  const rank = new Int32Array(nodes.length).fill(-1);
  let done = 0;
  for (let at = 0; at < ready.length; at++) {
    const i = ready[at];
    rank[i] = done++;
    const node = nodes[i];
    if ((reads[i] ?? []).every((name) => constants.has(name)) && !/^Random|^Multinomial/.test(node.op_type)) {
      for (const name of node.output) if (name !== '') constants.add(name);
    }
    for (const next of followers[i] ?? []) {
      waiting[next] = (waiting[next] ?? 0) - 1;
      if (waiting[next] === 0) ready.push(next);
    }
  }
  if (done < nodes.length) {
    const stuck = nodes[[...waiting.keys()].find((i) => (waiting[i] ?? 0) > 0) ?? 0];
    throw new GraphError(`the graph has a cycle through ${describeNode(stuck)}`);
  }
  return { rank, constants };
}

export function describeNode(node: OnnxNode | undefined): string {
  if (!node) return 'an input';
  const op = node.domain && node.domain !== 'ai.onnx' ? `${node.domain}:${node.op_type}` : node.op_type;
  const label = node.name || node.output[0];
  return label ? `${op} (${label})` : op;
}

export function refOf(index: GraphIndex, name: string): ValueRef {
  const p = index.producers.get(name);
  return p ? { node: p.node, slot: p.slot, name } : { node: -1, slot: 0, name };
}

/** Static dimensions of a weight, null when unknown (computed constants) or not a weight. */
export function weightDims(index: GraphIndex, name: string): readonly number[] | null {
  const tensor = index.initializers.get(name) ?? constantTensor(index, name);
  return tensor ? (tensor.dims ?? []).map((d) => (typeof d === 'number' ? d : d.toNumber())) : null;
}

/** The tensor of a Constant node. */
export function constantTensor(index: GraphIndex, name: string): OnnxTensor | null {
  const p = index.producers.get(name);
  const node = p && index.nodes[p.node];
  if (node?.op_type !== 'Constant') return null;
  return node.attribute?.find((a) => a.name === 'value')?.t ?? null;
}

export const isBfloat16 = (index: GraphIndex, name: string): boolean => index.types.get(name) === BFLOAT16;
