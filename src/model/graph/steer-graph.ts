import { GraphError } from './index-graph.ts';
import { FLOAT, toNumber, type OnnxModel, type OnnxNode, type OnnxValueInfo } from './onnx-schema.ts';
import type { ReadModel } from './read-model.ts';
import { isSkipNorm } from './residual-ops.ts';
import type { Tap } from '../../types.ts';

/**
 * Extra inputs, float32, of a graph that can be steered at one tap: x ← x + add + (x · read) · write at every token of the
 * pass. `read` = d and `write` = −d with |d| = 1 ablates the direction d; zeros change nothing.
 */
export const STEER = {
  /** [width] */
  add: 'forewarn.steer.add',
  /** [width, 1] */
  read: 'forewarn.steer.read',
  /** [width] */
  write: 'forewarn.steer.write',
} as const;

/** CastLike exists from here on; older graphs are cast to the type they state. */
const CAST_LIKE_OPSET = 15;

/**
 * Lets the residual stream be changed at a tap, for everything that reads it: later blocks, the head, and the tap itself.
 * A plain sum gets new nodes behind it that take over its name. A fused Skip*LayerNormalization makes sum and norm in one
 * node, so there the change goes into the term that it adds. `model` is changed in place, before `tapGraph`.
 * @throws GraphError for a tap that does not exist or is no output of a node
 */
export function steerGraph(
  model: OnnxModel,
  { index, taps, width }: Pick<ReadModel, 'index' | 'taps' | 'width'>,
  tap: Tap,
): void {
  const ref = taps.get(tap);
  const node = ref === undefined ? undefined : index.nodes[ref.node];
  if (ref === undefined || node === undefined) {
    throw new GraphError(`expected a tap of this model to steer at (${[...taps.keys()].join(', ')}), got ${tap}`);
  }
  const graph = model.graph;
  const added: OnnxNode[] = [];
  const op = (op_type: string, input: string[], name: string): string => {
    added.push({ op_type, name, input, output: [name] });
    return name;
  };
  const opset = toNumber(model.opset_import.find(({ domain }) => (domain ?? '') === '')?.version);
  const like = (input: string, value: string): string => {
    if (opset >= CAST_LIKE_OPSET) return op('CastLike', [input, value], `${input}.cast`);
    const type = index.types.get(value) ?? FLOAT;
    if (type === FLOAT) return input;
    throw new GraphError(
      `${tap}: expected float32 states in a graph of opset ${opset} (CastLike is of 15), got another type`,
    );
  };
  /** `target` + add + (state · read) · write */
  const steered = (target: string, state: string): string => {
    const along = op('MatMul', [state, like(STEER.read, state)], 'forewarn.steer.along');
    const back = op('Mul', [along, like(STEER.write, state)], 'forewarn.steer.back');
    const change = op('Add', [back, like(STEER.add, state)], 'forewarn.steer.change');
    return op('Add', [target, change], 'forewarn.steer.steered');
  };
  if (isSkipNorm(node) && ref.slot === 3) {
    // Bias of the sum: input 4 of SkipLayerNormalization (after gamma, beta), 3 of the simplified one.
    const bias = node.input[node.op_type === 'SkipLayerNormalization' ? 4 : 3] ?? '';
    const [first = '', second = ''] = node.input;
    let sum = op('Add', [first, second], 'forewarn.steer.sum');
    if (bias !== '') sum = op('Add', [sum, bias], 'forewarn.steer.biased');
    node.input = node.input.map((name, slot) => (slot === 1 ? steered(second, sum) : name));
  } else {
    const name = ref.name;
    const plain = `${name}.unsteered`;
    if (name === '') throw new GraphError(`${tap}: expected a named value, got an output without a name`);
    node.output = node.output.map((output) => (output === name ? plain : output));
    const result = steered(plain, plain);
    const last = added[added.length - 1];
    if (last) last.output = last.output.map((output) => (output === result ? name : output));
  }
  graph.node.push(...added);
  graph.input.push(vector(STEER.add, [width]), vector(STEER.read, [width, 1]), vector(STEER.write, [width]));
}

const vector = (name: string, dims: readonly number[]): OnnxValueInfo => ({
  name,
  type: { tensor_type: { elem_type: FLOAT, shape: { dim: dims.map((dim_value) => ({ dim_value })) } } },
});
