import { GraphError, refOf, weightDims, type GraphIndex, type ValueRef } from './index-graph.ts';
import { toNumber, type OnnxValueInfo } from './onnx-schema.ts';

/** Some exporters return hidden states themselves, as outputs `hidden_states.k` (mobius: the output of block k). */
const DECLARED = /^hidden_states\.\d+$/;

/** Hidden states the graph returns by itself, offered as taps under their own names. */
export function declaredTaps(index: GraphIndex): ReadonlyMap<string, ValueRef> {
  const names = index.graph.output.map((v) => v.name).filter((name) => DECLARED.test(name));
  return new Map(names.map((name) => [name, refOf(index, name)]));
}

/** Width of the embedding table that the ids look up; null when there is none with a known shape. */
export function embeddingWidth(index: GraphIndex, ids: string): number | null {
  for (const i of index.consumers.get(ids) ?? []) {
    const node = index.nodes[i];
    const dims = node?.op_type === 'Gather' ? weightDims(index, node.input[0] ?? '') : null;
    if (dims?.length === 2) return dims[1] ?? null;
  }
  return null;
}

/** @throws GraphError when the graph declares another width for a tap than the model has: the runtime only warns of it */
export function checkWidths(index: GraphIndex, taps: ReadonlyMap<string, ValueRef>, width: number): void {
  const names = new Set([...taps.values()].map((ref) => ref.name));
  for (const v of [...index.graph.output, ...index.graph.value_info]) {
    const declared = names.has(v.name) ? lastDimension(v) : null;
    if (declared !== null && declared !== width) {
      throw new GraphError(`${v.name}: expected a width of ${width}, got a declared one of ${declared}`);
    }
  }
}

function lastDimension(v: OnnxValueInfo): number | null {
  const last = v.type?.tensor_type?.shape?.dim.at(-1);
  const value = toNumber(last?.dim_value);
  return last !== undefined && !last.dim_param && value > 0 ? value : null;
}
