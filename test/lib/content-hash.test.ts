import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, hashValue, sha256, sha256File, sha256Parts } from '../../src/lib/content-hash.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

/** The same value with the keys of every object set in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).reverse();
  return Object.fromEntries(entries.map(([key, item]) => [key, reversed(item)]));
}

describe('sha256', () => {
  it('gives the digests of FIPS 180-2', () => {
    expect(sha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(sha256('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  });

  it('is the same for text, bytes, parts and a file', async () => {
    const path = join(temporaryFolder('hash'), 'file');
    const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => i % 253));
    writeFileSync(path, bytes);
    const whole = sha256(bytes);
    expect(await sha256File(path)).toEqual({ sha256: whole, bytes: bytes.length });
    expect(sha256Parts([bytes.subarray(0, 17), bytes.subarray(17)])).toBe(whole);
    expect(sha256('é')).toBe(sha256(Buffer.from('é')));
  });
});

describe('canonical JSON', () => {
  it('does not depend on the order in which keys were set', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(canonicalJson(reversed(value))).toBe(canonicalJson(value));
      }),
    );
  });

  it('reads back as the value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('leaves undefined members out, and tells null from nothing', () => {
    expect(canonicalJson({ b: undefined, a: 1 })).toBe('{"a":1}');
    expect(hashValue({ a: null })).not.toBe(hashValue({}));
  });

  it('refuses what JSON would lose without a word', () => {
    const lost = [
      Number.NaN,
      Infinity,
      new Map(),
      new Set(),
      new Date(0),
      new Float32Array(1),
      /x/,
      () => 1,
      1n,
      Symbol('x'),
    ];
    for (const value of lost) expect(() => canonicalJson({ value })).toThrow(TypeError);
    expect(() => canonicalJson([undefined])).toThrow(TypeError);
  });

  it('takes objects without a prototype', () => {
    expect(canonicalJson(Object.assign(Object.create(null) as object, { a: 1 }))).toBe('{"a":1}');
  });
});
