import type { ChildProcess } from 'node:child_process';
import { DataError, TryAgainError } from '../errors.ts';
import type { ActivationBlock, ModelInfo, Replayer, ReplaySequence, Tap } from '../types.ts';
import { childPath, residentBytes, startChild } from './child-process.ts';
import { inspectModel } from './inspect-model.ts';
import type { Counts, FromChild, OpenMessage, ToChild } from './protocol.ts';
import { SequenceError } from './sequence-error.ts';
import { mergeHealth, type TapHealth } from './tap-health.ts';

export interface ReplayerOptions {
  /** Model folder, or a .onnx file in one. */
  readonly folder: string;
  /** Picks `model_<dtype>.onnx` where a folder has several. */
  readonly dtype?: string;
  readonly taps: readonly Tap[];
  readonly threads: number;
  readonly executionProvider?: 'cpu' | 'cuda' | 'webgpu';
  /** Tokens per forward pass (default 512); Infinity = whole sequences. */
  readonly chunk?: number;
  /** The child is ended when its resident memory passes this; null = no limit. */
  readonly memoryCapBytes?: number | null;
  /** false: every sequence is computed alone (for checks). */
  readonly sharing?: boolean;
  /**
   * Leading tokens that all sequences of all calls share (default 0): a chunk ends there, so that every call after the first
   * takes them over whole. Like `chunk` it moves the last bits of the results.
   */
  readonly rootTokens?: number;
  /** false: nothing is taken over from one call of `replay` to the next (for measurements). */
  readonly carry?: boolean;
  readonly graphOptimization?: 'disabled' | 'basic' | 'extended' | 'all';
  /** Known already (from `inspectModel`): saves hashing the weights again. */
  readonly info?: ModelInfo;
  /** Tokens computed since the last call of it, as they happen. */
  readonly onProgress?: (tokens: number) => void;
  /** Another child process, for tests of what happens when one dies. */
  readonly childFile?: string;
}

export interface ModelReplayer extends Replayer {
  /** Non-finite values, overflow and zero rows per tap, over everything replayed so far. */
  health(): readonly TapHealth[];
}

const DEFAULT_CHUNK = 512;
/** Blocks the reader has not taken yet may hold this much memory before the child has to wait. */
const UNREAD_BYTES = 64 * 2 ** 20;
const MEMORY_CHECK_MS = 200;

/**
 * Opens a model in its own process. The process is started on the first call of `replay` and again after it died.
 * @throws DataError when the folder, a tap, or the graph cannot be used, with the reason
 */
export async function openReplayer(options: ReplayerOptions): Promise<ModelReplayer> {
  const inspected = await inspectModel(options.folder, {
    ...(options.dtype === undefined ? {} : { dtype: options.dtype }),
    hash: options.info === undefined,
  });
  const info = options.info ?? inspected.info;
  const missing = options.taps.find((t) => !inspected.taps.some((have) => have.tap === t));
  if (missing !== undefined) {
    const last = info.blocks - 1;
    throw new DataError(
      `${options.folder}: expected a tap of this model (embed, resid_mid.0 … resid_post.${last}, final_norm), got ${missing}.`,
    );
  }
  if (inspected.refused !== null && (options.executionProvider ?? 'cpu') === 'cpu') {
    throw new DataError(`${options.folder}: ${inspected.refused}.`);
  }
  const connection = createConnection(options);
  await connection.start();
  return {
    info,
    taps: options.taps,
    replay: (sequences, signal) => connection.replay(checkSequences(sequences, info), signal),
    stats: () => connection.stats(),
    health: () => connection.health(),
    close: () => connection.close(),
  };
}

function checkSequences(sequences: readonly ReplaySequence[], info: ModelInfo): readonly ReplaySequence[] {
  for (const [i, { ids, rows }] of sequences.entries()) {
    for (let k = 0; k < rows.length; k++) {
      const row = rows[k] ?? -1;
      if (row < 0 || row >= ids.length || (k > 0 && row <= (rows[k - 1] ?? 0))) {
        throw new RangeError(`sequence ${i}: expected ascending rows in [0, ${ids.length}), got ${row} at index ${k}`);
      }
    }
    const wrong = ids.findIndex((id) => id < 0 || (info.vocabularySize > 0 && id >= info.vocabularySize));
    if (wrong >= 0) {
      throw new DataError(
        `sequence ${i}, token ${wrong}: expected an id below the model's vocabulary of ${info.vocabularySize}, got ${ids[wrong]}. Tokenizer and model do not belong together.`,
      );
    }
  }
  return sequences;
}

interface Connection {
  start(): Promise<void>;
  replay(sequences: readonly ReplaySequence[], signal?: AbortSignal): AsyncGenerator<ActivationBlock>;
  stats(): Counts & { readonly seconds: number; readonly peakRssBytes: number };
  health(): readonly TapHealth[];
  close(): Promise<void>;
}

function createConnection(options: ReplayerOptions): Connection {
  const cap = options.memoryCapBytes ?? null;
  let running: { readonly child: ChildProcess; readonly lastWords: () => string } | null = null;
  let total: Counts = { forwardPasses: 0, computedTokens: 0, naiveTokens: 0 };
  let health: readonly TapHealth[] = [];
  let seconds = 0;
  let peakRssBytes = 0;
  let busy = false;

  const openMessage: OpenMessage = {
    kind: 'open',
    folder: options.folder,
    dtype: options.dtype ?? null,
    taps: options.taps,
    threads: options.threads,
    executionProvider: options.executionProvider ?? 'cpu',
    chunk: Number.isFinite(options.chunk ?? DEFAULT_CHUNK) ? (options.chunk ?? DEFAULT_CHUNK) : 0,
    sharing: options.sharing ?? true,
    carry: options.carry ?? true,
    rootTokens: options.rootTokens ?? 0,
    graphOptimization: options.graphOptimization ?? 'all',
  };

  /**
   * Runs one request: sends `message`, hands every answer to `onMessage` until it returns true, and turns a death, a passed
   * memory cap or an abort into an error. The child is gone after any of these.
   */
  const request = (
    message: ToChild,
    onMessage: (answer: FromChild) => boolean,
    signal: AbortSignal | undefined,
  ): Promise<void> =>
    new Promise((resolve, reject) => {
      const { child, lastWords } = (running ??= startChild(options.childFile ?? childPath('child')));
      let sequence = -1;
      let overCap = 0;
      const finish = (error: Error | null, kill: boolean): void => {
        clearInterval(timer);
        child.off('message', receive);
        child.off('exit', exited);
        signal?.removeEventListener('abort', aborted);
        if (kill) {
          running = null;
          child.kill('SIGKILL');
        }
        if (error) reject(error);
        else resolve();
      };
      const receive = (answer: FromChild): void => {
        if (answer.kind === 'pass') sequence = answer.sequence;
        if (answer.kind === 'progress') options.onProgress?.(answer.tokens);
        if (answer.kind === 'failed') {
          const error =
            answer.sequence >= 0
              ? new SequenceError(
                  answer.sequence,
                  'runtime',
                  `sequence ${answer.sequence}: ${answer.message.split('\n')[0]}`,
                )
              : answer.expected
                ? new DataError(answer.message)
                : new Error(answer.message);
          finish(error, true);
          return;
        }
        if (onMessage(answer)) finish(null, false);
      };
      const exited = (code: number | null, reason: string | null): void => {
        const how =
          overCap > 0 ? 'was ended' : reason === null ? `ended with exit code ${code}` : `was killed by ${reason}`;
        const words = lastWords();
        const text =
          overCap > 0
            ? `the model process used ${mib(overCap)} MiB, more than the cap of ${mib(cap ?? 0)} MiB, and ${how}. Raise the cap, or lower the chunk size.`
            : `the model process ${how}${words ? ` (${words})` : ''}.`;
        const error =
          sequence >= 0
            ? new SequenceError(sequence, overCap > 0 ? 'memory' : 'died', `sequence ${sequence}: ${text}`)
            : new TryAgainError(`${options.folder}: ${text}`);
        finish(error, true);
      };
      const aborted = (): void => {
        const reason: unknown = signal?.reason;
        finish(reason instanceof Error ? reason : new Error('aborted'), true);
      };
      const timer = setInterval(() => {
        const memory = residentBytes(child.pid);
        if (!memory) return;
        peakRssBytes = Math.max(peakRssBytes, memory.peak);
        if (cap !== null && memory.now > cap) {
          overCap = memory.now;
          child.kill('SIGKILL');
        }
      }, MEMORY_CHECK_MS);
      timer.unref();
      child.on('message', receive);
      child.on('exit', exited);
      signal?.addEventListener('abort', aborted);
      if (signal?.aborted) aborted();
      else child.send(message, (error) => error && exited(child.exitCode, child.signalCode));
    });

  const start = (signal?: AbortSignal): Promise<void> => request(openMessage, (a) => a.kind === 'ready', signal);

  async function* replay(sequences: readonly ReplaySequence[], signal?: AbortSignal): AsyncGenerator<ActivationBlock> {
    if (busy) throw new Error('one replay at a time: read the last one to its end first');
    busy = true;
    const started = performance.now();
    const ready = new Map<number, Float32Array>();
    let unread = 0;
    let owed = 0;
    let next = 0;
    let failure: Error | null = null;
    let over = false;
    let wake: () => void = nothing;
    const acknowledge = (): void => {
      // Only blocks the reader could take count: those that wait for an earlier one must not stop the child.
      if (owed > 0 && (unread < UNREAD_BYTES || !ready.has(next))) {
        owed--;
        running?.child.send({ kind: 'ack' } satisfies ToChild);
      }
    };
    try {
      if (!running) await start(signal);
      const work = request(
        { kind: 'replay', sequences },
        (answer) => {
          if (answer.kind === 'block') {
            ready.set(answer.sequence, answer.data);
            unread += answer.data.byteLength;
            owed++;
            acknowledge();
            wake();
          } else if (answer.kind === 'done') {
            total = add(total, answer.counts);
            health = mergeHealth(health, answer.health);
            return true;
          }
          return false;
        },
        signal,
      )
        .catch((error: unknown) => {
          failure = error as Error;
        })
        .finally(() => {
          over = true;
          wake();
        });
      while (next < sequences.length) {
        const data = ready.get(next);
        if (data) {
          ready.delete(next);
          unread -= data.byteLength;
          yield { sequence: next, data };
          next++;
          acknowledge();
        } else if (over) break;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
      await work;
      if (failure !== null) throw failure as Error;
      if (next < sequences.length)
        throw new Error(`the model process returned ${next} of ${sequences.length} sequences`);
    } finally {
      if (!over && running) {
        // The reader stopped early: what is still being computed is of no use.
        const { child } = running;
        running = null;
        child.removeAllListeners('exit');
        child.kill('SIGKILL');
      }
      seconds += (performance.now() - started) / 1000;
      busy = false;
    }
  }

  return {
    start: () => start(),
    replay,
    stats: () => ({ ...total, seconds, peakRssBytes }),
    health: () => health,
    close: async () => {
      const child = running?.child;
      running = null;
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
    },
  };
}

const nothing = (): void => undefined;
const mib = (bytes: number): number => Math.round(bytes / 2 ** 20);
const add = (a: Counts, b: Counts): Counts => ({
  forwardPasses: a.forwardPasses + b.forwardPasses,
  computedTokens: a.computedTokens + b.computedTokens,
  naiveTokens: a.naiveTokens + b.naiveTokens,
});
