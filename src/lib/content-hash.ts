import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';

/** sha256 in lower-case hex. */
export function sha256(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** sha256 of the parts end to end. */
export function sha256Parts(parts: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
}

/** sha256 of a file, streamed: weights are larger than memory. @throws the file system's error */
export async function sha256File(path: string): Promise<{ readonly sha256: string; readonly bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    const part = chunk as Buffer;
    hash.update(part);
    bytes += part.length;
  }
  return { sha256: hash.digest('hex'), bytes };
}

/**
 * JSON text that does not depend on the order in which keys were set; `undefined` members are left out.
 * @throws TypeError for what JSON would lose without a word (NaN, a Map, a Date, a typed array): it must not enter a hash
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || !isPlain(value))
    throw new TypeError(
      `${typeof value === 'number' ? value : Object.prototype.toString.call(value)} has no canonical JSON`,
    );
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** sha256 of the canonical JSON. */
export function hashValue(value: unknown): string {
  return sha256(canonicalJson(value));
}
