import { open, readFile, stat } from 'node:fs/promises';
import { CorruptFileError } from '../errors.ts';
import { MAX_DEPTH } from './json.ts';

/**
 * Strict reader and writer of safetensors (github.com/huggingface/safetensors, README "Format"): 8 bytes little-endian
 * header length N, N bytes of JSON, then the data, which the tensors must tile exactly. The format has no checksum:
 * callers keep a sha256 beside the file.
 */

/** The reference reader's limit. */
const MAX_HEADER_BYTES = 100_000_000;

const DTYPE_BITS: Readonly<Record<string, number>> = {
  BOOL: 8,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  F8_E4M3FNUZ: 8,
  F8_E5M2FNUZ: 8,
  I16: 16,
  U16: 16,
  F16: 16,
  BF16: 16,
  I32: 32,
  U32: 32,
  F32: 32,
  I64: 64,
  U64: 64,
  F64: 64,
  C64: 64,
  F4: 4,
  F6_E2M3: 6,
  F6_E3M2: 6,
};

export interface TensorInfo {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Bytes within the data part, end-exclusive. */
  readonly start: number;
  readonly end: number;
}

export interface SafetensorsHeader {
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly metadata: ReadonlyMap<string, string>;
  /** Where the data part begins in the file. */
  readonly dataStart: number;
  readonly fileBytes: number;
}

/** JSON.parse hides duplicate keys (the last wins), so the two levels that matter are walked by hand. */
function parseHeader(text: string, refuse: (got: string) => never): Map<string, Map<string, unknown>> {
  const parsed: unknown = (() => {
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      return refuse(`a header that is not JSON (${(error as Error).message})`);
    }
  })();
  if (parsed === null || typeof parsed !== 'object' || Array.isArray(parsed)) refuse('a header that is no object');
  const stack: (Set<string> | null)[] = [];
  let expectKey = false;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g)) {
    const top = stack.at(-1);
    if (token === '{') {
      stack.push(new Set());
      expectKey = true;
    } else if (token === '[') {
      stack.push(null);
      expectKey = false;
    } else if (token === '}' || token === ']') {
      stack.pop();
      expectKey = false;
    } else if (token === ',') expectKey = top instanceof Set;
    else if (token === ':') expectKey = false;
    else if (expectKey && top instanceof Set) {
      const key = JSON.parse(token) as string;
      if (top.has(key)) refuse(`the key ${JSON.stringify(key)} twice`);
      top.add(key);
    }
    if (stack.length > MAX_DEPTH) refuse(`a header nested deeper than ${MAX_DEPTH}`);
  }
  const out = new Map<string, Map<string, unknown>>();
  for (const [name, entry] of Object.entries(parsed as object)) {
    if (entry === null || typeof entry !== 'object' || Array.isArray(entry))
      refuse(`${JSON.stringify(name)} that is no object`);
    out.set(name, new Map(Object.entries(entry as object)));
  }
  return out;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function checkTensor(
  name: string,
  entry: Map<string, unknown>,
  text: string,
  refuse: (got: string) => never,
): TensorInfo {
  const dtype = entry.get('dtype');
  const shape = entry.get('shape');
  const offsets = entry.get('data_offsets');
  const bits = typeof dtype === 'string' ? DTYPE_BITS[dtype] : undefined;
  if (typeof dtype !== 'string' || bits === undefined)
    return refuse(`dtype ${JSON.stringify(dtype)} in tensor ${JSON.stringify(name)}`);
  if (!Array.isArray(shape) || !shape.every(isCount))
    return refuse(`shape ${JSON.stringify(shape)} in tensor ${JSON.stringify(name)}`);
  // 1e0 and 2.0 are integers to JavaScript but not to the reference reader.
  const written =
    new RegExp(`"shape"\\s*:\\s*\\[[^\\]]*[.eE]`).test(text) ||
    new RegExp(`"data_offsets"\\s*:\\s*\\[[^\\]]*[.eE]`).test(text);
  if (written) return refuse('a shape or offset written as a fraction or with an exponent');
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) {
    return refuse(`data_offsets ${JSON.stringify(offsets)} in tensor ${JSON.stringify(name)}`);
  }
  const [start, end] = offsets as [number, number];
  let count = 1;
  for (const size of shape as number[]) count *= size;
  const bytes = (count * bits) / 8;
  if (!Number.isSafeInteger(bytes))
    return refuse(`a shape of ${JSON.stringify(shape)} in tensor ${JSON.stringify(name)}, which no file holds`);
  if (end - start !== bytes) {
    return refuse(
      `${end - start} bytes for tensor ${JSON.stringify(name)} of ${dtype} ${JSON.stringify(shape)}, which needs ${bytes}`,
    );
  }
  for (const key of entry.keys()) {
    if (key !== 'dtype' && key !== 'shape' && key !== 'data_offsets')
      refuse(`the unknown field ${JSON.stringify(key)} in tensor ${JSON.stringify(name)}`);
  }
  return { dtype, shape: shape as number[], start, end };
}

/** Reads and checks the header; the data is left on disk. @throws CorruptFileError (65) naming what is wrong */
export async function readSafetensorsHeader(path: string): Promise<SafetensorsHeader> {
  const refuse = (got: string): never => {
    throw new CorruptFileError(
      `${path}: expected a safetensors file, got ${got}. Make the file again or fetch it again`,
    );
  };
  const fileBytes = (await stat(path)).size;
  if (fileBytes < 8) refuse(`${fileBytes} bytes, fewer than the 8 of the header length`);
  const file = await open(path, 'r');
  try {
    const prefix = Buffer.alloc(8);
    await file.read(prefix, 0, 8, 0);
    if (prefix.toString('latin1').startsWith('version ')) refuse('a Git LFS pointer: run git lfs pull');
    const long = prefix.readBigUInt64LE(0);
    if (long > BigInt(MAX_HEADER_BYTES)) refuse(`a header of ${long} bytes, more than the ${MAX_HEADER_BYTES} allowed`);
    const headerBytes = Number(long);
    if (headerBytes > fileBytes - 8) refuse(`a header of ${headerBytes} bytes in a file of ${fileBytes}`);
    if (headerBytes < 2) refuse('an empty header');
    const raw = Buffer.alloc(headerBytes);
    await file.read(raw, 0, headerBytes, 8);
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(raw);
    } catch {
      return refuse('a header that is not UTF-8');
    }
    const entries = parseHeader(text, refuse);
    const tensors = new Map<string, TensorInfo>();
    const metadata = new Map<string, string>();
    for (const [name, entry] of entries) {
      if (name === '__metadata__') {
        for (const [key, value] of entry) {
          if (typeof value !== 'string') refuse(`metadata ${JSON.stringify(key)} that is no text`);
          metadata.set(key, value as string);
        }
      } else tensors.set(name, checkTensor(name, entry, text, refuse));
    }
    const dataStart = 8 + headerBytes;
    const ordered = [...tensors].sort(([, a], [, b]) => a.start - b.start || a.end - b.end);
    let at = 0;
    for (const [name, tensor] of ordered) {
      if (tensor.start !== at)
        refuse(
          `a ${tensor.start < at ? 'tensor that overlaps another' : 'hole'} at byte ${at} (tensor ${JSON.stringify(name)})`,
        );
      at = tensor.end;
    }
    if (dataStart + at !== fileBytes) refuse(`${fileBytes} bytes where the header promises ${dataStart + at}`);
    return { tensors, metadata, dataStart, fileBytes };
  } finally {
    await file.close();
  }
}

/** Bytes of one tensor, or of rows [from, to) of its first axis, in a buffer of its own (aligned for typed arrays). */
export async function readTensorBytes(
  path: string,
  header: SafetensorsHeader,
  name: string,
  rows?: { readonly from: number; readonly to: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const tensor = header.tensors.get(name);
  if (!tensor) {
    throw new CorruptFileError(
      `${path}: expected the tensor ${JSON.stringify(name)}, got ${[...header.tensors.keys()].slice(0, 8).join(', ') || 'none'}`,
    );
  }
  let { start, end } = tensor;
  if (rows) {
    const rowBytes = tensor.shape[0] === 0 ? 0 : (tensor.end - tensor.start) / (tensor.shape[0] ?? 1);
    end = start + rows.to * rowBytes;
    start += rows.from * rowBytes;
  }
  const out = new Uint8Array(end - start);
  const file = await open(path, 'r');
  try {
    for (let at = 0; at < out.length;) {
      const { bytesRead } = await file.read(out, at, Math.min(1 << 30, out.length - at), header.dataStart + start + at);
      if (bytesRead === 0) throw new CorruptFileError(`${path}: expected ${out.length} bytes of ${name}, got ${at}`);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
  return out;
}

/** float32 values of a tensor stored as F32, F64, F16 or BF16. */
export function toFloat32(bytes: Uint8Array<ArrayBuffer>, dtype: string): Float32Array<ArrayBuffer> {
  if (dtype === 'F32') return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  if (dtype === 'F64') return Float32Array.from(new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8));
  if (dtype === 'BF16' || dtype === 'F16') {
    const half = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
    const words = new Uint32Array(half.length);
    for (let i = 0; i < half.length; i += 1) words[i] = dtype === 'BF16' ? half[i]! << 16 : halfToFloatBits(half[i]!);
    return new Float32Array(words.buffer);
  }
  throw new CorruptFileError(`expected a floating tensor, got ${dtype}`);
}

function halfToFloatBits(h: number): number {
  const sign = (h & 0x8000) << 16;
  const exponent = (h >> 10) & 0x1f;
  let fraction = h & 0x3ff;
  if (exponent === 0x1f) return sign | 0x7f800000 | (fraction << 13);
  if (exponent !== 0) return sign | ((exponent + 112) << 23) | (fraction << 13);
  if (fraction === 0) return sign;
  let e = 113;
  while ((fraction & 0x400) === 0) {
    fraction <<= 1;
    e -= 1;
  }
  return sign | (e << 23) | ((fraction & 0x3ff) << 13);
}

export interface TensorToWrite {
  readonly name: string;
  readonly dtype: 'F32' | 'F64' | 'F16' | 'BF16' | 'I32' | 'I64' | 'U8';
  readonly shape: readonly number[];
  readonly data: ArrayBufferView;
}

/** The parts of a file, ready for an atomic write. Wider types first (as the reference writer does), data on 64 bytes. */
export function encodeSafetensors(
  tensors: readonly TensorToWrite[],
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array[] {
  const ordered = [...tensors].sort(
    (a, b) => DTYPE_BITS[b.dtype]! - DTYPE_BITS[a.dtype]! || (a.name < b.name ? -1 : 1),
  );
  const header: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  if (Object.keys(metadata).length > 0) header['__metadata__'] = metadata;
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const tensor of ordered) {
    const bytes = new Uint8Array(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
    const count = tensor.shape.reduce((a, b) => a * b, 1);
    if (bytes.length * 8 !== count * DTYPE_BITS[tensor.dtype]!)
      throw new RangeError(`${tensor.name}: ${bytes.length} bytes for ${tensor.dtype} ${tensor.shape}`);
    header[tensor.name] = { dtype: tensor.dtype, shape: tensor.shape, data_offsets: [at, at + bytes.length] };
    at += bytes.length;
    parts.push(bytes);
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Math.ceil((8 + json.length) / 64) * 64 - 8;
  const head = Buffer.alloc(8 + padded, 0x20);
  head.writeBigUInt64LE(BigInt(padded), 0);
  json.copy(head, 8);
  return [head, ...parts];
}

/** A whole small file in memory: names → float32 values. For probes and tests; shards are read by row. */
export async function readFloatTensors(
  path: string,
): Promise<Map<string, { readonly shape: readonly number[]; readonly data: Float32Array }>> {
  const header = await readSafetensorsHeader(path);
  const whole = await readFile(path);
  const out = new Map<string, { readonly shape: readonly number[]; readonly data: Float32Array }>();
  for (const [name, tensor] of header.tensors) {
    const bytes = Uint8Array.from(whole.subarray(header.dataStart + tensor.start, header.dataStart + tensor.end));
    out.set(name, { shape: tensor.shape, data: toFloat32(bytes, tensor.dtype) });
  }
  return out;
}
