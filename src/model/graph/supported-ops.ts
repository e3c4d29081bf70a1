import { DataError } from '../../errors.ts';
import { attribute, BFLOAT16, toNumber, type OnnxGraph, type OnnxModel, type OnnxNode } from './onnx-schema.ts';

/** The newest IR version and operator set that onnxruntime 1.30 loads. */
const MAX_IR = 13;
const MAX_OPSET = 26;

/** Operator domains of onnxruntime and ONNX; others need a native library, which is never loaded. */
const DOMAINS: ReadonlySet<string> = new Set([
  '',
  'ai.onnx',
  'ai.onnx.ml',
  'com.microsoft',
  'com.ms.internal.nhwc',
  'com.microsoft.nchwc',
  'com.microsoft.experimental',
]);

/** @throws DataError for a model that no onnxruntime of this version can load */
export function refuseUnsupported(file: string, model: OnnxModel): void {
  const ir = toNumber(model.ir_version);
  if (ir > MAX_IR)
    throw new DataError(`${file}: expected an IR version up to ${MAX_IR}, got ${ir}. Export it with an older onnx.`);
  for (const set of model.opset_import) {
    const version = toNumber(set.version);
    if ((set.domain ?? '') === '' && version > MAX_OPSET) {
      throw new DataError(
        `${file}: expected an opset up to ${MAX_OPSET}, got ${version}. Export it with a lower opset.`,
      );
    }
  }
  const own = new Set(model.functions.map((f) => f.domain ?? ''));
  const strange = allNodes(model.graph).find((n) => !DOMAINS.has(n.domain ?? '') && !own.has(n.domain ?? ''));
  if (strange) {
    throw new DataError(
      `${file}: expected standard or com.microsoft operators, got ${strange.domain}:${strange.op_type}. Custom operators need a native library, which is not loaded.`,
    );
  }
}

export function allNodes(graph: OnnxGraph): OnnxNode[] {
  return graph.node.flatMap((n) => [
    n,
    ...(n.attribute ?? []).flatMap((a) => [...(a.g ? allNodes(a.g) : []), ...(a.graphs ?? []).flatMap(allNodes)]),
  ]);
}

/** Why the CPU provider cannot run a graph that can be traced, with the provider that could; null if nothing is known. */
export function cpuObstacle(graph: OnnxGraph): string | null {
  for (const node of allNodes(graph)) {
    if (node.op_type === 'GroupQueryAttention' && (node.input[14] || node.input[15])) {
      return 'GroupQueryAttention with q/k-norm inputs has no CPU kernel; CUDA or WebGPU can run it, or export it with -e cpu';
    }
    if ((node.op_type === 'MoE' || node.op_type === 'QMoE') && text(node, 'activation_type') === 'geglu') {
      return 'a mixture of experts with the activation geglu has no CPU kernel; CUDA can run it';
    }
  }
  const half = graph.initializer.find((t) => t.data_type === BFLOAT16);
  if (half)
    return `bfloat16 weights (${half.name}) have no CPU kernels; CUDA can run them, or export with float32 or int4`;
  return null;
}

/**
 * Dynamic quantisation takes one scale from all activations of a pass, so a token's values depend on the tokens computed
 * with it: chunks and shared prefixes would change them.
 */
export const isPassDependent = (graph: OnnxGraph): boolean =>
  allNodes(graph).some((n) => n.op_type === 'DynamicQuantizeLinear' || n.op_type === 'DynamicQuantizeMatMul');

function text(node: OnnxNode, name: string): string {
  const s = attribute(node, name)?.s;
  return s ? Buffer.from(s).toString('utf8') : '';
}
