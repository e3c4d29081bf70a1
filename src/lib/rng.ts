/**
 * Seeded random numbers that are the same on every machine and Node version. Streams are named by their parts
 * (seed, purpose, item …), so that adding one use never shifts the numbers of another.
 */
import type { Rng } from '../types.ts';

/**
 * 32-bit FNV-1a over the UTF-16 code units of the parts, then the finalizer of MurmurHash3 (its avalanche makes
 * neighbouring seeds independent). Parts are separated, so ("a", "bc") and ("ab", "c") differ. Not cryptographic.
 */
export function hash32(...parts: readonly (string | number)[]): number {
  let h = 0x811c9dc5;
  for (const part of parts) {
    const text = `${part}\u0000`;
    for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  }
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** sfc32 (Chris Doty-Humphrey's small fast counting generator), seeded by four hashes of the parts. Passes PractRand. */
export function seededRng(...parts: readonly (string | number)[]): Rng {
  let a = hash32(1, ...parts);
  let b = hash32(2, ...parts);
  let c = hash32(3, ...parts);
  let counter = 1;
  const word = (): number => {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 12; i += 1) word();
  const next = (): number => ((word() >>> 5) * 67_108_864 + (word() >>> 6)) / 9_007_199_254_740_992;
  return { next, below: (n) => Math.floor(next() * n) };
}

/** Fisher–Yates in place; returns the same array. */
export function shuffle<A extends { length: number; [index: number]: unknown }>(items: A, rng: Rng): A {
  for (let i = items.length - 1; i > 0; i -= 1) {
    const j = rng.below(i + 1);
    const held = items[i];
    items[i] = items[j];
    items[j] = held;
  }
  return items;
}

/** Standard normal by Box–Muller (one of the pair is thrown away, so that a stream has no hidden state). */
export function normal(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - rng.next())) * Math.cos(2 * Math.PI * rng.next());
}
