import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { saveProbe } from '../../src/probe/artefact.ts';
import { probabilities } from '../../src/probe/score.ts';
import type { FeatureMatrix, Probe } from '../../src/types.ts';
import { anOrigin, aProbe } from '../probe/a-probe.ts';

/** A Python with numpy and safetensors (test/python/requirements.txt), named by FOREWARN_PYTHON. Missing = a failure. */
function pythonOrFail(): string {
  const python = process.env['FOREWARN_PYTHON'] ?? 'python3';
  if (spawnSync(python, ['-c', 'import numpy, safetensors']).status !== 0) {
    throw new Error(
      `${python} has no numpy and safetensors: install test/python/requirements.txt and name it in FOREWARN_PYTHON`,
    );
  }
  return python;
}

const root = mkdtempSync(join(tmpdir(), 'forewarn-card-'));
afterAll(() => rmSync(root, { recursive: true }));

const calibrations: readonly Probe['calibration'][] = [
  { kind: 'none' },
  { kind: 'platt', slope: 1.25, intercept: -0.5 },
  { kind: 'isotonic', thresholds: [-1, 0, 2], values: [0.1, 0.4, 0.9] },
];

describe('the Python lines of a probe card', () => {
  it.each(calibrations)('give the probabilities that scoring gives here: $kind', async (calibration) => {
    const python = pythonOrFail();
    const x: FeatureMatrix = {
      data: Float32Array.from({ length: 12 }, (_, i) => Math.sin(i) * 3),
      rows: 3,
      columns: 4,
    };
    const probe = { ...aProbe, calibration };
    const folder = await saveProbe(root, probe, anOrigin);
    const lines = /```python\n([\s\S]*?)```/.exec(readFileSync(join(folder, 'card.md'), 'utf8'))?.[1] ?? '';
    const script = `${lines}\nprint(json.dumps(probability(np.array(${JSON.stringify(Array.from(x.data))}).reshape(3, 4)).tolist()))`;
    const { stdout, stderr } = spawnSync(python, ['-c', script], { cwd: folder, encoding: 'utf8' });
    expect(stderr).toBe('');
    const expected = probabilities(probe, x);
    const got = JSON.parse(stdout) as number[];
    expect(got).toHaveLength(expected.length);
    for (const [index, value] of got.entries()) expect(value).toBeCloseTo(expected[index], 12);
  });
});
