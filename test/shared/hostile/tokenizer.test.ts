import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DataError } from '../../../src/errors.ts';
import { openTokenizer } from '../../../src/plan/tokenizer.ts';
import { hostileCases, hostileFixtures, missingFrom } from '../fixtures.ts';

describe('tokenizer folders that make good tools fail', () => {
  for (const item of hostileCases('tokenizer')) {
    it(`${item.id}: ${item.outcome}`, async () => {
      // onnx/good.onnx, which the last case needs, has 8 rows of embedding.
      const vocabulary = item.needs === undefined ? null : 8;
      const error = await openTokenizer(dirname(join(hostileFixtures(), item.file)), vocabulary).catch(
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(DataError);
      expect(missingFrom((error as Error).message, item)).toEqual([]);
    });
  }
});
