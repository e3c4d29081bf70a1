/**
 * kill −9 at random moments: a run that is killed and started again must end with the same metrics.json, byte for byte.
 *
 *   npm run bench:kill -- CONFIG [--kills 30] [--per-run 5] [--seed 1] [--json]
 *
 * A reference run is made first. Then, until the kills are used up, a fresh run is started, killed `per-run` times at
 * moments drawn uniformly over the reference duration (only the parent is killed; its inference child has to notice), and
 * let through. Temporary files left behind are counted. Exit 1 when one metrics.json differs.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { seededRng } from '../src/lib/rng.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kills: { type: 'string', default: '30' },
    'per-run': { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
});
const config = positionals[0];
if (config === undefined) throw new Error('usage: kill-resume CONFIG [--kills 30] [--per-run 5] [--seed 1] [--json]');
const bin = fileURLToPath(new URL('../bin/forewarn.js', import.meta.url));
const rng = seededRng('kill-resume', Number(values.seed));
const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

/** Runs to the end, or for `limit` seconds and then kill −9. Returns the seconds it ran, or null when it was killed. */
function attempt(out: string, limit: number | null): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const from = performance.now();
    const child = spawn(process.execPath, [bin, 'run', config, '--out', out], { stdio: ['ignore', 'ignore', 'pipe'] });
    let tail = '';
    child.stderr.on('data', (data: Buffer) => {
      tail = (tail + data.toString()).slice(-2000);
    });
    const timer = limit === null ? null : setTimeout(() => child.kill('SIGKILL'), limit * 1000);
    child.on('exit', (code, signal) => {
      if (timer) clearTimeout(timer);
      if (signal === 'SIGKILL') resolve(null);
      else if (code === 0) resolve((performance.now() - from) / 1000);
      else reject(new Error(`exit ${code ?? signal}: ${tail}`));
    });
  });
}

function result(out: string): { readonly sha256: string; readonly leftovers: readonly string[] } {
  const folder = join(out, readdirSync(out)[0]);
  const sha256 = createHash('sha256')
    .update(readFileSync(join(folder, 'metrics.json')))
    .digest('hex');
  const files = readdirSync(folder, { recursive: true }).map(String);
  return { sha256, leftovers: files.filter((file) => file.endsWith('.tmp')) };
}

const fresh = (): string => mkdtempSync(join(tmpdir(), 'forewarn-kill-'));
const reference = fresh();
const seconds = await attempt(reference, null);
if (seconds === null) throw new Error('the reference run was killed by somebody else');
const expected = result(reference).sha256;
rmSync(reference, { recursive: true });
say(`reference: ${seconds.toFixed(1)} s, metrics ${expected.slice(0, 12)}`);

let left = Number(values.kills);
let killed = 0;
const wrong: string[] = [];
const leftovers: string[] = [];
while (left > 0) {
  const out = fresh();
  for (let k = 0; k < Number(values['per-run']) && left > 0; k += 1) {
    // The first kill falls anywhere in a whole run, the later ones anywhere in what is about left of it.
    const at = rng.next() * seconds * (k === 0 ? 1 : 0.5);
    const done = await attempt(out, at);
    left -= 1;
    if (done === null) killed += 1;
    say(`${done === null ? 'killed' : 'had finished'} after ${(done ?? at).toFixed(1)} s, ${left} left`);
    if (done !== null) break;
  }
  await attempt(out, null);
  const { sha256, leftovers: found } = result(out);
  leftovers.push(...found);
  if (sha256 !== expected) wrong.push(sha256);
  rmSync(out, { recursive: true });
}
const summary = {
  kills: killed,
  finishedBeforeTheKill: Number(values.kills) - killed,
  differing: wrong.length,
  temporaryFilesLeft: leftovers.length,
};
process.stdout.write(`${JSON.stringify(summary, null, values.json ? 0 : 2)}\n`);
process.exitCode = wrong.length > 0 ? 1 : 0;
