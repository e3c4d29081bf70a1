import { DataError, TryAgainError } from '../errors.ts';
import type { ModelInfo, Tap } from '../types.ts';
import { childPath, startChild } from './child-process.ts';
import type { GenerationResult, Steering } from './generation-core.ts';
import type { FromGenerator, ToGenerator } from './generation-child.ts';
import { inspectModel } from './inspect-model.ts';

export interface GeneratorOptions {
  /** Model folder, or a .onnx file in one. */
  readonly folder: string;
  readonly dtype?: string;
  /** Taps whose rows `generate` returns; may be empty. */
  readonly taps: readonly Tap[];
  /** Tap at which `generate` can change the stream (`GenerateOptions.steer`); costs a few small products a token. */
  readonly steer?: Tap;
  readonly threads: number;
  readonly executionProvider?: 'cpu' | 'cuda' | 'webgpu';
  /** Prompt tokens per forward pass (default 512). */
  readonly chunk?: number;
  /** Paths whose states are held for prompts that go on from them (default 8): one per episode played at the same time. */
  readonly keep?: number;
  /** Known already (from `inspectModel`): saves hashing the weights again. */
  readonly info?: ModelInfo;
}

export interface GenerateOptions {
  /** The whole prompt; what earlier calls computed of it is not computed again. */
  readonly ids: Int32Array;
  readonly maxTokens: number;
  /** 0 = greedy. */
  readonly temperature: number;
  /** 1 = no nucleus. */
  readonly topP?: number;
  /** Shared randomness in [0, 1) of step 0, 1, …: asked for all steps before the first. */
  readonly uniform: (step: number) => number;
  readonly stopIds: readonly number[];
  /** Called with each generated id before the next is computed; returning false stops after it. */
  readonly onToken?: (id: number) => boolean | Promise<boolean>;
  /** Return the taps at the last prompt token and at every generated token. */
  readonly capture?: boolean;
  /** Change of the stream at `GeneratorOptions.steer` from the last prompt token on. No later call goes on from a steered state. */
  readonly steer?: Steering;
  /** Tokens taken instead of sampled ones, from step 0 on: what the model would have thought of a given answer. */
  readonly forced?: Int32Array;
  /** Return the log-probability of every generated token. */
  readonly logprobs?: boolean;
  /** Goes on only from states of the same slot (default: one slot for all), so that the numbers do not depend on other calls. */
  readonly slot?: string;
  readonly signal?: AbortSignal;
}

export interface Generator {
  readonly info: ModelInfo;
  readonly taps: readonly Tap[];
  /** One at a time: calls wait for one another. */
  generate(options: GenerateOptions): Promise<GenerationResult>;
  close(): Promise<void>;
}

/**
 * Opens a model for generation in its own process.
 * @throws DataError when the folder, a tap, or the graph cannot be used, with the reason
 */
export async function openGenerator(options: GeneratorOptions): Promise<Generator> {
  const dtype = options.dtype === undefined ? {} : { dtype: options.dtype };
  const inspected = await inspectModel(options.folder, { ...dtype, hash: options.info === undefined });
  const info = options.info ?? inspected.info;
  if (inspected.refused !== null && (options.executionProvider ?? 'cpu') === 'cpu') {
    throw new DataError(`${options.folder}: ${inspected.refused}.`);
  }
  const missing = [...options.taps, ...(options.steer === undefined ? [] : [options.steer])].find(
    (t) => !inspected.taps.some((have) => have.tap === t),
  );
  if (missing !== undefined) throw new DataError(`${options.folder}: expected a tap of this model, got ${missing}.`);
  const chunk = options.chunk ?? 512;
  const open: ToGenerator = {
    kind: 'open',
    keep: options.keep ?? 8,
    steer: options.steer ?? null,
    options: {
      kind: 'open',
      folder: options.folder,
      dtype: options.dtype ?? null,
      taps: options.taps,
      threads: options.threads,
      executionProvider: options.executionProvider ?? 'cpu',
      chunk: Number.isFinite(chunk) ? chunk : 0,
      sharing: true,
      carry: true,
      rootTokens: 0,
      graphOptimization: 'all',
    },
  };
  let running: ReturnType<typeof startChild> | null = null;
  let queue: Promise<unknown> = Promise.resolve();

  /** Sends a message and resolves with the answer that ends it; a death of the child rejects and the next call starts anew. */
  const ask = <T>(
    message: ToGenerator,
    onMessage: (answer: FromGenerator) => T | undefined,
    signal: AbortSignal | undefined,
  ): Promise<T> =>
    new Promise((resolve, reject) => {
      const { child, lastWords } = (running ??= startChild(childPath('generation-child')));
      const settle = (act: () => void, kill: boolean): void => {
        child.off('message', receive);
        child.off('exit', exited);
        signal?.removeEventListener('abort', aborted);
        if (kill) {
          running = null;
          child.kill('SIGKILL');
        }
        act();
      };
      const receive = (answer: FromGenerator): void => {
        if (answer.kind === 'failed') {
          const error = answer.expected ? new DataError(answer.message) : new Error(answer.message);
          settle(() => reject(error), true);
          return;
        }
        const value = onMessage(answer);
        if (value !== undefined) settle(() => resolve(value), false);
      };
      const exited = (code: number | null, how: string | null): void => {
        const why = how === null ? `ended with exit code ${code}` : `was killed by ${how}`;
        settle(() => reject(new TryAgainError(`${options.folder}: the model process ${why} (${lastWords()}).`)), true);
      };
      const aborted = (): void => {
        const reason: unknown = signal?.reason;
        settle(() => reject(reason instanceof Error ? reason : new Error('aborted')), true);
      };
      child.on('message', receive);
      child.on('exit', exited);
      signal?.addEventListener('abort', aborted);
      if (signal?.aborted) aborted();
      else child.send(message);
    });

  const start = (): Promise<true> => ask(open, (a) => (a.kind === 'ready' ? true : undefined), undefined);

  const generate = async (request: GenerateOptions): Promise<GenerationResult> => {
    checkRequest(request, info, options.steer ?? null);
    // Given up while it waited for another call: nothing runs that would have to be ended.
    request.signal?.throwIfAborted();
    if (!running) await start();
    const { onToken } = request;
    const message: ToGenerator = {
      kind: 'generate',
      watched: onToken !== undefined,
      request: {
        ids: request.ids,
        maxTokens: request.maxTokens,
        temperature: request.temperature,
        topP: request.topP ?? 1,
        uniforms: Float64Array.from({ length: request.maxTokens }, (_, step) => request.uniform(step)),
        stopIds: request.stopIds,
        capture: request.capture ?? false,
        slot: request.slot ?? '',
        steer: request.steer ?? null,
        forced: request.forced ?? null,
        logprobs: request.logprobs ?? false,
      },
    };
    let failure: unknown = null;
    const result = await ask(
      message,
      (answer) => {
        if (answer.kind === 'result') return answer.result;
        if (answer.kind === 'token') {
          void Promise.resolve()
            .then(() => onToken?.(answer.id) ?? true)
            .catch((error: unknown) => {
              failure = error;
              return false;
            })
            .then((on) => running?.child.send({ kind: 'go', on } satisfies ToGenerator));
        }
        return undefined;
      },
      request.signal,
    );
    if (failure !== null) throw failure;
    return result;
  };

  await start();
  return {
    info,
    taps: options.taps,
    generate: (request) => {
      const turn = queue.then(() => generate(request));
      queue = turn.catch(() => undefined);
      return turn;
    },
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

function checkRequest(
  { ids, maxTokens, temperature, topP = 1, steer }: GenerateOptions,
  info: ModelInfo,
  steerTap: Tap | null,
): void {
  if (steer !== undefined && steerTap === null)
    throw new RangeError('expected a generator opened with a tap to steer at, got one without');
  for (const name of ['add', 'read', 'write'] as const)
    if (steer !== undefined && steer[name].length !== info.width)
      throw new RangeError(`steer.${name}: expected ${info.width} numbers, got ${steer[name].length}`);
  if (ids.length === 0) throw new RangeError('expected at least one prompt token, got none');
  if (!(maxTokens >= 0) || !(temperature >= 0) || !(topP > 0 && topP <= 1)) {
    throw new RangeError(
      `expected maxTokens >= 0, temperature >= 0 and topP in (0, 1], got ${maxTokens}, ${temperature} and ${topP}`,
    );
  }
  const wrong = ids.findIndex((id) => id < 0 || (info.vocabularySize > 0 && id >= info.vocabularySize));
  if (wrong >= 0) {
    throw new DataError(`prompt token ${wrong}: expected an id below ${info.vocabularySize}, got ${ids[wrong]}.`);
  }
  if (info.contextLimit !== null && ids.length + maxTokens > info.contextLimit) {
    throw new DataError(
      `expected a prompt and answer of at most ${info.contextLimit} tokens, got ${ids.length} + ${maxTokens}. Lower maxTokens or shorten the prompt.`,
    );
  }
}
