import type { GraphIndex } from './index-graph.ts';

/** Operators through which one token reads others. */
const MIXERS: ReadonlySet<string> = new Set([
  'GroupQueryAttention',
  'MultiHeadAttention',
  'Attention',
  'QAttention',
  'PackedAttention',
  'PagedAttention',
  'SparseAttention',
  'DecoderMaskedMultiHeadAttention',
  'DecoderMaskedSelfAttention',
  'GatedRelativePositionBias',
  'LinearAttention',
  'CausalConvWithState',
  'Conv',
  'Scan',
  'Loop',
]);

/** What may stand between the softmax of attention and its product with the values. */
const CARRIERS: ReadonlySet<string> = new Set([
  'Cast',
  'Slice',
  'Reshape',
  'Transpose',
  'Where',
  'Identity',
  'Dropout',
  'IsNaN',
  'Squeeze',
  'Unsqueeze',
]);

const PRODUCTS: ReadonlySet<string> = new Set(['MatMul', 'FusedMatMul', 'Einsum', 'Gemm', 'MatMulInteger']);

/**
 * A softmax is attention only if it weighs computed values: the router of a mixture of experts has one too, and its
 * product with the experts' outputs is a Mul or goes through TopK.
 */
export function isTokenMixer(index: GraphIndex, node: number): boolean {
  const op = index.nodes[node]?.op_type ?? '';
  if (MIXERS.has(op)) return true;
  if (op === 'If') return holdsMixer(index, node);
  return op === 'Softmax' && weighsValues(index, node);
}

function weighsValues(index: GraphIndex, softmax: number): boolean {
  const seen = new Set<number>();
  const stack = [softmax];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    for (const name of index.nodes[node]?.output ?? []) {
      for (const next of index.consumers.get(name) ?? []) {
        const reader = index.nodes[next];
        if (!reader) continue;
        if (CARRIERS.has(reader.op_type)) stack.push(next);
        else if (PRODUCTS.has(reader.op_type) && reader.input.filter((n) => !index.constants.has(n)).length > 1)
          return true;
      }
    }
  }
  return false;
}

function holdsMixer(index: GraphIndex, node: number): boolean {
  const graphs = (index.nodes[node]?.attribute ?? []).flatMap((a) => (a.g ? [a.g] : []));
  return graphs.some((g) => g.node.some((n) => MIXERS.has(n.op_type) || n.op_type === 'Softmax'));
}
