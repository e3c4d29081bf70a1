import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { InferenceSession, type Tensor } from 'onnxruntime-node';
import { readModel, type ReadModel } from '../../../src/model/graph/read-model.ts';
import { isPassDependent } from '../../../src/model/graph/supported-ops.ts';
import { tapGraph } from '../../../src/model/graph/tap-graph.ts';
import { createReplayCore, chunkFeeds } from '../../../src/model/replay-core.ts';
import { emptyState } from '../../../src/model/state.ts';
import { encodeModel } from '../../../src/model/graph/onnx-schema.ts';
import { openSession } from '../../../src/model/session.ts';
import type { ReplaySequence, Tap } from '../../../src/types.ts';
import { onnxFixtures } from '../fixtures.ts';

export interface Golden {
  readonly exporter?: string;
  readonly arch: string;
  readonly dims?: { readonly layers: number; readonly hidden: number };
  readonly expect?: string;
  /** tap → first ONNX value equal to it; `NODE#3` is slot 3 of a node. */
  readonly table?: Readonly<Record<string, string>>;
  readonly values?: Readonly<Record<string, readonly { readonly value: string }[]>>;
}

export interface Fixture {
  /** exporter/arch */
  readonly name: string;
  readonly folder: string;
  readonly golden: Golden;
  readonly tensors: ReadonlyMap<string, Float32Array | Int32Array>;
}

/** Every folder with a model.onnx and a golden.json, at any depth. */
export function listFixtures(): Fixture[] {
  const root = onnxFixtures();
  const found: Fixture[] = [];
  const visit = (folder: string): void => {
    if (existsSync(path.join(folder, 'golden.json')) && existsSync(path.join(folder, 'model.onnx'))) {
      const golden = JSON.parse(readFileSync(path.join(folder, 'golden.json'), 'utf8')) as Golden;
      found.push({
        name: path.relative(root, folder),
        folder,
        golden,
        tensors: readTensors(path.join(folder, 'golden.safetensors')),
      });
    }
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory()) visit(path.join(folder, entry.name));
  };
  visit(root);
  if (found.length === 0) throw new Error(`${root}: expected folders with model.onnx and golden.json, got none`);
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A second reader of safetensors, small enough to be seen right: int64 as numbers, float32 as it is. */
function readTensors(file: string): Map<string, Float32Array | Int32Array> {
  const tensors = new Map<string, Float32Array | Int32Array>();
  if (!existsSync(file)) return tensors;
  const bytes = readFileSync(file);
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, start).toString()) as Record<
    string,
    { dtype: string; data_offsets: [number, number] }
  >;
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const [from, to] = entry.data_offsets;
    const part = new Uint8Array(bytes.subarray(start + from, start + to)).buffer;
    tensors.set(
      name,
      entry.dtype === 'I64' ? Int32Array.from(new BigInt64Array(part), Number) : new Float32Array(part),
    );
  }
  return tensors;
}

export interface ReplayMode {
  readonly chunk: number;
  readonly sharing: boolean;
  readonly threads: number;
}

/** What the child process does, in this process: many small models, one process start saved each. */
export async function replayHere(
  folder: string,
  taps: readonly Tap[],
  sequences: readonly ReplaySequence[],
  mode: ReplayMode,
): Promise<Float32Array[]> {
  const read = await readModel(folder);
  const passDependent = isPassDependent(read.model.graph);
  const tapped = tapGraph(read.model, read.index, read, { taps, logits: false });
  const session = await openSession(read.file, tapped.model, read.external, {
    threads: mode.threads,
    executionProvider: 'cpu',
  });
  const core = createReplayCore(session, {
    io: read.io,
    states: tapped.states,
    inputs: tapped.inputs,
    taps,
    width: read.width,
    chunk: mode.chunk,
    sharing: mode.sharing,
    passDependent,
  });
  const blocks: Float32Array[] = [];
  await core.replay(sequences, {
    onPass: () => Promise.resolve(),
    onProgress: () => undefined,
    onBlock: (sequence, data) => {
      blocks[sequence] = data;
      return Promise.resolve();
    },
  });
  await session.close();
  return blocks;
}

/** A plain run of the file as it is, whole sequence, nothing pruned, with values promoted by name. `NODE#3` names a slot. */
export async function plainRun(
  folder: string,
  values: readonly string[],
  ids: Int32Array,
): Promise<Map<string, Float32Array>> {
  const read: ReadModel = await readModel(folder);
  const names = values.map((value) => {
    const [node, slot] = value.split('#');
    if (slot === undefined) return value;
    const found = read.model.graph.node.find((n) => n.name === node);
    if (!found) throw new Error(`no node ${node}`);
    while (found.output.length <= Number(slot)) found.output.push('');
    return (found.output[Number(slot)] ||= `promoted.${value}`);
  });
  const present = new Set(read.model.graph.output.map((v) => v.name));
  for (const name of new Set(names)) if (!present.has(name)) read.model.graph.output.push({ name });
  read.model.graph.value_info = [];
  const session = await InferenceSession.create(encodeModel(read.model), {
    intraOpNumThreads: 1,
    logSeverityLevel: 3,
    extra: { session: { model_external_initializers_file_folder_path: folder } },
  });
  const inputs = new Set(session.inputNames);
  const feeds = chunkFeeds(
    { io: read.io, states: read.io.states, inputs },
    ids,
    0,
    ids.length,
    new Int32Array(0),
    emptyState(read.io.states),
  );
  const types: Record<number, string> = { 1: 'float32', 6: 'int32', 7: 'int64', 10: 'float16' };
  const given: Record<string, Tensor> = {};
  for (const [name, t] of feeds)
    given[name] = { type: types[t.type], dims: t.dims, data: t.data, location: 'cpu' } as unknown as Tensor;
  const outputs = await session.run(given);
  const result = new Map<string, Float32Array>();
  for (const [i, value] of values.entries()) {
    const tensor = outputs[names[i] ?? ''];
    if (!tensor) throw new Error(`no output for ${value}`);
    const data =
      tensor.type === 'float16' ? Float32Array.from(bitsOf(tensor), halfToNumber) : (tensor.data as Float32Array);
    result.set(value, data);
  }
  await session.release();
  return result;
}

const bitsOf = (tensor: Tensor): Uint16Array => {
  const data = tensor.data as Uint16Array;
  return new Uint16Array(data.buffer, data.byteOffset, data.length);
};

function halfToNumber(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const value =
    exponent === 31
      ? fraction
        ? NaN
        : Infinity
      : exponent === 0
        ? fraction * 2 ** -24
        : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return bits & 0x8000 ? -value : value;
}

/** Largest difference over the largest magnitude of `want`; Infinity when lengths differ or a value is missing. */
export function relativeError(got: ArrayLike<number>, want: ArrayLike<number>): number {
  if (got.length !== want.length) return Infinity;
  let difference = 0;
  let scale = 0;
  for (let i = 0; i < want.length; i++) {
    const d = Math.abs((got[i] ?? NaN) - (want[i] ?? NaN));
    if (!(d <= difference)) difference = Number.isNaN(d) ? Infinity : d;
    scale = Math.max(scale, Math.abs(want[i] ?? 0));
  }
  return scale === 0 ? difference : difference / scale;
}

/** [rows, width] of tap k in a block of `taps` taps. */
export function tapRows(block: Float32Array, taps: number, k: number): Float32Array {
  const size = block.length / taps;
  return block.subarray(k * size, (k + 1) * size);
}

export const everyRow = (ids: Int32Array): ReplaySequence => ({ ids, rows: ids.map((_, i) => i) });
