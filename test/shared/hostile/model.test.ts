import { execFileSync } from 'node:child_process';
import { cpSync, linkSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ForewarnError } from '../../../src/errors.ts';
import { inspectModel } from '../../../src/model/inspect-model.ts';
import { openReplayer } from '../../../src/model/open-replayer.ts';
import { hostileCases, hostileFixtures, missingFrom, type HostileCase } from '../fixtures.ts';

interface Setup {
  readonly type: 'symlink' | 'hardlink' | 'fifo';
  readonly path: string;
  readonly target?: string;
}

const cases = hostileCases('model');
// Links and pipes do not survive a checkout, so they are made in a copy.
const root = mkdtempSync(path.join(tmpdir(), 'forewarn-hostile-'));
cpSync(path.join(hostileFixtures(), 'onnx'), path.join(root, 'onnx'), { recursive: true, verbatimSymlinks: true });
afterAll(() => rmSync(root, { recursive: true }));
for (const item of cases) for (const step of (item.setup ?? []) as readonly Setup[]) prepare(step);

function prepare({ type, path: name, target = '' }: Setup): void {
  const place = path.join(root, name);
  rmSync(place, { force: true });
  if (type === 'symlink') symlinkSync(target, place);
  else if (type === 'hardlink') linkSync(path.join(root, target), place);
  else execFileSync('mkfifo', [place]);
}

interface Outcome {
  readonly kind: HostileCase['outcome'];
  readonly message: string;
}

/** Opens the model as extraction does, and reads one row of one tap where it opens. */
async function attempt(file: string): Promise<Outcome> {
  try {
    const { taps, warnings } = await inspectModel(file);
    const replayer = await openReplayer({ folder: file, taps: taps.map((t) => t.tap), threads: 1 });
    for await (const block of replayer.replay([{ ids: Int32Array.of(1, 2, 3), rows: Int32Array.of(2) }])) {
      expect(block.data.every(Number.isFinite)).toBe(true);
    }
    await replayer.close();
    return { kind: warnings.length > 0 ? 'accept-with-warning' : 'accept', message: warnings.join('\n') };
  } catch (error) {
    // Anything but an error meant for the user would be a stack trace on the screen.
    expect(error).toBeInstanceOf(ForewarnError);
    return { kind: 'refuse', message: (error as Error).message };
  }
}

describe('opening a model for extraction', () => {
  it.each(cases.map((item) => [item.id, item] as const))('%s has its expected outcome', async (_, item) => {
    const { kind, message } = await attempt(path.join(root, item.file));
    expect([item.outcome, ...(item.also_ok ?? [])], message).toContain(kind);
    if (kind === item.outcome && kind !== 'accept') expect(missingFrom(message, item), message).toEqual([]);
    expect(message).not.toMatch(/\n/);
  });
});
