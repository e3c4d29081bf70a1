import path from 'node:path';
import { DataError } from '../errors.ts';
import { sha256File } from '../lib/content-hash.ts';
import type { ModelInfo, Tap } from '../types.ts';
import { listGraphs } from './graph/find-graph.ts';
import { dataTypeName } from './graph/onnx-schema.ts';
import { readModel, type ReadModel } from './graph/read-model.ts';
import { cpuObstacle } from './graph/supported-ops.ts';
import { readModelConfig } from './model-config.ts';

/** One tap of a graph: the value it stands for, and its type where the exporter wrote it. */
export interface TapInfo {
  readonly tap: Tap;
  readonly value: string;
  readonly dtype: string;
}

export interface InspectedModel {
  readonly info: ModelInfo;
  readonly taps: readonly TapInfo[];
  /** Each piece of state with its type and how it behaves. */
  readonly state: readonly { readonly input: string; readonly dtype: string; readonly kind: 'grows' | 'fixed' }[];
  /** Why the CPU provider cannot run it, with what could; null when nothing speaks against it. */
  readonly refused: string | null;
  readonly warnings: readonly string[];
}

/**
 * Reads graph and config, checks every weight's place and size, finds the residual stream, hashes the files. Loads no weights.
 * @param options.hash false leaves `info.hashes` empty (hashing reads every weight file once, about 1.5 GB/s)
 * @throws DataError saying what is wrong with the folder
 */
export async function inspectModel(
  folder: string,
  options: { readonly dtype?: string; readonly hash?: boolean } = {},
): Promise<InspectedModel> {
  const read = await readModel(folder, options);
  const hashes = options.hash === false ? {} : await hashFiles(read);
  const taps = [...read.taps].map(([tap, ref]) => ({
    tap,
    value: ref.name || `${read.index.nodes[ref.node]?.name || `node ${ref.node}`}#${ref.slot}`,
    dtype: read.index.types.has(ref.name) ? dataTypeName(read.index.types.get(ref.name)) : 'unstated',
  }));
  return {
    info: modelInfo(folder, read, hashes),
    taps,
    state: read.io.states.map((s) => ({
      input: s.input,
      dtype: dataTypeName(s.type),
      kind: s.lengthAxis === null ? ('fixed' as const) : ('grows' as const),
    })),
    refused: embedObstacle(read) ?? cpuObstacle(read.model.graph),
    warnings: read.external.warnings,
  };
}

/**
 * As {@link inspectModel}, for a folder that may hold no graph: config.json then says what a plan needs, and another
 * engine computes the states. `exporter` is 'none' there.
 * @throws DataError as {@link inspectModel}, or naming what config.json lacks
 */
export async function inspectForPlan(
  folder: string,
  options: { readonly dtype?: string; readonly hash?: boolean } = {},
): Promise<InspectedModel> {
  const config = path.extname(folder) === '.onnx' ? null : await readModelConfig(folder);
  if (config === null || (await listGraphs(folder)).length > 0) return inspectModel(folder, options);
  const { blocks, width } = config;
  if (blocks === null || width === null)
    throw new DataError(
      `${path.join(folder, 'config.json')}: expected num_hidden_layers and hidden_size, got ${blocks ?? 'none'} and ${width ?? 'none'}. Fetch the model's config.json again`,
    );
  const file = path.join(folder, 'config.json');
  return {
    info: {
      folder,
      blocks,
      width,
      vocabularySize: config.vocabularySize ?? 0,
      contextLimit: config.contextLimit,
      exporter: 'none',
      hashes: options.hash === false ? {} : { 'config.json': (await sha256File(file)).sha256 },
      pastState: 'none',
    },
    taps: [],
    state: [],
    refused: `${path.basename(folder)} has no ONNX graph: plan --export and extract --from work with it, running it here does not`,
    warnings: [],
  };
}

/** A decoder that starts at embeddings needs them from somewhere. */
export function embedObstacle({ io }: Pick<ReadModel, 'io'>): string | null {
  return io.ids !== null
    ? null
    : `${io.embeds?.name ?? 'inputs_embeds'}: expected an input input_ids, got a decoder that starts at embeddings, without an embed_tokens.onnx beside it. Put that file there, or export without exclude_embeds`;
}

export function modelInfo(folder: string, read: ReadModel, hashes: Readonly<Record<string, string>>): ModelInfo {
  const { config, io } = read;
  return {
    folder,
    blocks: read.stream.blocks.length,
    width: read.width,
    vocabularySize: config.vocabularySize ?? 0,
    contextLimit: config.contextLimit,
    exporter: exporterOf(read),
    hashes,
    pastState: io.states.length === 0 ? 'none' : io.states.every((s) => s.lengthAxis !== null) ? 'kv' : 'hybrid',
  };
}

function exporterOf({ model, index }: ReadModel): string {
  const producer = model.producer_name ?? '';
  if (/genai/.test(producer)) return 'genai';
  if (/mobius/.test(producer)) return 'mobius';
  const scopes = index.nodes.some((n) => n.metadata_props?.some((p) => p.key.startsWith('pkg.torch.onnx')));
  if (scopes) return 'dynamo';
  if (/optimum|pytorch|onnxruntime|onnx\.quantize|transformers/.test(producer)) return 'optimum';
  return producer || 'unknown';
}

/** sha256 of the graph and of every external file, by base name. */
async function hashFiles(read: ReadModel): Promise<Record<string, string>> {
  const hashes: Record<string, string> = {};
  hashes[path.basename(read.file)] = (await sha256File(read.file)).sha256;
  if (read.embeddings !== null) hashes[path.basename(read.embeddings)] = (await sha256File(read.embeddings)).sha256;
  for (const [location, file] of [...read.external.files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hashes[location] = (await sha256File(file)).sha256;
  }
  return hashes;
}
