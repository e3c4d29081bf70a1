import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256 } from '../../src/lib/content-hash.ts';
import { saveProbe } from '../../src/probe/artefact.ts';
import { probabilities } from '../../src/probe/score.ts';
import { writeShard } from '../../src/store/activation-shards.ts';
import type { FeatureKey } from '../../src/types.ts';
import { anOrigin, aProbe } from '../probe/a-probe.ts';

interface Cell {
  readonly cell_type: string;
  readonly source: readonly string[];
  readonly execution_count?: number | null;
  readonly outputs?: readonly { readonly output_type: string; readonly text?: readonly string[] }[];
}

const path = fileURLToPath(new URL('../../docs/load-a-probe.ipynb', import.meta.url));
const { cells } = JSON.parse(readFileSync(path, 'utf8')) as { readonly cells: readonly Cell[] };
const code = cells.filter((cell) => cell.cell_type === 'code');
const sources = code.map((cell) => cell.source.join(''));

const root = mkdtempSync(join(tmpdir(), 'forewarn-notebook-'));
const run = join(root, 'run');
const model = join(root, 'model');
const data = Float32Array.from({ length: 20 }, (_, i) => Math.sin(i) * 3);
const keys = ['pre_action', 'reasoning_end', 'reasoning_end', 'pre_action', 'reasoning_end'].map(
  (position, turn): FeatureKey => ({ episode: 'e', turn, position }),
);
let probe = '';

function python(script: string): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const env = { ...process.env, RUN: run, PROBE: probe, MODEL: model, ROOT: root };
  return spawnSync(process.env['FOREWARN_PYTHON'] ?? 'python3', ['-c', script], { env, encoding: 'utf8' });
}

beforeAll(async () => {
  mkdirSync(model);
  writeFileSync(join(model, 'model.onnx'), 'weights');
  probe = await saveProbe(join(run, 'probes'), aProbe, {
    ...anOrigin,
    model: { ...anOrigin.model, hashes: { 'model.onnx': sha256('weights') } },
  });
  await writeShard(
    run,
    { keyHash: 'k', shard: 0, computedTokens: 0, seconds: 0, skipped: [], dtype: 'float32' },
    { keys, taps: aProbe.taps, width: 4, data: [data] },
  );
});
afterAll(() => rmSync(root, { recursive: true }));

describe('docs/load-a-probe.ipynb', () => {
  it('was executed: every code cell has its number in order and what it printed, and no error', () => {
    expect(code.map((cell) => cell.execution_count)).toEqual(code.map((_, index) => index + 1));
    const outputs = code.flatMap((cell) => cell.outputs ?? []);
    expect(outputs.map(({ output_type }) => output_type)).not.toContain('error');
    expect(outputs.flatMap(({ text }) => text ?? []).join('')).toContain('not good for: another model');
  });

  it('loads a probe in the ten lines that its card shows', () => {
    const onCard = /```python\n([\s\S]*?)```/.exec(readFileSync(join(probe, 'card.md'), 'utf8'))?.[1].trim();
    const ten = sources.find((source) => source.includes('def probability')) ?? '';
    expect(ten.trim().split('\n')).toHaveLength(10);
    expect(ten.trim().replaceAll(/probe \/ /g, '')).toBe(onCard);
  });

  it('gives the probabilities that scoring gives here, for the states at the position of the probe', () => {
    const { stdout, stderr, status } = python(`${sources.join('\n')}\nprint(json.dumps(scores.tolist()))`);
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const wanted = Int32Array.of(1, 2, 4);
    const expected = probabilities(aProbe, { data, rows: 5, columns: 4 }, wanted);
    const got = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as number[];
    expect(got).toHaveLength(3);
    for (const [index, value] of got.entries()) expect(value).toBeCloseTo(expected[index], 12);
    expect(stdout).toContain('refused: ');
  });

  it('stops at a model whose files are not those of the card', () => {
    const script = sources.map((source) =>
      source.replace('\ncheck_model(card, model)\n', '\ncheck_model(card, root)\n'),
    );
    expect(script).not.toEqual(sources);
    const { stderr, status } = python(script.join('\n'));
    expect(status).toBe(1);
    expect(stderr).toMatch(/ValueError: .*model\.onnx: expected sha256 [0-9a-f]{12}…, got no such file/);
  });
});
