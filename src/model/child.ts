import { DataError } from '../errors.ts';
import type { ReplaySequence } from '../types.ts';
import { embedObstacle } from './inspect-model.ts';
import { readModel } from './graph/read-model.ts';
import { isPassDependent } from './graph/supported-ops.ts';
import { tapGraph } from './graph/tap-graph.ts';
import { measureTaps } from './live-taps.ts';
import type { FromChild, OpenMessage, ToChild } from './protocol.ts';
import { createReplayCore, type ReplayCore } from './replay-core.ts';
import { openSession } from './session.ts';

/**
 * Entry point of the process that runs the model. onnxruntime's `run` blocks the event loop for its whole duration, and
 * ending a worker thread inside it ends the whole process; a child can be killed at any moment.
 */
let core: ReplayCore | null = null;
let acknowledge: (() => void) | null = null;
let current = -1;

/** Resolves when the message is on its way: what was said before a crash is then known to the parent. */
const say = (message: FromChild): Promise<void> =>
  new Promise((resolve, reject) => {
    process.send?.(message, (error: Error | null) => {
      if (error) reject(error);
      else resolve();
    });
  });

async function open(message: OpenMessage): Promise<void> {
  const read = await readModel(message.folder, message.dtype === null ? {} : { dtype: message.dtype });
  const obstacle = embedObstacle(read);
  if (obstacle !== null) throw new DataError(`${message.folder}: ${obstacle}`);
  const tapped = tapGraph(read.model, read.index, read, { taps: message.taps, logits: false });
  const session = await openSession(read.file, tapped.model, read.external, message);
  core = createReplayCore(session, {
    io: read.io,
    states: tapped.states,
    inputs: tapped.inputs,
    taps: tapped.taps,
    width: read.width,
    chunk: message.chunk === 0 ? Infinity : message.chunk,
    sharing: message.sharing,
    carry: message.carry,
    rootTokens: message.rootTokens,
    passDependent: isPassDependent(read.model.graph),
  });
  await say({ kind: 'ready', width: read.width });
}

async function replay(sequences: readonly ReplaySequence[]): Promise<void> {
  if (!core) throw new Error('no model is open');
  await core.replay(sequences, {
    onPass: (sequence) => {
      current = sequence;
      return say({ kind: 'pass', sequence });
    },
    onProgress: (tokens) =>
      void say({ kind: 'progress', tokens, rss: process.memoryUsage.rss() }).catch(() => undefined),
    onBlock: async (sequence, data) => {
      const taken = new Promise<void>((resolve) => {
        acknowledge = resolve;
      });
      await say({ kind: 'block', sequence, data });
      await taken;
    },
  });
  await say({ kind: 'done', ...core.take() });
}

async function serve(message: ToChild): Promise<void> {
  try {
    current = -1;
    if (message.kind === 'open') await open(message);
    else if (message.kind === 'check') {
      const { folder, dtype, taps } = message.open;
      await say({ kind: 'checked', effects: await measureTaps(folder, dtype, taps, message.open) });
    } else if (message.kind === 'replay') await replay(message.sequences);
  } catch (error) {
    const expected = error instanceof DataError;
    const text = error instanceof Error ? (expected ? error.message : (error.stack ?? error.message)) : String(error);
    await say({ kind: 'failed', sequence: current, expected, message: text }).catch(() => process.exit(1));
  }
}

process.on('message', (message: ToChild) => {
  if (message.kind === 'ack') acknowledge?.();
  else void serve(message);
});
// Ctrl-C reaches the whole process group; the parent decides what happens to the child.
process.on('SIGINT', () => undefined);
process.on('disconnect', () => process.exit(0));
