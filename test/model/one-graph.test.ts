import { mkdirSync, mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeModel, encodeModel, FLOAT, type OnnxModel } from '../../src/model/graph/onnx-schema.ts';
import { inspectModel } from '../../src/model/inspect-model.ts';
import { everyRow, replayHere } from '../shared/onnx/models.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

const root = mkdtempSync(path.join(tmpdir(), 'forewarn-one-graph-'));
const TAPS = ['embed', 'resid_mid.0', 'resid_post.1', 'resid_post.2', 'final_norm'];
const ids = Int32Array.from({ length: 23 }, (_, i) => (i * 37) % 250);
const states = (folder: string): Promise<Float32Array[]> =>
  replayHere(folder, TAPS, [everyRow(ids), everyRow(ids.slice(0, 11))], { chunk: 7, sharing: true, threads: 1 });

/** A folder with the tiny model changed, under another file name if wanted. */
async function changed(
  name: string,
  change: (model: OnnxModel, folder: string) => void,
  file = 'model.onnx',
): Promise<string> {
  const folder = path.join(root, name);
  mkdirSync(folder);
  await writeTinyModel(folder, 4);
  const model = decodeModel(readFileSync(path.join(folder, 'model.onnx')));
  change(model, folder);
  unlinkSync(path.join(folder, 'model.onnx'));
  writeFileSync(path.join(folder, file), encodeModel(model));
  return folder;
}

/** As optimum merged its decoders: two branches with shared weights outside, chosen by a switch. */
function merge(model: OnnxModel): void {
  const { graph } = model;
  const branch = (suffix: string) => ({
    name: suffix,
    // Both branches name their nodes and values alike; the small tensors stay inside.
    node: structuredClone(graph.node),
    initializer: structuredClone(graph.initializer.filter(({ name }) => name?.startsWith('c.'))),
    input: [],
    output: graph.output.map((value) => structuredClone(value)),
    value_info: [],
  });
  const attribute = [
    { name: 'then_branch', type: 5, g: branch('with_past') },
    { name: 'else_branch', type: 5, g: branch('no_past') },
  ];
  const output = graph.output.map(({ name }) => name);
  graph.node = [{ op_type: 'If', name: 'optimum::if', input: ['use_cache_branch'], output, attribute }];
  graph.initializer = graph.initializer.filter(({ name }) => !name?.startsWith('c.'));
  graph.input.push({
    name: 'use_cache_branch',
    type: { tensor_type: { elem_type: 9, shape: { dim: [{ dim_value: 1 }] } } },
  });
}

/** Takes the embedding out of the decoder. The graph that holds it clashes with the decoder in the name of a value. */
function split(model: OnnxModel, folder: string, more: readonly string[] = []): void {
  const { graph } = model;
  const gather = graph.node.find(({ name }) => name === '/model/embed_tokens/Gather');
  if (!gather) throw new Error('no embedding');
  const weight = graph.initializer.filter(({ name }) => name === 'embed.weight');
  const [idsInput, ...others] = graph.input;
  const embeds = {
    name: 'inputs_embeds',
    type: {
      tensor_type: { elem_type: FLOAT, shape: { dim: [{ dim_param: 'b' }, { dim_param: 's' }, { dim_value: 32 }] } },
    },
  };
  const embeddings: OnnxModel = {
    ...model,
    graph: {
      name: 'embed_tokens',
      node: [
        { ...gather, output: ['/model/layers.0/Add'] },
        { op_type: 'Identity', name: 'out', input: ['/model/layers.0/Add'], output: ['inputs_embeds'] },
      ],
      initializer: weight,
      input: [idsInput, ...more.map((name) => ({ ...idsInput, name }))],
      output: [embeds],
      value_info: [],
    },
  };
  writeFileSync(path.join(folder, 'embed_tokens.onnx'), encodeModel(embeddings));
  graph.node = graph.node.filter((node) => node !== gather);
  for (const node of graph.node)
    node.input = node.input.map((name) => (name === '/model/embed_tokens/Gather' ? 'inputs_embeds' : name));
  graph.initializer = graph.initializer.filter(({ name }) => name !== 'embed.weight');
  graph.input = [embeds, ...others];
}

describe('a model that its exporter split', () => {
  let whole: Float32Array[];
  beforeAll(async () => {
    whole = await states(await changed('whole', () => {}));
  });
  afterAll(() => rmSync(root, { recursive: true }));

  it('is read from the branch with a cache of a legacy merged decoder: the same states, bit for bit', async () => {
    const folder = await changed('merged', merge, 'decoder_model_merged.onnx');
    expect(await states(folder)).toEqual(whole);
  });

  it('is read from embed_tokens and decoder files as one graph: the same states, both files hashed', async () => {
    const folder = await changed('split', split, 'decoder_model_merged.onnx');
    expect(await states(folder)).toEqual(whole);
    const { info, refused } = await inspectModel(folder);
    expect(Object.keys(info.hashes).sort()).toEqual(['decoder_model_merged.onnx', 'embed_tokens.onnx']);
    expect(refused).toBeNull();
  });

  it('is refused with a line that says what is missing when the embeddings are not there', async () => {
    const folder = await changed('no-embeddings', split);
    unlinkSync(path.join(folder, 'embed_tokens.onnx'));
    expect((await inspectModel(folder)).refused).toMatch(
      /^inputs_embeds: expected an input input_ids, .* without an embed_tokens\.onnx/,
    );
  });

  it('is refused when its embedding graph wants more than text, or its switch chooses something else', async () => {
    const images = await changed('images', (model, folder) => split(model, folder, ['image_features']));
    await expect(inspectModel(images)).rejects.toThrow(
      /^model\.onnx: embed_tokens\.onnx: expected an embedding graph that reads input_ids alone, got input_ids, image_features/,
    );
    const none = await changed('no-if', (model) => {
      merge(model);
      model.graph.node[0].op_type = 'Loop';
    });
    await expect(inspectModel(none)).rejects.toThrow(/^model\.onnx: input use_cache_branch: expected one If/);
  });
});
