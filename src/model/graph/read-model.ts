import { open, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { DataError } from '../../errors.ts';
import type { Tap } from '../../types.ts';
import { NO_CONFIG, readModelConfig, type ModelConfig } from '../model-config.ts';
import { crossCheckNames } from './cross-check-names.ts';
import { checkWidths, declaredTaps, embeddingWidth } from './declared-taps.ts';
import { checkTensors, LFS_POINTER, type ExternalFiles } from './external-data.ts';
import { findEmbeddings, findGraphFile } from './find-graph.ts';
import { readGraphIo, type GraphIo } from './graph-io.ts';
import { GraphError, indexGraph, type GraphIndex, type ValueRef } from './index-graph.ts';
import { flattenBranches, joinEmbeddings } from './one-graph.ts';
import { decodeModel, type OnnxModel } from './onnx-schema.ts';
import { refuseUnsupported } from './supported-ops.ts';
import { tapValues } from './tap-graph.ts';
import { traceResidual, type ResidualStream } from './trace-residual.ts';

/** A decoder graph, read and understood; no weights were loaded. */
export interface ReadModel {
  /** The .onnx file. */
  readonly file: string;
  /** The file its embeddings were taken from, where that is another one. */
  readonly embeddings: string | null;
  readonly model: OnnxModel;
  readonly config: ModelConfig;
  readonly index: GraphIndex;
  readonly io: GraphIo;
  readonly stream: ResidualStream;
  /** Everything that can be read, in the order of the forward pass. */
  readonly taps: ReadonlyMap<Tap, ValueRef>;
  readonly width: number;
  readonly external: ExternalFiles;
}

/** Graph files larger than this hold their weights inside; protobuf itself ends at 2 GiB. */
const MAX_GRAPH_BYTES = 2 ** 31 - 1;

/**
 * @param folder a model folder (`model.onnx` or `onnx/model….onnx` in it), or a .onnx file
 * @param options.dtype picks `model_<dtype>.onnx` where a folder has several
 * @throws DataError naming the file, what was expected, what was found and what to do
 */
export async function readModel(folder: string, options: { readonly dtype?: string } = {}): Promise<ReadModel> {
  const file = await findGraphFile(folder, options.dtype);
  const name = path.basename(file);
  const model = decode(name, await readGraphBytes(file));
  refuseUnsupported(name, model);
  const embeddings = await completeGraph(file, model);
  const found = await readModelConfig(path.dirname(file));
  const config = found ?? NO_CONFIG;
  const external = await checkTensors(file, model);
  try {
    const index = indexGraph(model.graph);
    const io = readGraphIo(index, config);
    const declared = declaredTaps(index);
    // Without a config.json the number of blocks cannot be checked, so only what the graph itself declares is offered.
    const stream = found === null ? undeclared(index, declared) : traceResidual(index, io.logits);
    if (found !== null) {
      checkBlocks(stream, config);
      crossCheckNames(index, stream);
    }
    const taps = new Map([...(found === null ? [] : tapValues(stream)), ...declared]);
    const width = config.width ?? (io.ids ? embeddingWidth(index, io.ids.name) : null);
    if (width === null) throw new GraphError('config.json: expected hidden_size, got none');
    checkWidths(index, taps, width);
    return { file, embeddings, model, config, index, io, stream, taps, width, external };
  } catch (error) {
    if (error instanceof GraphError) throw new DataError(`${name}: ${error.message}`, { cause: error });
    throw error;
  }
}

/** Makes one graph from ids to logits of what exporters split. Returns the file of the embeddings, where there is one. */
async function completeGraph(file: string, model: OnnxModel): Promise<string | null> {
  const has = (name: string): boolean => model.graph.input.some((value) => value.name === name);
  try {
    flattenBranches(model);
    if (has('input_ids') || !has('inputs_embeds')) return null;
    const embeddings = await findEmbeddings(file);
    if (embeddings === null) return null;
    const name = path.basename(embeddings);
    const first = decode(name, await readGraphBytes(embeddings));
    refuseUnsupported(name, first);
    joinEmbeddings(model, first, name);
    return embeddings;
  } catch (error) {
    if (error instanceof GraphError) throw new DataError(`${path.basename(file)}: ${error.message}`, { cause: error });
    throw error;
  }
}

/** A stream of no blocks that starts at the first hidden state the graph declares. */
function undeclared(index: GraphIndex, declared: ReadonlyMap<Tap, ValueRef>): ResidualStream {
  const [first] = declared.values();
  if (!first) {
    const outputs = index.graph.output.map((v) => v.name).join(', ');
    throw new GraphError(
      `expected a config.json beside it (to know how many blocks to find) or outputs hidden_states.k, got no config.json and the outputs: ${outputs}`,
    );
  }
  return { embed: first, blocks: [], finalNorm: null };
}

function checkBlocks(stream: ResidualStream, config: ModelConfig): void {
  if (config.blocks === null) throw new GraphError('config.json: expected num_hidden_layers, got none');
  if (stream.blocks.length !== config.blocks) {
    throw new GraphError(
      `expected ${config.blocks} blocks (num_hidden_layers of config.json), found ${stream.blocks.length} in the graph`,
    );
  }
}

async function readGraphBytes(file: string): Promise<Buffer> {
  const name = path.basename(file);
  const info = await stat(file);
  if (!info.isFile())
    throw new DataError(`${name}: expected a file, got ${info.isDirectory() ? 'a directory' : 'a special file'}.`);
  if (info.size === 0) throw new DataError(`${name}: expected an ONNX model, got 0 bytes. Download it again.`);
  const handle = await open(file);
  let start: string;
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(512), 0, 512, 0);
    start = buffer.subarray(0, bytesRead).toString('latin1');
  } finally {
    await handle.close();
  }
  if (start.startsWith(LFS_POINTER)) {
    throw new DataError(`${name}: expected an ONNX model, got a Git LFS pointer. Run git lfs pull.`);
  }
  if (/^\s*<(!doctype|html|\?xml|head|body)/i.test(start)) {
    throw new DataError(
      `${name}: expected an ONNX model, got an HTML page. Download it again; the link may need a login.`,
    );
  }
  if (/^.{8}\{\s*"/s.test(start))
    throw new DataError(`${name}: expected an ONNX model, got a safetensors file. Export the model to ONNX.`);
  if (start.startsWith('PK'))
    throw new DataError(
      `${name}: expected an ONNX model, got a zip archive (a PyTorch checkpoint?). Export the model to ONNX.`,
    );
  if (info.size > MAX_GRAPH_BYTES) {
    throw new DataError(
      `${name}: expected at most 2 GiB (the limit of protobuf), got ${info.size} bytes. Export it with external data.`,
    );
  }
  return readFile(file);
}

function decode(name: string, bytes: Uint8Array): OnnxModel {
  let model: OnnxModel;
  try {
    model = decodeModel(bytes);
  } catch (error) {
    const message = (error as Error).message;
    const why = /index out of range/.test(message)
      ? `an early end of file after ${bytes.length} bytes, or bytes that are no ONNX`
      : /depth|recursion/i.test(message)
        ? 'a graph that nests deeper than 100'
        : `unreadable bytes (${message})`;
    throw new DataError(`${name}: expected a complete ONNX model, got ${why}. Download it again.`, { cause: error });
  }
  if (!model.graph || model.graph.node.length === 0 || model.graph.output.length === 0) {
    throw new DataError(
      `${name}: expected an ONNX model with a graph, got none: unreadable bytes or another format. Download it again.`,
    );
  }
  return model;
}
