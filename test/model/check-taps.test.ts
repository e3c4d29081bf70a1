import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkTaps, refuseDeadTaps } from '../../src/model/check-taps.ts';
import { decodeModel, encodeModel, INT64 } from '../../src/model/graph/onnx-schema.ts';
import { measureTaps } from '../../src/model/live-taps.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

const root = mkdtempSync(path.join(tmpdir(), 'forewarn-live-'));
const TAPS = ['embed', 'resid_mid.0', 'resid_post.0', 'resid_mid.2', 'resid_post.2', 'final_norm'];
const options = { threads: 1, executionProvider: 'cpu' } as const;

/** The tiny model with a weight set to zero: what stands before it can no longer reach what stands behind. */
async function without(weight: string): Promise<string> {
  const folder = path.join(root, weight.replaceAll('/', '_'));
  await writeTinyModel(folder, 3);
  const file = path.join(folder, 'model.onnx');
  const model = decodeModel(readFileSync(file));
  const tensor = model.graph.initializer.find(({ name }) => name === weight);
  if (!tensor) throw new Error(`no weight ${weight}`);
  tensor.raw_data = new Uint8Array(tensor.raw_data?.length ?? 0);
  writeFileSync(file, encodeModel(model));
  return folder;
}

describe('checkTaps', () => {
  beforeAll(() => writeTinyModel(path.join(root, 'whole'), 3));
  afterAll(() => rmSync(root, { recursive: true }));

  it('finds that adding a vector at any tap of a model moves its logits, in a process of its own', async () => {
    const effects = await checkTaps({ folder: path.join(root, 'whole'), taps: TAPS });
    expect(effects.map(({ tap }) => tap)).toEqual(TAPS);
    for (const { moved } of effects) expect(moved).toBeGreaterThan(0);
    expect(() => refuseDeadTaps('model', effects)).not.toThrow();
  }, 120_000);

  it('finds and refuses taps whose way to the logits is cut by the weights', async () => {
    const effects = await measureTaps(await without('/model/norm.weight'), null, TAPS, options);
    // The product with the vocabulary still reads the final norm itself.
    expect(effects.filter(({ moved }) => moved > 0).map(({ tap }) => tap)).toEqual(['final_norm']);
    expect(() => refuseDeadTaps('model', effects)).toThrow(
      /^model: embed: expected a tap that the model reads .* as at 4 more taps/,
    );
  });

  it('refuses a graph in which a token sees later ones', async () => {
    const folder = path.join(root, 'lookahead');
    await writeTinyModel(folder, 3);
    const file = path.join(folder, 'model.onnx');
    const model = decodeModel(readFileSync(file));
    // Every token also gets the mean of the second block's input over all tokens.
    const norm = model.graph.node.find(({ name }) => name === '/model/layers.1/input_layernorm');
    model.graph.initializer.push({
      name: 'axis.tokens',
      dims: [1],
      data_type: INT64,
      raw_data: new Uint8Array(BigInt64Array.of(1n).buffer),
    });
    model.graph.node.push(
      { op_type: 'ReduceMean', name: 'mean', input: [norm?.input[0] ?? '', 'axis.tokens'], output: ['mean'] },
      { op_type: 'Add', name: 'seen', input: [norm?.input[0] ?? '', 'mean'], output: ['seen'] },
    );
    if (norm) norm.input[0] = 'seen';
    writeFileSync(file, encodeModel(model));
    await expect(measureTaps(folder, null, TAPS, options)).rejects.toThrow(
      /^model\.onnx: expected a token not to see later ones/,
    );
  });

  it('reports what the runtime says when the model cannot be loaded', async () => {
    const folder = path.join(root, 'broken');
    await writeTinyModel(folder, 3);
    const file = path.join(folder, 'model.onnx');
    const model = decodeModel(readFileSync(file));
    const norm = model.graph.node.find(({ op_type }) => op_type === 'Sigmoid');
    if (norm) norm.op_type = 'Sigmoidal';
    writeFileSync(file, encodeModel(model));
    await expect(checkTaps({ folder, taps: TAPS })).rejects.toThrow(
      /model\.onnx: onnxruntime cannot load it on cpu: .*Sigmoidal/,
    );
  }, 120_000);
});
