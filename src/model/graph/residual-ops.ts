import { refOf, type GraphIndex, type ValueRef } from './index-graph.ts';
import { DATA_TYPES, type OnnxNode } from './onnx-schema.ts';

/** Operators whose further inputs are shapes or indices, not data. */
const SHAPED: ReadonlySet<string> = new Set([
  'Reshape',
  'Slice',
  'Gather',
  'GatherND',
  'GatherElements',
  'Unsqueeze',
  'Squeeze',
  'Expand',
  'Split',
  'Tile',
  'Pad',
  'Transpose',
  'ReduceMean',
  'ReduceSum',
  'ReduceMax',
  'TopK',
]);

const NORMS: ReadonlySet<string> = new Set([
  'LayerNormalization',
  'SimplifiedLayerNormalization',
  'RMSNormalization',
  'SkipLayerNormalization',
  'SkipSimplifiedLayerNormalization',
]);

export const isNorm = (node: OnnxNode | undefined): boolean => node !== undefined && NORMS.has(node.op_type);

/** Output 0 is the norm, output 3 the sum of input, skip and bias. */
export const isSkipNorm = (node: OnnxNode | undefined): boolean =>
  node?.op_type === 'SkipLayerNormalization' || node?.op_type === 'SkipSimplifiedLayerNormalization';

/** Computed inputs of a node that carry data (weights, shapes and indices left out). */
export function dataOperands(index: GraphIndex, node: number): ValueRef[] {
  const n = index.nodes[node];
  if (!n) return [];
  const inputs = SHAPED.has(n.op_type) ? n.input.slice(0, 1) : n.op_type === 'Where' ? n.input.slice(1) : n.input;
  return inputs.filter((name) => name !== '' && !index.constants.has(name)).map((name) => refOf(index, name));
}

/** Cast and the like: the same numbers, up to precision. */
export function passThrough(index: GraphIndex, node: number): boolean {
  const op = index.nodes[node]?.op_type;
  return op === 'Cast' || op === 'Identity' || op === 'Dropout';
}

/** Mul or Div of one computed value by a constant. Quantisation scales do not count: they follow integer products. */
export function isScale(index: GraphIndex, node: number): boolean {
  const n = index.nodes[node];
  if (!n || (n.op_type !== 'Mul' && n.op_type !== 'Div')) return false;
  const computed = n.input.filter((name) => !index.constants.has(name));
  return computed.length === 1 && (n.op_type === 'Mul' || computed[0] === n.input[0]);
}

/** Back through casts and constant factors. */
export function stripScales(index: GraphIndex, value: ValueRef): ValueRef {
  let v = value;
  while (v.node >= 0 && (passThrough(index, v.node) || isScale(index, v.node))) {
    const operand = dataOperands(index, v.node)[0];
    if (!operand) break;
    v = operand;
  }
  return v;
}

/** The terms a value is the sum of (constants left out, each once); null if it is no sum of computed values. */
export function sumTerms(index: GraphIndex, value: ValueRef): ValueRef[] | null {
  const node = index.nodes[value.node];
  if (!node) return null;
  let inputs: readonly string[];
  if (isSkipNorm(node) && value.slot === 3) inputs = node.input.slice(0, 2);
  else if (node.op_type === 'Add' || node.op_type === 'Sum') inputs = node.input;
  else return null;
  const computed = inputs.filter((name) => name !== '' && !index.constants.has(name));
  if (computed.length < 2) return null;
  return [...new Set(computed)].map((name) => refOf(index, name));
}

/** Element type of a value where the graph says it; undefined otherwise. */
export const typeName = (index: GraphIndex, name: string): string | undefined =>
  DATA_TYPES[index.types.get(name) ?? 0]?.name;
