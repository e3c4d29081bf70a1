import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkProbeReads, loadProbe, saveProbe } from '../../src/probe/artefact.ts';
import { anOrigin, aProbe } from './a-probe.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'forewarn-probe-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const { hashes } = anOrigin.model;

/** Changes card.json of a saved probe. */
function edit(folder: string, change: (text: string) => string): void {
  const path = join(folder, 'card.json');
  writeFileSync(path, change(readFileSync(path, 'utf8')));
}

describe('a probe folder', () => {
  test('comes back as it was saved, at a path named for model, target and content', async () => {
    const folder = await saveProbe(root, aProbe, anOrigin);
    expect(folder.slice(root.length)).toMatch(/^\/a_tiny_model\/first_unsafe_event\/[0-9a-f]{8}$/);
    const { probe, card } = await loadProbe(folder, hashes);
    expect(probe).toEqual(aProbe);
    expect(card).toMatchObject({ ...anOrigin, format: 'forewarn-probe/1', width: 4 });
    expect(await saveProbe(root, aProbe, anOrigin)).toBe(folder);
    const other = await saveProbe(root, { ...aProbe, calibration: { kind: 'none' } }, anOrigin);
    expect(basename(other)).not.toBe(basename(folder));
  });
  test('is refused for a model with other hashes unless any model will do', async () => {
    const folder = await saveProbe(root, aProbe, anOrigin);
    const others: readonly Readonly<Record<string, string>>[] = [
      { 'model.onnx': 'ff'.repeat(32) },
      { ...hashes, 'model.onnx.data': '00' },
      {},
    ];
    for (const other of others) {
      const error = await loadProbe(folder, other).catch((cause: unknown) => cause);
      expect(error).toMatchObject({ exitCode: 78, message: expect.stringMatching(/model\.hashes\.model\.onnx/) });
    }
    expect((await loadProbe(folder, null)).probe).toEqual(aProbe);
  });
  test('is refused for states it cannot read, naming what differs', async () => {
    expect(() => checkProbeReads('p', aProbe, { width: 4, taps: ['embed', 'resid_post.4'] })).not.toThrow();
    expect(() => checkProbeReads('p', aProbe, { width: 576, taps: ['resid_post.4'] })).toThrow(
      'p: width: expected 576, the width of the activations, got 4',
    );
    expect(() => checkProbeReads('p', aProbe, { width: 4, taps: ['embed'] })).toThrow(
      'taps: expected taps that were stored (embed), got resid_post.4',
    );
  });
  test('that is not there, or is a file, says which folder to name', async () => {
    await expect(loadProbe(join(root, 'none'), null)).rejects.toMatchObject({ exitCode: 2 });
    await expect(loadProbe(root, null)).rejects.toThrow('one without card.json');
    const file = join(root, 'probe.bin');
    writeFileSync(file, 'text');
    await expect(loadProbe(file, null)).rejects.toThrow('probe.bin: expected a probe folder, got a file');
  });
  test('with a flipped bit in its arrays is refused', async () => {
    const folder = await saveProbe(root, aProbe, anOrigin);
    const path = join(folder, 'weights.safetensors');
    const bytes = readFileSync(path);
    bytes[bytes.length - 8] ^= 1;
    writeFileSync(path, bytes);
    await expect(loadProbe(folder, hashes)).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringMatching(/weights\.safetensors: sha256: expected/),
    });
  });
  test.each([
    ['"width": 4', '"width": 5', 'weights.safetensors: mean: expected 5 numbers'],
    ['"bias": 0.1', '"bias": NaN', 'bias: expected a finite number, got NaN'],
    ['"slope": 1.25', '"slope": 1e400', 'calibration.slope: expected a finite number, got 1e400'],
    ['"kind": "platt"', '"kind": "spline"', 'calibration.kind: expected none, platt or isotonic, got "spline"'],
    ['"threshold": 0.5', '"threshold": null', 'thresholds[0].threshold'],
    ['"alpha": 0.05', '"alpha": 1', 'thresholds[0].alpha'],
    ['"offset": 1', '"offset": 1.5', 'landmark.offset: expected a whole number of turns, got 1.5'],
    ['"taps"', '"tabs"', 'taps: expected a list of tap names, got nothing'],
    ['"C": 0.1', '"C": "0.1"', 'C: expected a number > 0 or null, got "0.1"'],
  ])('whose card says %s → %s is refused, naming the field', async (before, after, message) => {
    const folder = await saveProbe(root, aProbe, anOrigin);
    edit(folder, (text) => {
      const changed = text.replace(before, after).replace(before.replace(': ', ':'), after.replace(': ', ':'));
      expect(changed).not.toBe(text);
      return changed;
    });
    await expect(loadProbe(folder, hashes)).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringContaining(message),
    });
  });
  test('has a card for people that says what it is good for and what not', async () => {
    const folder = await saveProbe(root, aProbe, anOrigin);
    const text = readFileSync(join(folder, 'card.md'), 'utf8');
    for (const part of [
      '0.710 [0.600, 0.820]',
      'Not good for:\n- another model',
      'undefined: alpha · 40 negatives < 1',
    ]) {
      expect(text).toContain(part);
    }
  });
});

describe('the Python of the card', () => {
  const snippet = (folder: string): string =>
    /```python\n([\s\S]*?)```/.exec(readFileSync(join(folder, 'card.md'), 'utf8'))?.[1] ?? '';

  test('is ten lines', async () => {
    const folder = await saveProbe(root, aProbe, anOrigin);
    expect(snippet(folder).trim().split('\n')).toHaveLength(10);
  });
});
