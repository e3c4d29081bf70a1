import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DataError } from '../../../src/errors.ts';
import { openTokenizer } from '../../../src/plan/tokenizer.ts';
import { hostileCases, hostileFixtures, missingFrom } from '../fixtures.ts';

describe('tokenizer files that make good tools fail', () => {
  for (const item of hostileCases('tokenizer')) {
    it(`${item.id}: ${item.outcome}`, async () => {
      const folder = join(hostileFixtures(), item.file, '..');
      // The model of the case that needs one has 8 rows in its embedding (onnx/good.onnx).
      const vocabulary = item.needs === undefined ? null : 8;
      const error = await openTokenizer(folder, vocabulary).then(
        () => null,
        (reason: unknown) => reason,
      );
      expect(item.outcome).toBe('refuse');
      expect(error).toBeInstanceOf(DataError);
      const { message } = error as DataError;
      expect({ message, missing: missingFrom(message, item) }).toEqual({ message, missing: [] });
    });
  }
});
