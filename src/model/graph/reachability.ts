import type { GraphIndex, ValueRef } from './index-graph.ts';

const nodeRank = (index: GraphIndex, node: number): number => index.rank[node] ?? -1;

/** Whether `to` depends on `from` (or is it). Outputs of one node count as the same: a norm that returns its sum beside it. */
export function reaches(index: GraphIndex, to: ValueRef, from: ValueRef): boolean {
  if (from.node < 0 ? to.node < 0 && to.name === from.name : to.node === from.node) return true;
  const floor = from.node < 0 ? -1 : nodeRank(index, from.node);
  const seen = new Set<number>();
  const stack = to.node < 0 ? [] : [to.node];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node) || nodeRank(index, node) < floor) continue;
    seen.add(node);
    if (node === from.node) return true;
    for (const name of index.reads[node] ?? []) {
      const producer = index.producers.get(name);
      if (producer) stack.push(producer.node);
      else if (from.node < 0 && name === from.name) return true;
    }
  }
  return false;
}

/** All nodes a value depends on, itself included. */
export function ancestors(index: GraphIndex, values: readonly ValueRef[]): Set<number> {
  const seen = new Set<number>();
  const stack = values.filter((v) => v.node >= 0).map((v) => v.node);
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    for (const name of index.reads[node] ?? []) {
      const producer = index.producers.get(name);
      if (producer) stack.push(producer.node);
    }
  }
  return seen;
}

/** Nodes that make the branches out of the stream: ancestors of `branches` that are not ancestors of `base`. */
export function deltaNodes(index: GraphIndex, branches: readonly ValueRef[], base: ValueRef | null): number[] {
  const known = base ? ancestors(index, [base]) : new Set<number>();
  return [...ancestors(index, branches)].filter((n) => !known.has(n));
}
