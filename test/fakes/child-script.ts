import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** Address of a built module, for code that runs in a process of its own (Node 20 does not run TypeScript). */
export function built(module: string): string {
  const url = new URL(`../../dist/${module}`, import.meta.url);
  if (!existsSync(fileURLToPath(url))) throw new Error(`dist/${module} is missing: run npm run build first`);
  return url.href;
}

export interface ChildScript {
  readonly process: ChildProcess;
  /** Resolves at the child's first line of output. */
  readonly started: Promise<void>;
  /** Everything it printed, once it has ended. @throws Error when it failed by itself, not by a signal */
  readonly ended: Promise<string>;
}

/** Runs ES module code in a process of its own. */
export function runScript(code: string): ChildScript {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const started = once(child.stdout, 'data').then(() => undefined);
  const ended = once(child, 'close').then(([code_]) => {
    if (code_ !== null && code_ !== 0) throw new Error(`the child ended with ${String(code_)}: ${err}`);
    return out;
  });
  // Whoever waits for `started` alone must not meet an unhandled rejection.
  ended.catch(() => undefined);
  return { process: child, started, ended };
}
