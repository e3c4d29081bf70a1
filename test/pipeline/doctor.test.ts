import { mkdtempSync, rmSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { doctor } from '../../src/pipeline/doctor.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

const root = mkdtempSync(join(tmpdir(), 'forewarn-doctor-'));

describe('doctor', () => {
  beforeAll(() => writeTinyModel(join(root, 'model'), 2));
  afterAll(() => rmSync(root, { recursive: true }));

  it('lists layers, taps with their values, state, and that each tap is live', async () => {
    const { model, findings } = await doctor(join(root, 'model'));
    expect(model).toMatchObject({ layers: 3, width: 32 });
    expect(model).not.toHaveProperty('refused');
    expect(model?.taps.map(({ tap }) => tap)).toEqual([
      'embed',
      ...[0, 1, 2].flatMap((block) => [`resid_mid.${block}`, `resid_post.${block}`]),
      'final_norm',
    ]);
    expect(model?.taps.find(({ tap }) => tap === 'resid_post.1')).toMatchObject({ value: '/model/layers.1/Add_1' });
    for (const { moves } of model?.taps ?? []) expect(moves).toBeGreaterThan(0);
    expect(model?.state).toHaveLength(6);
    expect(findings.filter(({ state }) => state === 'wrong')).toEqual([]);
  }, 120_000);

  it('looks at a graph without tokenizer and template, which only using it needs', async () => {
    const folder = join(root, 'bare');
    await writeTinyModel(folder, 2);
    unlinkSync(join(folder, 'tokenizer.json'));
    unlinkSync(join(folder, 'chat_template.jinja'));
    const { model, findings } = await doctor(join(folder, 'model.onnx'));
    expect(model?.layers).toBe(3);
    expect(findings.find(({ what }) => what === 'tokenizer')?.state).toBe('warning');
  }, 120_000);

  it('says why a model cannot be used, in the report and as a failed check', async () => {
    const folder = join(root, 'none');
    await writeTinyModel(folder, 2);
    unlinkSync(join(folder, 'model.onnx'));
    unlinkSync(join(folder, 'config.json'));
    const { model, findings } = await doctor(folder);
    expect(model).toMatchObject({ layers: null, taps: [], state: [] });
    expect(model?.refused).toMatch(/expected a \.onnx file in the model folder/);
    expect(findings.find(({ what }) => what === 'model')?.state).toBe('wrong');
  });
});
