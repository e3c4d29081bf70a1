import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadMapping } from '../../../src/config/mapping.ts';
import { checkClasses } from '../../../src/dataset/check.ts';
import { readMetas } from '../../../src/dataset/read.ts';
import { ForewarnError } from '../../../src/errors.ts';
import { type HostileCase, hostileFixtures, missingFrom } from '../fixtures.ts';

/** Data sets of the hostile corpus, read as a run reads them, with the limit on bad rows switched off. */

const MAPPING = fileURLToPath(new URL('../../../mappings/cape-bench.yaml', import.meta.url));
const DIST = fileURLToPath(new URL('../../../dist', import.meta.url));
const mapping = await loadMapping(MAPPING);

interface Outcome {
  readonly outcome: HostileCase['outcome'];
  readonly message: string;
  readonly rows: number;
  readonly badRows: readonly (number | null)[];
}

async function read(item: HostileCase): Promise<Outcome> {
  const messages: string[] = [];
  const badRows: (number | null)[] = [];
  const path = join(hostileFixtures(), item.file);
  try {
    const metas = await readMetas({ episodes: [path], scenarios: null, reportLabels: null, tools: null }, mapping, {
      where: {},
      maxBad: 1,
      onExclusion: (exclusion) => {
        badRows.push(exclusion.row);
        messages.push(exclusion.detail);
      },
      onWarning: (kind, detail) => messages.push(`${kind}: ${detail}`),
    });
    checkClasses(metas, [path]);
    const outcome = badRows.length > 0 ? 'quarantine-row' : messages.length > 0 ? 'accept-with-warning' : 'accept';
    return { outcome, message: messages.join('; '), rows: metas.length, badRows };
  } catch (error) {
    if (!(error instanceof ForewarnError)) throw error;
    expect(error.exitCode).toBe(65);
    return { outcome: 'refuse', message: error.message, rows: 0, badRows };
  }
}

/** The same in a process of its own, whose peak memory is its own and which is killed when it takes too long. */
function peakMebibytes(item: HostileCase, seconds: number): Promise<number> {
  const code = `
    const [dist, mapping, path] = process.argv.slice(1);
    const { loadMapping } = await import(dist + '/config/mapping.js');
    const { readMetas } = await import(dist + '/dataset/read.js');
    const none = () => undefined;
    await readMetas({ episodes: [path], scenarios: null, reportLabels: null, tools: null }, await loadMapping(mapping),
      { where: {}, maxBad: 1, onExclusion: none, onWarning: none }).catch((error) => { if (error.exitCode !== 65) throw error; });
    console.log(process.resourceUsage().maxRSS / 1024);`;
  if (!existsSync(join(DIST, 'dataset/read.js'))) throw new Error(`${DIST}: build first (npm run build)`);
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      ['--input-type=module', '-e', code, DIST, MAPPING, join(hostileFixtures(), item.file)],
      { timeout: seconds * 1000 },
      (error, stdout, stderr) => {
        if (error) reject(new Error(`${item.id}: ${error.killed === true ? `killed after ${seconds} s` : stderr}`));
        else resolve(Number(stdout));
      },
    );
  });
}

/** A hang is told from a slow machine by a wide margin. */
const PATIENCE = 6;
const DEFAULT_SECONDS = 60;

/** Outcome, what the message names, rows kept and rows set aside, limits, and that nothing leaks into prototypes. */
export function testCases(cases: readonly HostileCase[]): void {
  for (const item of cases) {
    it(`${item.id}: ${item.outcome}`, async () => {
      const found = await read(item);
      const allowed = [item.outcome, ...(item.also_ok ?? [])];
      expect({ ...found, allowed: allowed.includes(found.outcome) }).toEqual({ ...found, allowed: true });
      if (found.outcome !== 'accept')
        expect({ message: found.message, missing: missingFrom(found.message, item) }).toEqual({
          message: found.message,
          missing: [],
        });
      if (found.outcome === item.outcome && typeof item.rows_out === 'number') expect(found.rows).toBe(item.rows_out);
      const bad = item.bad_rows ?? item.bad_lines;
      if (found.outcome === 'quarantine-row' && bad !== undefined) expect(found.badRows).toEqual(bad);
      // oxlint-disable-next-line no-control-regex -- escape characters of the data must not reach a terminal
      expect(found.message).not.toMatch(/[\u0000-\u0008\u001b]/);
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    });
    if (item.limits !== undefined)
      it(`${item.id}: within its limits`, async () => {
        const { rss_mib: most, seconds } = item.limits ?? {};
        const peak = await peakMebibytes(item, (seconds ?? DEFAULT_SECONDS) * PATIENCE);
        if (most !== undefined) expect(peak).toBeLessThan(most);
      });
  }
}
