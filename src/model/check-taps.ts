import { DataError, TryAgainError } from '../errors.ts';
import { childPath, startChild } from './child-process.ts';
import type { TapEffect } from './live-taps.ts';
import type { FromChild, OpenMessage, ToChild } from './protocol.ts';
import type { Tap } from '../types.ts';

export interface CheckTapsOptions {
  readonly folder: string;
  readonly dtype?: string;
  readonly taps: readonly Tap[];
  readonly threads?: number;
  readonly executionProvider?: 'cpu' | 'cuda' | 'webgpu';
  readonly signal?: AbortSignal;
}

/**
 * What adding a vector at each tap does to the logits, measured in a process of its own, whose memory goes with it.
 * @throws DataError (65) with the runtime's reason, TryAgainError (75) when the process dies
 */
export function checkTaps(options: CheckTapsOptions): Promise<readonly TapEffect[]> {
  const open: OpenMessage = {
    kind: 'open',
    folder: options.folder,
    dtype: options.dtype ?? null,
    taps: options.taps,
    threads: options.threads ?? 1,
    executionProvider: options.executionProvider ?? 'cpu',
    chunk: 0,
    sharing: false,
    carry: false,
    rootTokens: 0,
    graphOptimization: 'all',
  };
  const { child, lastWords } = startChild(childPath('child'));
  const { signal } = options;
  return new Promise<readonly TapEffect[]>((resolve, reject) => {
    const aborted = (): void => reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
    if (signal?.aborted) aborted();
    signal?.addEventListener('abort', aborted);
    child.on('message', (answer: FromChild) => {
      if (answer.kind === 'checked') resolve(answer.effects);
      if (answer.kind === 'failed') reject(answer.expected ? new DataError(answer.message) : new Error(answer.message));
    });
    child.on('exit', (code, how) => {
      const words = lastWords();
      reject(
        new TryAgainError(
          `${options.folder}: expected the effect of each tap on the logits, got a model process that ended with ${how ?? code}${words ? ` (${words})` : ''}. Check that there is memory for the model`,
        ),
      );
    });
    child.send({ kind: 'check', open } satisfies ToChild);
  }).finally(() => {
    child.removeAllListeners('exit');
    child.kill('SIGKILL');
  });
}

/** @throws DataError (65) naming the first tap that the model does not read: a probe there would read what has no effect */
export function refuseDeadTaps(folder: string, effects: readonly TapEffect[]): void {
  const dead = effects.filter(({ moved }) => moved === 0);
  if (dead.length === 0) return;
  throw new DataError(
    `${folder}: ${dead[0].tap}: expected a tap that the model reads (adding a vector there moves the logits), got logits that stay as they are${dead.length > 1 ? `, as at ${dead.length - 1} more taps` : ''}. The graph was traced or exported wrongly: leave the tap out, or report it`,
  );
}
