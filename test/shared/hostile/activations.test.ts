import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ForewarnError } from '../../../src/errors.ts';
import { readFloatRows, readSafetensorsHeader, readTensorBytes } from '../../../src/lib/safetensors.ts';
import { hostileCases, hostileFixtures, missingFrom } from '../fixtures.ts';

const FLOATS = ['F32', 'F64', 'F16', 'BF16'];

/** Reads a file as a shard is read: the header, the bytes of every tensor, the floating values. */
async function readAll(path: string): Promise<readonly string[]> {
  const header = await readSafetensorsHeader(path);
  for (const [name, tensor] of header.tensors) {
    const bytes = await readTensorBytes(path, header, name);
    expect(bytes.length).toBe(tensor.end - tensor.start);
    if (FLOATS.includes(tensor.dtype)) await readFloatRows(path, header, name, [null]);
  }
  return [...header.tensors.keys()];
}

describe('activation files that make good tools fail', () => {
  for (const item of hostileCases('activations')) {
    it(`${item.id}: ${item.outcome}`, async () => {
      const before = process.memoryUsage.rss();
      let message: string | null = null;
      let names: readonly string[] = [];
      try {
        names = await readAll(join(hostileFixtures(), item.file));
      } catch (error) {
        expect(error).toBeInstanceOf(ForewarnError);
        expect((error as ForewarnError).exitCode).toBe(65);
        message = (error as Error).message;
      }
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
      if (item.id.includes('proto')) expect(names).toContain('__proto__');
      const outcome = message === null ? 'accept' : 'refuse';
      expect([item.outcome, ...(item.also_ok ?? [])]).toContain(outcome);
      if (message !== null) {
        expect({ message, missing: missingFrom(message, item) }).toEqual({ message, missing: [] });
        expect(message.split('\n')).toHaveLength(1);
      }
      // A length of 2^64 − 1 in the first 8 bytes must not be allocated.
      expect((process.memoryUsage.rss() - before) / 2 ** 20).toBeLessThan(300);
    });
  }
});
