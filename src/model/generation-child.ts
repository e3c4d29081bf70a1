import type { Tap } from '../types.ts';
import { DataError } from '../errors.ts';
import {
  createGenerationCore,
  type GenerationCore,
  type GenerationRequest,
  type GenerationResult,
} from './generation-core.ts';
import { readModel } from './graph/read-model.ts';
import { isPassDependent } from './graph/supported-ops.ts';
import { steerGraph } from './graph/steer-graph.ts';
import { tapGraph } from './graph/tap-graph.ts';
import type { OpenMessage } from './protocol.ts';
import { openSession } from './session.ts';

export type ToGenerator =
  | { readonly kind: 'open'; readonly options: OpenMessage; readonly keep: number; readonly steer: Tap | null }
  | { readonly kind: 'generate'; readonly request: GenerationRequest; readonly watched: boolean }
  /** Answer to `token` when the request is watched. */
  | { readonly kind: 'go'; readonly on: boolean };
export type FromGenerator =
  | { readonly kind: 'ready' }
  | { readonly kind: 'token'; readonly id: number }
  | { readonly kind: 'result'; readonly result: GenerationResult }
  | { readonly kind: 'failed'; readonly expected: boolean; readonly message: string };

/** Entry point of the process that generates text; see `child.ts` for why it is a process. */
let core: GenerationCore | null = null;
let answer: ((on: boolean) => void) | null = null;

const say = (message: FromGenerator): void => {
  process.send?.(message);
};

async function open({ options, keep, steer }: Extract<ToGenerator, { kind: 'open' }>): Promise<void> {
  const read = await readModel(options.folder, options.dtype === null ? {} : { dtype: options.dtype });
  const passDependent = isPassDependent(read.model.graph);
  if (steer !== null) steerGraph(read.model, read, steer);
  const tapped = tapGraph(read.model, read.index, read, { taps: options.taps, logits: true });
  const session = await openSession(read.file, tapped.model, read.external, options);
  core = createGenerationCore(session, {
    io: read.io,
    states: tapped.states,
    inputs: tapped.inputs,
    taps: tapped.taps,
    width: read.width,
    chunk: options.chunk === 0 ? Infinity : options.chunk,
    sharing: true,
    passDependent,
    logits: read.io.logits,
    keep,
  });
  say({ kind: 'ready' });
}

async function generate(request: GenerationRequest, watched: boolean): Promise<void> {
  if (!core) throw new Error('no model is open');
  const onToken = (id: number): Promise<boolean> => {
    const answered = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    say({ kind: 'token', id });
    return answered;
  };
  say({ kind: 'result', result: await core.generate(request, watched ? onToken : null) });
}

async function serve(message: ToGenerator): Promise<void> {
  try {
    if (message.kind === 'open') await open(message);
    else if (message.kind === 'generate') await generate(message.request, message.watched);
  } catch (error) {
    const expected = error instanceof DataError || error instanceof RangeError;
    const text = error instanceof Error ? (expected ? error.message : (error.stack ?? error.message)) : String(error);
    say({ kind: 'failed', expected, message: text });
  }
}

process.on('message', (message: ToGenerator) => {
  if (message.kind === 'go') answer?.(message.on);
  else void serve(message);
});
process.on('SIGINT', () => undefined);
process.on('disconnect', () => process.exit(0));
