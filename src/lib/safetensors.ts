import { type FileHandle, open } from 'node:fs/promises';
import { CorruptFileError, DataError } from '../errors.ts';
import { countNonFinite, toFloat32 } from './float-formats.ts';
import { isJsonArray, isJsonNumber, isJsonObject, type JsonError, parseJson, stringifyJson } from './json.ts';
import type { JsonObject, JsonValue } from '../types.ts';

/**
 * Strict reader and writer of safetensors (github.com/huggingface/safetensors, README "Format"): 8 bytes little-endian
 * header length N, N bytes of JSON, then the data, which the tensors must tile exactly. The format has no checksum:
 * callers keep a sha256 beside the file.
 */

/** The reference reader's limit. */
const MAX_HEADER_BYTES = 100_000_000;

const DTYPE_BITS: Readonly<Record<string, number>> = Object.freeze({
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
});

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

type Refuse = (expected: string, got: string) => never;

const quote = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
const show = (value: JsonValue | undefined): string =>
  value === undefined ? 'nothing' : stringifyJson(value).slice(0, 80);

/** A whole number ≥ 0 as it was written: 1.5, 1e0 and −1 are none, as for the reference reader. */
function countOf(value: JsonValue | undefined): number | null {
  if (!isJsonNumber(value) || !/^\d+$/.test(value.lexeme)) return null;
  const number = Number(value.lexeme);
  return Number.isSafeInteger(number) ? number : null;
}

function counts(value: JsonValue | undefined): number[] | null {
  if (!isJsonArray(value)) return null;
  const list = value.map(countOf);
  return list.every((item) => item !== null) ? list : null;
}

function checkTensor(name: string, entry: JsonObject, refuse: Refuse): TensorInfo {
  const where = ` in tensor ${quote(name)}`;
  const dtype = entry.get('dtype');
  const bits = typeof dtype === 'string' && Object.hasOwn(DTYPE_BITS, dtype) ? DTYPE_BITS[dtype] : null;
  if (bits === null) return refuse(`a known dtype${where}`, show(dtype));
  const shape = counts(entry.get('shape'));
  if (shape === null) return refuse(`a shape of whole numbers ≥ 0${where}`, show(entry.get('shape')));
  const offsets = counts(entry.get('data_offsets'));
  if (offsets?.length !== 2) return refuse(`two data_offsets${where}`, show(entry.get('data_offsets')));
  for (const key of entry.keys()) {
    if (key !== 'dtype' && key !== 'shape' && key !== 'data_offsets')
      refuse(`dtype, shape and data_offsets${where}`, `the field ${quote(key)}`);
  }
  const bytes = (shape.reduce((product, size) => product * size, 1) * bits) / 8;
  if (!Number.isSafeInteger(bytes))
    return refuse(`a shape that fits its data_offsets${where}`, `${show(entry.get('shape'))}, an overflow`);
  const [start, end] = offsets as [number, number];
  if (end - start !== bytes)
    return refuse(`${bytes} bytes for ${show(dtype)} ${show(entry.get('shape'))}${where}`, `${end - start}`);
  return { dtype: dtype as string, shape, start, end };
}

/** The tensors tile the data: no hole, no overlap, nothing after the last. */
function checkTiling(tensors: ReadonlyMap<string, TensorInfo>, dataBytes: number, refuse: Refuse): void {
  const ordered = [...tensors].sort(([, a], [, b]) => a.start - b.start || a.end - b.end);
  let at = 0;
  for (const [name, tensor] of ordered) {
    if (tensor.start !== at)
      refuse(
        `tensor ${quote(name)} at byte ${at}`,
        `byte ${tensor.start} (${tensor.start < at ? 'it overlaps another' : 'a hole before it'})`,
      );
    at = tensor.end;
  }
  if (at !== dataBytes)
    refuse(
      `${at} bytes of data`,
      `${dataBytes} (${dataBytes < at ? 'the file is truncated' : 'more than the tensors hold'})`,
    );
}

async function readExactly(file: FileHandle, out: Uint8Array, position: number, refuse: Refuse): Promise<void> {
  // A single read of 2 GiB or more throws.
  const most = 1 << 30;
  for (let at = 0; at < out.length;) {
    const { bytesRead } = await file.read(out, at, Math.min(most, out.length - at), position + at);
    if (bytesRead === 0) refuse(`${out.length} bytes at ${position}`, `${at} (the file was cut while it was read)`);
    at += bytesRead;
  }
}

const refuseFor =
  (path: string): Refuse =>
  (expected, got) => {
    throw new CorruptFileError(`${path}: expected ${expected}, got ${got}. Make the file again or fetch it again`);
  };

async function withFile<T>(path: string, body: (file: FileHandle, bytes: number) => Promise<T>): Promise<T> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    throw new DataError(
      `${path}: expected a readable safetensors file, got ${(error as NodeJS.ErrnoException).code ?? 'an error'}. Check the path`,
      { cause: error },
    );
  }
  try {
    const stat = await file.stat();
    if (!stat.isFile()) refuseFor(path)('a safetensors file', 'a folder, pipe or device');
    return await body(file, stat.size);
  } finally {
    await file.close();
  }
}

/** Reads and checks the header; the data is left on disk. @throws CorruptFileError (65) naming what is wrong */
export async function readSafetensorsHeader(path: string): Promise<SafetensorsHeader> {
  const refuse = refuseFor(path);
  return withFile(path, async (file, fileBytes) => {
    if (fileBytes < 8) refuse('a safetensors file of at least 8 bytes', `${fileBytes}`);
    const prefix = Buffer.alloc(8);
    await readExactly(file, prefix, 0, refuse);
    if (prefix.toString('latin1') === 'version ') refuse('a safetensors file', 'a Git LFS pointer: run git lfs pull');
    const long = prefix.readBigUInt64LE(0);
    // Checked as a BigInt before anything of that size is allocated.
    if (long > BigInt(MAX_HEADER_BYTES)) refuse(`a header of at most ${MAX_HEADER_BYTES} bytes`, `${long}`);
    const headerBytes = Number(long);
    if (headerBytes > fileBytes - 8) refuse(`a header of at most ${fileBytes - 8} bytes (the file's size)`, `${long}`);
    if (headerBytes < 2) refuse('a JSON header', `one of length ${headerBytes}`);
    const raw = Buffer.alloc(headerBytes);
    await readExactly(file, raw, 8, refuse);
    const { tensors, metadata } = parseHeader(raw, refuse);
    checkTiling(tensors, fileBytes - 8 - headerBytes, refuse);
    return { tensors, metadata, dataStart: 8 + headerBytes, fileBytes };
  });
}

function parseHeader(raw: Buffer, refuse: Refuse): Pick<SafetensorsHeader, 'tensors' | 'metadata'> {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw);
  } catch {
    return refuse('a header in UTF-8', 'invalid bytes');
  }
  let parsed: JsonValue;
  try {
    // Strict: a duplicate key, which JSON.parse hides, is an error.
    parsed = parseJson(text, { strict: true });
  } catch (error) {
    return refuse('a header that is JSON with each key once', (error as JsonError).message);
  }
  if (!isJsonObject(parsed))
    return refuse('a header that is a JSON object', isJsonArray(parsed) ? 'an array' : show(parsed));
  const tensors = new Map<string, TensorInfo>();
  const metadata = new Map<string, string>();
  for (const [name, entry] of parsed) {
    if (!isJsonObject(entry)) return refuse(`an object under ${quote(name)}`, show(entry));
    if (name === '__metadata__') {
      for (const [key, value] of entry) {
        if (typeof value !== 'string') return refuse(`text under __metadata__.${key}`, show(value));
        metadata.set(key, value);
      }
    } else tensors.set(name, checkTensor(name, entry, refuse));
  }
  return { tensors, metadata };
}

/** Rows of the first axis, end-exclusive. */
export interface RowRange {
  readonly from: number;
  readonly to: number;
}

/** @throws CorruptFileError (65) when there is no such tensor, RangeError when it has no such rows */
function bytesOf(
  path: string,
  header: SafetensorsHeader,
  name: string,
  rows: RowRange | null,
): { readonly start: number; readonly end: number } {
  const tensor = header.tensors.get(name);
  if (!tensor)
    return refuseFor(path)(
      `the tensor ${quote(name)}`,
      [...header.tensors.keys()].slice(0, 8).join(', ') || 'no tensor',
    );
  if (rows === null) return tensor;
  const count = tensor.shape[0] ?? 0;
  if (!(rows.from >= 0 && rows.from <= rows.to && rows.to <= count))
    throw new RangeError(`${path}: rows ${rows.from} to ${rows.to} of ${count} in ${name}`);
  const rowBytes = count === 0 ? 0 : (tensor.end - tensor.start) / count;
  return { start: tensor.start + rows.from * rowBytes, end: tensor.start + rows.to * rowBytes };
}

/**
 * Bytes of ranges of rows of one tensor, each in a buffer of its own (aligned for typed arrays); the file is opened once.
 * @throws CorruptFileError (65) when there is no such tensor or the file ends early
 */
export async function readTensorRows(
  path: string,
  header: SafetensorsHeader,
  name: string,
  ranges: readonly (RowRange | null)[],
): Promise<Uint8Array<ArrayBuffer>[]> {
  const wanted = ranges.map((range) => bytesOf(path, header, name, range));
  return withFile(path, async (file) => {
    const out: Uint8Array<ArrayBuffer>[] = [];
    for (const { start, end } of wanted) {
      const bytes = new Uint8Array(end - start);
      await readExactly(file, bytes, header.dataStart + start, refuseFor(path));
      out.push(bytes);
    }
    return out;
  });
}

/** Bytes of one tensor, in a buffer of its own (aligned for typed arrays). @throws as readTensorRows */
export async function readTensorBytes(
  path: string,
  header: SafetensorsHeader,
  name: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const [bytes] = await readTensorRows(path, header, name, [null]);
  return bytes;
}

/**
 * float32 values of ranges of rows of a tensor stored as F32, F64, F16 or BF16; null = all rows.
 * @throws CorruptFileError (65) when a value is not finite or the tensor is none of these, and as readTensorRows
 */
export async function readFloatRows(
  path: string,
  header: SafetensorsHeader,
  name: string,
  ranges: readonly (RowRange | null)[],
): Promise<Float32Array<ArrayBuffer>[]> {
  const dtype = header.tensors.get(name)?.dtype ?? '';
  const stretches = await readTensorRows(path, header, name, ranges);
  return stretches.map((bytes) => {
    const data = toFloat32(bytes, dtype);
    const bad = countNonFinite(data);
    if (bad > 0) refuseFor(path)(`finite values in tensor ${quote(name)}`, `${bad} that are not (Inf or NaN)`);
    return data;
  });
}

export interface TensorToWrite {
  readonly name: string;
  readonly dtype: 'F32' | 'F64' | 'F16' | 'BF16' | 'I32' | 'I64' | 'U8';
  readonly shape: readonly number[];
  readonly data: ArrayBufferView;
}

/**
 * The parts of a file, ready for an atomic write. Wider types first (as the reference writer does); the data begins on a
 * multiple of 64 bytes, so that readers can map typed arrays onto it. The order of the input changes nothing.
 */
export function encodeSafetensors(
  tensors: readonly TensorToWrite[],
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array[] {
  const ordered = [...tensors].sort((a, b) => DTYPE_BITS[b.dtype] - DTYPE_BITS[a.dtype] || (a.name < b.name ? -1 : 1));
  const header: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  if (Object.keys(metadata).length > 0) header['__metadata__'] = metadata;
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const { name, dtype, shape, data } of ordered) {
    if (name in header || name === '__metadata__') throw new RangeError(`the tensor name ${quote(name)} is taken`);
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const count = shape.reduce((a, b) => a * b, 1);
    if (bytes.length * 8 !== count * DTYPE_BITS[dtype])
      throw new RangeError(`${name}: ${bytes.length} bytes for ${dtype} [${shape.join(', ')}]`);
    header[name] = { dtype, shape, data_offsets: [at, at + bytes.length] };
    at += bytes.length;
    parts.push(bytes);
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Math.ceil((8 + json.length) / 64) * 64 - 8;
  if (padded > MAX_HEADER_BYTES) throw new RangeError(`a header of ${padded} bytes, more than ${MAX_HEADER_BYTES}`);
  const head = Buffer.alloc(8 + padded, 0x20);
  head.writeBigUInt64LE(BigInt(padded), 0);
  json.copy(head, 8);
  return [head, ...parts];
}
