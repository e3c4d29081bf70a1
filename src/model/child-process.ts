import { fork, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A child file of this folder: the compiled one also when this file runs as TypeScript (Node 20 cannot run that). */
export function childPath(name: string): string {
  const here = import.meta.url;
  return fileURLToPath(
    here.endsWith('.ts') ? new URL(`../../dist/model/${name}.js`, here) : new URL(`./${name}.js`, here),
  );
}

/** Starts a child whose messages may hold typed arrays. `lastWords`: the last line of its stderr that is no stack. */
export function startChild(file: string): { readonly child: ChildProcess; readonly lastWords: () => string } {
  const child = fork(file, { serialization: 'advanced', stdio: ['ignore', 'ignore', 'pipe', 'ipc'], execArgv: [] });
  let words = '';
  child.stderr?.setEncoding('utf8');
  child.stderr?.on('data', (text: string) => {
    words = (words + text).slice(-4000);
  });
  return { child, lastWords: () => lastLine(words) };
}

/** V8 and libc end with stacks of addresses and frames; what went wrong stands before them. */
function lastLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.findLast((line) => line !== '' && !/^(at |\d+: |-{3,}|#)/.test(line)) ?? '';
}

/** Resident memory of a process and its peak, in bytes; null where the system does not say (other than Linux). */
export function residentBytes(pid: number | undefined): { readonly now: number; readonly peak: number } | null {
  if (pid === undefined || process.platform !== 'linux') return null;
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    const kib = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
    return { now: kib('VmRSS') * 1024, peak: kib('VmHWM') * 1024 };
  } catch {
    return null; // it has just ended
  }
}
