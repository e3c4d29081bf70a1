import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadMapping } from '../../../src/config/mapping.ts';
import { checkClasses } from '../../../src/dataset/check.ts';
import { readMetas } from '../../../src/dataset/read.ts';
import { ForewarnError } from '../../../src/errors.ts';
import { hostileCases, hostileFixtures, type HostileCase, missingFrom } from '../fixtures.ts';

const mapping = await loadMapping(fileURLToPath(new URL('../../../mappings/cape-bench.yaml', import.meta.url)));

interface Outcome {
  readonly outcome: 'refuse' | 'quarantine-row' | 'accept' | 'accept-with-warning';
  readonly message: string;
  readonly rows: number;
}

async function read(item: HostileCase): Promise<Outcome> {
  const messages: string[] = [];
  let bad = 0;
  const path = join(hostileFixtures(), item.file);
  try {
    const metas = await readMetas({ episodes: [path], scenarios: null, reportLabels: null, tools: null }, mapping, {
      where: {},
      maxBad: 1,
      onExclusion: (exclusion) => {
        bad += 1;
        messages.push(exclusion.detail);
      },
      onWarning: (kind, detail) => messages.push(`${kind}: ${detail}`),
    });
    checkClasses(metas, [path]);
    const outcome = bad > 0 ? 'quarantine-row' : messages.length > 0 ? 'accept-with-warning' : 'accept';
    return { outcome, message: messages.join('; '), rows: metas.length };
  } catch (error) {
    if (!(error instanceof ForewarnError)) throw error;
    expect(error.exitCode).toBe(65);
    return { outcome: 'refuse', message: error.message, rows: 0 };
  }
}

describe('data sets that make good tools fail', () => {
  for (const item of [...hostileCases('dataset'), ...hostileCases('events')]) {
    it(`${item.id}: ${item.outcome}`, async () => {
      const found = await read(item);
      const allowed = [item.outcome, ...(item.also_ok ?? [])];
      expect({ ...found, allowed: allowed.includes(found.outcome) }).toEqual({ ...found, allowed: true });
      if (found.outcome !== 'accept')
        expect({ message: found.message, missing: missingFrom(found.message, item) }).toEqual({
          message: found.message,
          missing: [],
        });
      if (typeof item.rows_out === 'number' && found.outcome === item.outcome) expect(found.rows).toBe(item.rows_out);
      // oxlint-disable-next-line no-control-regex -- escape characters of the data must not reach a terminal
      expect(found.message).not.toMatch(/[\u0000-\u0008\u001b]/);
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    });
  }
});
