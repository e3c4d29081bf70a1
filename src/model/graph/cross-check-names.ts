import { GraphError, type GraphIndex, type ValueRef } from './index-graph.ts';
import type { ResidualStream } from './trace-residual.ts';

/** `layers.3`, `/h.3/`, `blocks_3`, `block.3`: a block number as a path segment. */
const BLOCK_NUMBER = /(?:^|[/._])(?:layers?|h|blocks?)[./_](\d+)(?=$|[/._])/g;
const SCOPES = /name_scopes|namespace/;

/** What a value's name says it is, in the exporters whose names are known. */
const KNOWN: readonly { readonly pattern: RegExp; readonly tap: (n: number) => string }[] = [
  { pattern: /\/layers\.(\d+)\/(?:input|operator)_layernorm\/output_3$/, tap: (n) => `resid_post.${n - 1}` },
  { pattern: /\/layers\.(\d+)\/(?:pre_feedforward|ffn)_layernorm\/output_3$/, tap: (n) => `resid_mid.${n}` },
  { pattern: /\/layers\.(\d+)\/layer_scalar\/Mul\/output_0$/, tap: (n) => `resid_post.${n}` },
];

/**
 * Names never decide where the stream is, but where they speak they must agree.
 * @returns how many blocks were confirmed by names (0 for stripped graphs)
 * @throws GraphError naming the block and both opinions
 */
export function crossCheckNames(index: GraphIndex, stream: ResidualStream): number {
  let confirmed = 0;
  for (const [i, block] of stream.blocks.entries()) {
    checkKnown(block.mid, `resid_mid.${i}`);
    checkKnown(block.post, `resid_post.${i}`);
    const named = majority(index, block.nodes);
    if (named === null) continue;
    if (named !== i) {
      throw new GraphError(
        `structure and names disagree: the operators of block ${i} are mostly named as block ${named}`,
      );
    }
    confirmed++;
  }
  return confirmed;
}

function checkKnown(ref: ValueRef | null, tap: string): void {
  for (const { pattern, tap: expected } of ref ? KNOWN : []) {
    const found = pattern.exec(ref?.name ?? '');
    if (found && expected(Number(found[1])) !== tap) {
      throw new GraphError(
        `structure and names disagree: ${ref?.name} was traced as ${tap}, its name says ${expected(Number(found[1]))}`,
      );
    }
  }
}

/** The block number most operators of a branch carry in their names, weights or scopes; null when none does. */
function majority(index: GraphIndex, nodes: readonly number[]): number | null {
  const votes = new Map<number, number>();
  for (const n of nodes) {
    const node = index.nodes[n];
    if (!node) continue;
    const texts = [node.name ?? '', ...node.output, ...node.input.filter((name) => index.initializers.has(name))];
    for (const entry of node.metadata_props ?? []) if (SCOPES.test(entry.key)) texts.push(entry.value);
    const numbers = new Set(texts.flatMap((t) => [...t.matchAll(BLOCK_NUMBER)].map((m) => Number(m[1]))));
    if (numbers.size === 1) for (const k of numbers) votes.set(k, (votes.get(k) ?? 0) + 1);
  }
  let best: number | null = null;
  for (const [k, count] of votes) if (best === null || count > (votes.get(best) ?? 0)) best = k;
  return best;
}
