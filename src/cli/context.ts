import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { InterruptedError } from '../errors.ts';
import type { Clock, Progress } from '../types.ts';
import { createProgress, silentProgress } from './terminal-progress.ts';

/** What a command is handed instead of reaching for it: clock, progress on stderr, result on stdout, a signal to stop. */
export interface CommandContext {
  readonly clock: Clock;
  readonly progress: Progress;
  /** Aborted by Ctrl-C (130) and SIGTERM (143) with an `InterruptedError`. A second signal ends the process at once. */
  readonly signal: AbortSignal;
  /** One line (or one JSON document) of the result. */
  readonly print: (line: string) => void;
}

const systemClock: Clock = { now: () => performance.now(), date: () => new Date() };

export function commandContext(options: { readonly quiet?: boolean } = {}): CommandContext {
  const controller = new AbortController();
  const stop = (code: 130 | 143): void => {
    if (controller.signal.aborted) process.exit(code);
    controller.abort(new InterruptedError('interrupted: the same command goes on where this one stopped', code));
  };
  process.on('SIGINT', () => stop(130));
  process.on('SIGTERM', () => stop(143));
  // `forewarn … | head` closes the pipe early; that is no error of ours, but work that writes a run goes on.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  const sink = {
    isTTY: process.stderr.isTTY,
    columns: process.stderr.columns ?? 80,
    write: (text: string) => {
      process.stderr.write(text);
    },
  };
  return {
    clock: systemClock,
    progress: options.quiet === true ? silentProgress : createProgress(sink, systemClock),
    signal: controller.signal,
    print: (line) => {
      process.stdout.write(`${line}\n`);
    },
  };
}
