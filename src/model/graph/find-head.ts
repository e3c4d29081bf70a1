import { GraphError, refOf, weightDims, type GraphIndex, type ValueRef } from './index-graph.ts';
import { dataOperands, isNorm, isSkipNorm, passThrough, sumTerms } from './residual-ops.ts';

/** What stands after the last block: final norm, row selection, head. */
export interface Head {
  /** The stream as the final norm reads it (the last sum; it may still be scaled on the way). */
  readonly stream: ValueRef;
  /** Output of the final norm; null where the graph ends without one. */
  readonly norm: ValueRef | null;
}

/**
 * Walks back from the logits. All paths from the last residual sum to the logits pass through that sum, so it is the first
 * single-value cut (dominator) that is a sum of computed values; the norm lies between it and the head.
 * @throws GraphError if there is no such sum
 */
export function findHead(index: GraphIndex, output: string): Head {
  const cuts: number[] = [];
  let frontier = new Set<number>();
  const start = refOf(index, output);
  if (start.node >= 0) frontier.add(start.node);
  while (frontier.size > 0) {
    let node = -1;
    for (const n of frontier) if (node < 0 || (index.rank[n] ?? 0) > (index.rank[node] ?? 0)) node = n;
    if (frontier.size === 1) {
      cuts.push(node);
      const n = index.nodes[node];
      const slot = isSkipNorm(n) ? 3 : 0;
      const value: ValueRef = { node, slot, name: n?.output[slot] ?? '' };
      const terms = sumTerms(index, value);
      if (terms && terms.length > 1) return { stream: value, norm: findNorm(index, cuts) };
    }
    frontier = new Set(frontier);
    frontier.delete(node);
    for (const operand of dataOperands(index, node)) if (operand.node >= 0) frontier.add(operand.node);
  }
  throw new GraphError(
    `expected additions to a residual stream before the output ${output}, got none: this is not a decoder-only language model`,
  );
}

/** Operators with which the head begins: row selection, quantisation and the product with the vocabulary. */
const HEAD_OPS: ReadonlySet<string> = new Set([
  'MatMul',
  'Gemm',
  'FusedMatMul',
  'MatMulNBits',
  'MatMulBnb4',
  'MatMulInteger',
  'DynamicQuantizeLinear',
  'DynamicQuantizeMatMul',
  'QuantizeLinear',
  'Gather',
  'GatherND',
  'Slice',
  'Reshape',
  'Transpose',
  'Flatten',
  'Squeeze',
]);

/**
 * `cuts`: single-value cuts from the output back to the last sum. A norm operator is the norm. A decomposed one ends with
 * the product by its weight (a vector), which may be followed by a bias; what comes after (a scaling of the logits) is not it.
 */
function findNorm(index: GraphIndex, cuts: readonly number[]): ValueRef | null {
  const forward = [...cuts].reverse();
  const first = forward[0];
  const out = (node: number): ValueRef => ({ node, slot: 0, name: index.nodes[node]?.output[0] ?? '' });
  if (isSkipNorm(index.nodes[first])) return out(first);
  let last: number | null = null;
  let weighted = false;
  for (const node of forward.slice(1)) {
    const n = index.nodes[node];
    if (!n || HEAD_OPS.has(n.op_type)) break;
    if (isNorm(n)) return out(node);
    const vector = n.input.some((name) => index.constants.has(name) && isVector(index, name));
    if (weighted && !(n.op_type === 'Add' && vector)) break;
    if (n.op_type === 'Mul' && vector) weighted = true;
    if (!passThrough(index, node)) last = node;
  }
  return last === null ? null : out(last);
}

/** A weight with more than one element; computed constants (1 + w) count, since no scalar is computed there. */
function isVector(index: GraphIndex, name: string): boolean {
  const dims = weightDims(index, name);
  return dims === null || dims.some((d) => d > 1);
}
