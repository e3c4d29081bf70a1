import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openReplayer, type ModelReplayer } from '../../src/model/open-replayer.ts';
import { SequenceError } from '../../src/model/sequence-error.ts';
import type { ReplaySequence } from '../../src/types.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

/** Answers like the real child, with the first id of each sequence as its activations, and dies in the way that id says. */
const FAKE_CHILD = `
const say = (m) => new Promise((done) => process.send(m, done));
let acknowledge = () => {};
process.on('message', async (m) => {
  if (m.kind === 'ack') return acknowledge();
  if (m.kind === 'open') return say({ kind: 'ready', width: 32 });
  for (const [sequence, s] of m.sequences.entries()) {
    await say({ kind: 'pass', sequence });
    if (s.ids[0] === 200) process.kill(process.pid, 'SIGSEGV');
    if (s.ids[0] === 201) process.exit(9);
    if (s.ids[0] === 202) { console.error('first line\\nout of something'); process.abort(); }
    if (s.ids[0] === 203) return say({ kind: 'failed', sequence, expected: false, message: 'kernel said no\\n    at stack' });
    const taken = new Promise((done) => { acknowledge = done; });
    await say({ kind: 'block', sequence, data: Float32Array.of(s.ids[0]) });
    await taken;
  }
  await say({ kind: 'done', counts: { forwardPasses: 1, computedTokens: 1, naiveTokens: 1 }, health: [] });
});
process.on('disconnect', () => process.exit(0));
`;

let folder: string;
let replayer: ModelReplayer;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'forewarn-death-'));
  await writeTinyModel(folder, 3);
  const childFile = path.join(folder, 'child.mjs');
  await writeFile(childFile, FAKE_CHILD);
  replayer = await openReplayer({ folder, taps: ['embed'], threads: 1, childFile });
});
afterAll(async () => {
  await replayer.close();
  await rm(folder, { recursive: true });
});

const of = (...first: number[]): ReplaySequence[] =>
  first.map((id) => ({ ids: Int32Array.of(id), rows: Int32Array.of(0) }));

async function replay(sequences: readonly ReplaySequence[]): Promise<{ read: number[]; error: unknown }> {
  const read: number[] = [];
  try {
    for await (const block of replayer.replay(sequences)) read.push(block.data[0] ?? NaN);
    return { read, error: null };
  } catch (error) {
    return { read, error };
  }
}

describe('a model process that dies', () => {
  it.each([
    [200, 'died', /sequence 2: the model process was killed by SIGSEGV/],
    [201, 'died', /sequence 2: the model process ended with exit code 9/],
    [202, 'died', /sequence 2: the model process was killed by SIGABRT \(out of something\)/],
    [203, 'runtime', /^sequence 2: kernel said no$/],
  ] as const)('is reported with the sequence it died on (%i)', async (id, kind, message) => {
    const { read, error } = await replay(of(1, 2, id, 4));
    expect(read).toEqual([1, 2]);
    expect(error).toBeInstanceOf(SequenceError);
    expect(error).toMatchObject({ sequence: 2, kind, exitCode: 65 });
    expect((error as Error).message).toMatch(message);
  });

  it('is started again by the next call', async () => {
    await replay(of(200));
    expect(await replay(of(5, 6))).toEqual({ read: [5, 6], error: null });
  });

  it('is reported as a thing to try again when it dies before any sequence', async () => {
    const dead = path.join(folder, 'dead.mjs');
    await writeFile(dead, 'process.exit(3);');
    await expect(openReplayer({ folder, taps: ['embed'], threads: 1, childFile: dead })).rejects.toMatchObject({
      exitCode: 75,
      message: expect.stringContaining('ended with exit code 3') as string,
    });
  });

  it('is not waited for by two calls at once: the second is refused', async () => {
    const running = replayer.replay(of(1, 2, 3))[Symbol.asyncIterator]();
    await running.next();
    expect((await replay(of(4))).error).toMatchObject({
      message: expect.stringContaining('one replay at a time') as string,
    });
    await running.return?.();
    expect((await replay(of(4))).read).toEqual([4]);
  });
});
