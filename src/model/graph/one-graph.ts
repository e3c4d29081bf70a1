import { freeNames, GraphError } from './index-graph.ts';
import { attribute, type OnnxGraph, type OnnxModel, toNumber } from './onnx-schema.ts';

/** Input of optimum's merged decoders (exports before 2024): whether there is a cache. */
const BRANCH_INPUT = 'use_cache_branch';

/**
 * Puts the branch with a cache of a legacy merged decoder in the place of its `If`, and drops the switch: an empty cache
 * then means the start of a text. Exports of transformers models traced with one token may hold a mask that only fits one;
 * the check that a token does not see later ones (live-taps.ts) finds them. `model` is changed in place.
 * @throws GraphError when the switch is there but does not choose between two whole decoders
 */
export function flattenBranches(model: OnnxModel): void {
  const { graph } = model;
  if (!graph.input.some(({ name }) => name === BRANCH_INPUT)) return;
  const [node, ...more] = graph.node.filter(({ op_type, input }) => op_type === 'If' && input[0] === BRANCH_INPUT);
  const branch = node && attribute(node, 'then_branch')?.g;
  if (!node || !branch || more.length > 0 || branch.output.length !== node.output.length)
    throw new GraphError(
      `input ${BRANCH_INPUT}: expected one If that chooses between two whole decoders, got ${node ? more.length + 1 : 0}. Export the model again with a current optimum`,
    );
  const outer = new Set(
    graph.node.flatMap(({ output }) => output).concat(graph.initializer.map(({ name }) => name ?? '')),
  );
  const inner = prefixClashes(branch, outer, 'with_past.');
  graph.node = [
    ...graph.node.filter((other) => other !== node),
    ...inner.node,
    ...node.output.map((name, k) => ({
      op_type: 'Identity',
      name: `forewarn.branch.${k}`,
      input: [inner.output[k].name],
      output: [name],
    })),
  ];
  graph.initializer.push(...inner.initializer);
  graph.value_info.push(...inner.value_info);
  graph.input = graph.input.filter(({ name }) => name !== BRANCH_INPUT);
}

/**
 * Puts an `embed_tokens` graph before a decoder that starts at its outputs (`inputs_embeds`, and `per_layer_inputs` of
 * Gemma 3n and 4), so that the whole takes ids. `decoder` is changed in place.
 * @throws GraphError when the embedding graph wants more than ids, gives less than the decoder needs, or other opsets
 */
export function joinEmbeddings(decoder: OnnxModel, embeddings: OnnxModel, file: string): void {
  const { graph } = decoder;
  const weights = new Set(embeddings.graph.initializer.map(({ name }) => name));
  const inputs = embeddings.graph.input.filter(({ name }) => !weights.has(name));
  if (inputs.length !== 1 || inputs[0].name !== 'input_ids')
    throw new GraphError(
      `${file}: expected an embedding graph that reads input_ids alone, got ${inputs.map(({ name }) => name).join(', ') || 'no input'}`,
    );
  const needed = new Set(graph.input.map(({ name }) => name));
  const given = embeddings.graph.output.filter(({ name }) => needed.has(name));
  if (!given.some(({ name }) => name === 'inputs_embeds'))
    throw new GraphError(
      `${file}: expected the output inputs_embeds, got ${embeddings.graph.output.map(({ name }) => name).join(', ')}`,
    );
  const versions = new Map(decoder.opset_import.map(({ domain = '', version }) => [domain, toNumber(version)]));
  for (const { domain = '', version } of embeddings.opset_import) {
    const own = versions.get(domain);
    if (own === undefined) decoder.opset_import.push({ domain, ...(version === undefined ? {} : { version }) });
    else if (own !== toNumber(version))
      throw new GraphError(
        `${file}: expected opset ${own} of ${domain || 'onnx'}, as in the decoder, got ${toNumber(version)}. Export both with one exporter`,
      );
  }
  const taken = new Set(
    graph.node.flatMap(({ output }) => output).concat(graph.initializer.map(({ name }) => name ?? '')),
  );
  const joined = prefixClashes(embeddings.graph, taken, 'embed_tokens.');
  graph.node = [...joined.node, ...graph.node];
  graph.initializer.push(...joined.initializer);
  graph.value_info.push(...joined.value_info, ...given);
  const names = new Set(given.map(({ name }) => name));
  graph.input = [inputs[0], ...graph.input.filter(({ name }) => !names.has(name))];
}

/** The graph with every own name that is taken elsewhere prefixed; names it takes from outside stay. */
function prefixClashes(graph: OnnxGraph, taken: ReadonlySet<string>, prefix: string): OnnxGraph {
  const own = new Set(
    graph.node.flatMap(({ output }) => output).concat(graph.initializer.map(({ name }) => name ?? '')),
  );
  for (const name of freeNames(graph)) own.delete(name);
  const renamed = (name: string): string => (name !== '' && own.has(name) && taken.has(name) ? prefix + name : name);
  const visit = (part: OnnxGraph): OnnxGraph => ({
    ...part,
    node: part.node.map((node) => ({
      ...node,
      input: node.input.map(renamed),
      output: node.output.map(renamed),
      ...(node.attribute === undefined
        ? {}
        : {
            attribute: node.attribute.map((item) => ({
              ...item,
              // Absent fields of a decoded message read as null or an empty list.
              ...(item.g ? { g: visit(item.g) } : {}),
              ...(item.graphs?.length ? { graphs: item.graphs.map(visit) } : {}),
            })),
          }),
    })),
    initializer: part.initializer.map((tensor) => ({ ...tensor, name: renamed(tensor.name ?? '') })),
    output: part.output.map((value) => ({ ...value, name: renamed(value.name) })),
    value_info: part.value_info.map((value) => ({ ...value, name: renamed(value.name) })),
  });
  return visit(graph);
}
