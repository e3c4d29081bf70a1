import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { hostileCases, hostileFixtures, missingFrom } from '../fixtures.ts';

/** Opens the template, renders a transcript twice on different days of the machine, and says what came out. */
const SCRIPT = `
  import { readFileSync } from 'node:fs';
  import { templateFromText, bosWarning } from process_argv_template;
  const [path] = process.argv.slice(1);
  const out = {};
  try {
    const template = templateFromText(path, readFileSync(path, 'utf8'), { specialTokens: { bos_token: '<s>' }, kwargs: {}, date: '2025-08-15' });
    out.warnings = [...template.warnings, ...bosWarning(template, '<s>')];
    const message = (role, content) => new Map([['role', role], ['content', content]]);
    try { out.rendered = template.render([message('user', 'hello'), message('assistant', 'hi'), message('tool', 'r')], null, true); }
    catch (error) { out.row = error.message; }
  } catch (error) { out.error = error.message; out.exitCode = error.exitCode; }
  out.polluted = ({}).polluted ?? null;
  out.rss = process.resourceUsage().maxRSS * 1024;
  console.log(JSON.stringify(out));
`;

interface Outcome {
  readonly warnings?: readonly string[];
  readonly rendered?: string;
  readonly row?: string;
  readonly error?: string;
  readonly exitCode?: number;
  readonly polluted: unknown;
  readonly rss: number;
}

async function open(path: string, seconds: number): Promise<Outcome> {
  const module = new URL('../../../dist/plan/chat/template.js', import.meta.url).href;
  const script = SCRIPT.replace('process_argv_template', JSON.stringify(module));
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script, path], {
    timeout: seconds * 1000,
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
  });
  return JSON.parse(stdout) as Outcome;
}

describe('chat templates that make good tools fail', () => {
  for (const item of hostileCases('render')) {
    it(`${item.id}: ${item.outcome}`, async () => {
      const path = join(hostileFixtures(), item.file);
      const limits = (item as unknown as { limits: { seconds: number; rss_mib: number } }).limits;
      const outcome = await open(path, limits.seconds);
      expect(outcome.polluted).toBeNull();
      expect(outcome.rss / 2 ** 20).toBeLessThan(limits.rss_mib);
      const allowed = [item.outcome, ...(item.also_ok ?? [])];
      const got =
        outcome.error !== undefined
          ? 'refuse'
          : outcome.row !== undefined
            ? 'quarantine-row'
            : (outcome.warnings ?? []).length > 0
              ? 'accept-with-warning'
              : 'accept';
      // That a template knows no reasoning is worth a warning in every case; it is no fault of those to be accepted.
      const onlyReasoning = (outcome.warnings ?? []).every((warning) => warning.includes('reasoning:'));
      expect(
        allowed.includes(got) || (got === 'accept-with-warning' && onlyReasoning && allowed.includes('accept')),
        JSON.stringify(outcome),
      ).toBe(true);
      if (got === 'refuse') expect(outcome.exitCode).toBe(65);
      const said = outcome.error ?? [`${item.file} `, outcome.row, ...(outcome.warnings ?? [])].join('\n');
      if (item.outcome !== 'accept') expect({ said, missing: missingFrom(said, item) }).toEqual({ said, missing: [] });
      if (item.id.includes('strftime')) expect(outcome.rendered).toContain('15 Aug 2025');
    });
  }
});
