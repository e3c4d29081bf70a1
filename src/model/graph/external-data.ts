import { lstat, open, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { DataError } from '../../errors.ts';
import { DATA_TYPES, toNumber, type OnnxGraph, type OnnxModel, type OnnxTensor } from './onnx-schema.ts';

/** Weights outside the graph file. */
export interface ExternalFiles {
  /** location as written in the graph → path on disk with links resolved. Empty: all weights are in the graph file. */
  readonly files: ReadonlyMap<string, string>;
  readonly warnings: readonly string[];
}

/** Every tensor of the model: initializers, Constant nodes, bodies of If / Loop / Scan. */
export function allTensors(graph: OnnxGraph): OnnxTensor[] {
  return [
    ...graph.initializer,
    ...graph.node.flatMap((n) =>
      (n.attribute ?? []).flatMap((a) => [
        ...(a.t ? [a.t] : []),
        ...(a.tensors ?? []),
        ...(a.g ? allTensors(a.g) : []),
        ...(a.graphs ?? []).flatMap(allTensors),
      ]),
    ),
  ];
}

/** Bytes a tensor of this shape and type takes; null for types without a fixed size. */
export function tensorBytes(tensor: OnnxTensor): number | null {
  const bits = DATA_TYPES[tensor.data_type ?? 0]?.bits;
  if (bits === undefined) return null;
  const count = (tensor.dims ?? []).reduce((n: number, d) => n * toNumber(d), 1);
  return Math.ceil((count * bits) / 8);
}

/**
 * Checks every weight against its place before the runtime sees it: onnxruntime takes a Git LFS pointer or a hard link for
 * weights without a word. Weights are not read.
 * @throws DataError naming the graph file, the tensor, what was expected and what is there
 */
export async function checkTensors(file: string, model: OnnxModel): Promise<ExternalFiles> {
  const folder = path.dirname(file);
  const files = new Map<string, string>();
  const sizes = new Map<string, number>();
  const warnings: string[] = [];
  const name = path.basename(file);
  refuseBombs(name, model.graph);
  for (const tensor of allTensors(model.graph)) {
    const label = `${name}: tensor ${tensor.name || '(unnamed)'}`;
    const bytes = tensorBytes(tensor);
    if (tensor.data_location !== 1) {
      const raw = tensor.raw_data?.length ?? 0;
      const typed = [tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data].some(
        (d) => d && d.length > 0,
      );
      if (bytes !== null && !typed && raw !== bytes && (raw > 0 || bytes > MAX_COMPUTED_ELEMENTS)) {
        throw new DataError(
          `${label}: expected ${shape(tensor)} = ${bytes} bytes, got ${raw} bytes. The file is damaged or hostile; fetch it again.`,
        );
      }
      continue;
    }
    const entry = new Map((tensor.external_data ?? []).map((e) => [e.key, e.value]));
    const location = entry.get('location') ?? '';
    const offset = Number(entry.get('offset') ?? 0);
    const length = entry.has('length') ? Number(entry.get('length')) : bytes;
    const real = files.get(location) ?? (await resolveLocation(label, folder, location, warnings));
    files.set(location, real);
    if (!Number.isSafeInteger(offset) || offset < 0) {
      throw new DataError(
        `${label}: expected offset >= 0 in ${location}, got ${entry.get('offset')}. Fetch the model again.`,
      );
    }
    if (bytes !== null && length !== bytes) {
      throw new DataError(
        `${label}: expected ${shape(tensor)} = ${bytes} bytes in ${location}, got length ${length}. Fetch the model again.`,
      );
    }
    const size = sizes.get(real) ?? (await stat(real)).size;
    sizes.set(real, size);
    if (length !== null && offset + length > size) {
      throw new DataError(
        `${label}: expected ${offset + length} bytes in ${location}, got ${size}: the file is cut short. Download it again.`,
      );
    }
  }
  return { files, warnings };
}

/** A ConstantOfShape of more elements than this is no mask or position table: it would only fill the memory. */
const MAX_COMPUTED_ELEMENTS = 2 ** 32;

function refuseBombs(name: string, graph: OnnxGraph): void {
  const sizes = new Map(graph.initializer.map((t) => [t.name ?? '', t]));
  for (const node of graph.node) {
    const shape = node.op_type === 'ConstantOfShape' ? sizes.get(node.input[0] ?? '') : undefined;
    const elements = shape && wholeNumbers(shape).reduce((a, b) => a * b, 1);
    if (elements !== undefined && elements > MAX_COMPUTED_ELEMENTS) {
      throw new DataError(
        `${name}: ${node.output[0]}: expected tensors that fit into memory, got one of 2^${Math.log2(elements).toFixed(0)} numbers (ConstantOfShape). The file is hostile.`,
      );
    }
  }
}

/** int64 values of a small tensor held in the graph. */
function wholeNumbers(tensor: OnnxTensor): number[] {
  const raw = tensor.raw_data;
  if (!raw || raw.length % 8 !== 0) return (tensor.int64_data ?? []).map(toNumber);
  const view = new DataView(raw.buffer, raw.byteOffset, raw.length);
  return Array.from({ length: raw.length / 8 }, (_, i) => Number(view.getBigInt64(i * 8, true)));
}

const shape = (tensor: OnnxTensor): string => `shape ${(tensor.dims ?? []).map(toNumber).join(' x ')}`;

async function resolveLocation(label: string, folder: string, location: string, warnings: string[]): Promise<string> {
  if (
    /^[a-z][a-z0-9+.-]+:/i.test(location) ||
    /^[/\\]/.test(location) ||
    /[*?<>|\0]/.test(location) ||
    location === ''
  ) {
    throw new DataError(
      `${label}: expected a relative path of a file beside the model, got ${location || '(nothing)'}.`,
    );
  }
  const parts = location.split(/[/\\]/);
  if (parts.includes('..')) {
    throw new DataError(`${label}: expected a file inside the folder of the model, got ${location}.`);
  }
  const full = path.join(folder, ...parts);
  const info = await stat(full).catch(() => null);
  if (!info) {
    const link = await lstat(full).catch(() => null);
    const why = link?.isSymbolicLink() ? 'a link to nothing' : 'no such file';
    throw new DataError(`${label}: expected its weights in ${location} beside the model, got ${why}. Download it too.`);
  }
  if (!info.isFile()) {
    const what = info.isFIFO() ? 'a pipe' : info.isDirectory() ? 'a directory' : 'a special file';
    throw new DataError(`${label}: expected a regular file ${location}, got ${what}.`);
  }
  const real = await realpath(full);
  if (!isAllowed(await realpath(folder), real)) {
    throw new DataError(
      `${label}: expected a file inside the folder of the model, got ${location} -> ${path.relative(folder, real)}. Copy the file there.`,
    );
  }
  if (info.nlink > 1) {
    warnings.push(`${label}: ${location} has ${info.nlink} links: another name can change the weights`);
  }
  await refusePointer(label, location, real, info.size);
  return real;
}

/** Inside the folder, or a link from `snapshots/<revision>/…` into `blobs/` of the same Hugging Face cache entry. */
function isAllowed(folder: string, real: string): boolean {
  if (!path.relative(folder, real).startsWith('..')) return true;
  const parts = folder.split(path.sep);
  const at = parts.lastIndexOf('snapshots');
  if (at < 1) return false;
  return path.dirname(real) === path.join(parts.slice(0, at).join(path.sep) || path.sep, 'blobs');
}

/** A Git LFS pointer is about 130 bytes of text that begins so. */
export const LFS_POINTER = 'version https://git-lfs.github.com/spec/';

async function refusePointer(label: string, location: string, real: string, size: number): Promise<void> {
  if (size > 1024) return;
  const handle = await open(real);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(64), 0, 64, 0);
    if (buffer.subarray(0, bytesRead).toString('latin1').startsWith(LFS_POINTER)) {
      throw new DataError(`${label}: expected weights in ${location}, got a Git LFS pointer. Run git lfs pull.`);
    }
  } finally {
    await handle.close();
  }
}
