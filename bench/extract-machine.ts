import { attribute, toNumber } from '../src/model/graph/onnx-schema.ts';
import { weightDims } from '../src/model/graph/index-graph.ts';
import { readModel } from '../src/model/graph/read-model.ts';
import { tapGraph } from '../src/model/graph/tap-graph.ts';
import { createGemm } from '../src/model/gemm.ts';
import type { Tap } from '../src/types.ts';

const SIZE = 1024;
const TRIES = 8;

/** Multiply-adds per second of a 1024³ float32 product in onnxruntime, the best of several. */
export async function gemmRate(threads: number): Promise<number> {
  const { gemm, close } = await createGemm({ threads });
  const a = Float32Array.from({ length: SIZE * SIZE }, (_, i) => (i % 7) - 3);
  let best = Infinity;
  for (let k = 0; k < TRIES; k += 1) {
    const started = performance.now();
    await gemm(a, a, SIZE, SIZE, SIZE);
    best = Math.min(best, (performance.now() - started) / 1000);
  }
  await close();
  return SIZE ** 3 / best;
}

/** Multiply-adds per token of the products with weights in the graph that is left for these taps; attention is not counted. */
export async function multiplicationsPerToken(folder: string, taps: readonly Tap[]): Promise<number> {
  const read = await readModel(folder);
  const { model } = tapGraph(read.model, read.index, read, { taps, logits: false });
  let sum = 0;
  for (const node of model.graph.node) {
    if (node.op_type === 'MatMulNBits') {
      sum += (toNumber(attribute(node, 'K')?.i) ?? 0) * (toNumber(attribute(node, 'N')?.i) ?? 0);
    } else if (node.op_type === 'MatMul' || node.op_type === 'Gemm') {
      const name = node.input[1] ?? '';
      // Weights stored in half precision stand behind a Cast.
      const producer = read.index.producers.get(name);
      const stored = producer === undefined ? name : (read.index.nodes[producer.node]?.input[0] ?? '');
      const dims = weightDims(read.index, name) ?? weightDims(read.index, stored);
      if (dims?.length === 2) sum += dims[0] * dims[1];
    }
  }
  return sum;
}
