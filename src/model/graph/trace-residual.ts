import { findHead, type Head } from './find-head.ts';
import { GraphError, describeNode, refOf, type GraphIndex, type ValueRef } from './index-graph.ts';
import { dataOperands, isScale, isSkipNorm, passThrough, stripScales, sumTerms } from './residual-ops.ts';
import { deltaNodes, reaches } from './reachability.ts';
import { isTokenMixer } from './token-mixers.ts';

/**
 * Finds the residual stream by structure alone; names are never read here.
 *
 * A pre-norm decoder adds branches to one running value: x ← x + f(x). Walking back from the final norm, each sum has one
 * term that all others depend on, and that term is the stream before the sum. A sum whose branch mixes tokens (attention,
 * convolution, recurrence) starts a block. Reference: onnx-graphs notes of the project; tested on every exporter we could run.
 */
export interface ResidualStream {
  readonly embed: ValueRef;
  readonly blocks: readonly ResidualBlock[];
  readonly finalNorm: ValueRef | null;
}

export interface ResidualBlock {
  /** After attention, before the MLP; null where both are added in one step (parallel blocks). */
  readonly mid: ValueRef | null;
  readonly post: ValueRef;
  /** Nodes of the branches added in this block: for names, and to see which state it uses. */
  readonly nodes: readonly number[];
}

interface Step {
  readonly value: ValueRef;
  readonly branch: readonly number[];
  readonly mixes: boolean;
}

/** @throws GraphError when the graph has no single residual stream, saying why */
export function traceResidual(index: GraphIndex, output: string): ResidualStream {
  const head = findHead(index, output);
  const steps: Step[] = [];
  let at: ValueRef | null = head.stream;
  let embed: ValueRef = head.stream;
  while (at) {
    embed = at;
    const before: ValueRef | null = previous(index, at, steps);
    if (!before) break;
    at = before;
  }
  steps.reverse();
  embed = settle(index, embed, head);
  checkStart(index, embed, steps.length);
  return { embed, blocks: groupSteps(index, steps, head), finalNorm: head.norm };
}

/** The stream before the sum that made `at` (which may lie behind scales), recording the step; null at its start. */
function previous(index: GraphIndex, at: ValueRef, steps: Step[]): ValueRef | null {
  const sum = stripScales(index, at);
  const terms = sumTerms(index, sum);
  if (!terms) return null;
  const only = terms[0];
  if (only && terms.length === 1) return only; // SkipLN(h, h): the sum is 2h, the stream is h
  const found = separate(index, terms);
  if (!found) return null;
  const branch = deltaNodes(index, found.others, found.base);
  steps.push({ value: sum, branch, mixes: branch.some((n) => isTokenMixer(index, n)) });
  return found.base;
}

/**
 * Splits the terms of a sum into the stream and its branches: the one term that is an ancestor of all others. Nested sums
 * are opened until there is one (parallel attention and MLP). null: no term qualifies.
 */
function separate(
  index: GraphIndex,
  terms: readonly ValueRef[],
): { readonly base: ValueRef; readonly others: readonly ValueRef[] } | null {
  let open = [...terms];
  for (;;) {
    for (const candidate of open) {
      const base = stripScales(index, candidate);
      const others = open.filter((t) => t !== candidate);
      if (others.every((t) => reaches(index, t, base))) return { base: candidate, others };
    }
    const nested = open.findIndex((t) => !isSkipSum(index, stripScales(index, t)) && sumTerms(index, t) !== null);
    if (nested < 0) return null;
    const inner = sumTerms(index, open[nested]) ?? [];
    open = [...open.slice(0, nested), ...inner, ...open.slice(nested + 1)];
  }
}

const isSkipSum = (index: GraphIndex, v: ValueRef): boolean => v.node >= 0 && isSkipNorm(index.nodes[v.node]);

/**
 * The value that later nodes read as the stream: over trailing multiplications by a constant (Gemma's embedding scale and
 * layer_scalar) when something else than the next sum reads the product. A product that only a sum reads belongs to that sum.
 */
function settle(index: GraphIndex, start: ValueRef, head: Head): ValueRef {
  let value = start;
  for (let v = start; v.name !== '';) {
    const readers = index.consumers.get(v.name) ?? [];
    const next = readers.length === 1 ? readers[0] : -1;
    if (next < 0 || !(isScale(index, next) || passThrough(index, next))) break;
    v = refOf(index, index.nodes[next]?.output[0] ?? '');
    if (!isScale(index, next)) continue;
    const after = index.consumers.get(v.name) ?? [];
    if (v.name === head.stream.name || after.some((n) => sumTerms(index, sumRef(index, n)) === null)) value = v;
  }
  return value;
}

const sumRef = (index: GraphIndex, node: number): ValueRef => ({
  node,
  slot: isSkipNorm(index.nodes[node]) ? 3 : 0,
  name: index.nodes[node]?.output[0] ?? '',
});

function groupSteps(index: GraphIndex, steps: readonly Step[], head: Head): ResidualBlock[] {
  const blocks: Step[][] = [];
  for (const step of steps) {
    if (step.mixes) blocks.push([step]);
    else if (blocks.length === 0)
      throw new GraphError(
        `expected the first addition to the residual stream to come from attention, got one without it at ${describeNode(index.nodes[step.value.node])}`,
      );
    else blocks[blocks.length - 1]?.push(step);
  }
  return blocks.map((block) => {
    const first = block[0];
    const last = block[block.length - 1];
    return {
      mid: block.length > 1 ? settle(index, first.value, head) : null,
      post: settle(index, last.value, head),
      nodes: block.flatMap((s) => s.branch),
    };
  });
}

/** The stream has to start before any token mixing: otherwise there are several streams, and what was found is their merge. */
function checkStart(index: GraphIndex, embed: ValueRef, steps: number): void {
  const before = embed.node < 0 ? [] : deltaNodes(index, [embed], null);
  const mixer = before.find((n) => isTokenMixer(index, n));
  if (mixer === undefined) return;
  const where = describeNode(index.nodes[embed.node]);
  throw new GraphError(
    `expected one residual stream (x + f(x)), got several: ${steps} additions were found, and the value before them, made by ${where} from ` +
      `${dataOperands(index, embed.node).length} inputs of which none feeds the others, already holds attention ` +
      `(${describeNode(index.nodes[mixer])}). Models with parallel streams (hyper-connections, AltUp) are not supported.`,
  );
}
