import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ForewarnError } from '../../../src/errors.ts';
import { sha256 } from '../../../src/lib/content-hash.ts';
import { parseJson, toPlain } from '../../../src/lib/json.ts';
import { encodeSafetensors, type TensorToWrite } from '../../../src/lib/safetensors.ts';
import { checkProbeReads, loadProbe, saveProbe } from '../../../src/probe/artefact.ts';
import { anOrigin, aProbe } from '../../probe/a-probe.ts';
import { hostileCases, hostileFixtures, type HostileCase, missingFrom } from '../fixtures.ts';

/**
 * The example keeps a probe in one JSON file; here it is a folder, so its keys are mapped: layer → taps, hidden_size →
 * width, run_key → model.hashes (a probe may score other runs of the same model), threshold → thresholds, and the arrays →
 * tensors of weights.safetensors. A file that is no JSON object stands in for card.json (or the weights) as it is.
 */
const OUR_NAMES: Readonly<Record<string, string>> = {
  hidden_size: 'width',
  layer: 'taps',
  run_key: 'model.hashes',
  'run_key|run key': 'hashes',
};
/** The activations that are read: width 4, all blocks of a five-block model. */
const STATES = { width: 4, taps: [0, 1, 2, 3, 4].map((block) => `resid_post.${block}`) };
const MODEL = { 'model.onnx': 'sha256:00' };

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'forewarn-hostile-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Example {
  readonly format?: string;
  readonly run_key?: string;
  readonly layer?: number;
  readonly hidden_size?: number;
  readonly bias?: number;
  readonly threshold?: number;
  readonly [array: string]: unknown;
}

/** A folder whose name is the file's, so that messages name it. */
async function folderFor(item: HostileCase): Promise<string> {
  const source = join(hostileFixtures(), item.file);
  const good = await saveProbe(root, aProbe, { ...anOrigin, model: { ...anOrigin.model, hashes: MODEL } });
  const folder = join(dirname(good), basename(item.file));
  renameSync(good, folder);
  const card = join(folder, 'card.json');
  const weights = join(folder, 'weights.safetensors');
  const change = (fields: Readonly<Record<string, unknown>>): void => {
    writeFileSync(card, JSON.stringify({ ...(JSON.parse(readFileSync(card, 'utf8')) as object), ...fields }));
  };
  if (item.file.endsWith('.safetensors')) {
    copyFileSync(source, weights);
    change({ weightsSha256: sha256(readFileSync(source)) });
    return folder;
  }
  let example: Example;
  try {
    example = toPlain(parseJson(readFileSync(source, 'utf8'))) as Example;
  } catch {
    copyFileSync(source, card);
    return folder;
  }
  const parts = encodeSafetensors(
    ['mean', 'scale', 'weights'].flatMap((name): TensorToWrite[] => {
      const list = example[name] as readonly unknown[];
      // Strings and nulls have no tensor of numbers: the writer left them out, or wrote text.
      if (list.some((value) => value === null)) return [];
      if (list.some((value) => typeof value === 'string')) {
        return [{ name, dtype: 'U8', shape: [list.length], data: new Uint8Array(list.length) }];
      }
      return [{ name, dtype: 'F64', shape: [list.length], data: Float64Array.from(list as number[]) }];
    }),
  );
  const bytes = Buffer.concat(parts);
  writeFileSync(weights, bytes);
  change({
    format: example.format?.replace('probe/1', 'forewarn-probe/1').replace('probe/99', 'forewarn-probe/99'),
    taps: [`resid_post.${example.layer}`],
    width: example.hidden_size,
    bias: example.bias,
    thresholds: example.threshold === undefined ? undefined : [{ alpha: 0.05, threshold: example.threshold }],
    model: { ...anOrigin.model, hashes: { 'model.onnx': example.run_key } },
    weightsSha256: sha256(bytes),
  });
  return folder;
}

describe('probes that make good tools fail', () => {
  for (const item of hostileCases('probe')) {
    it(`${item.id}: ${item.outcome}`, async () => {
      const isFolder = /\.(json|safetensors)$/.test(item.file);
      const path = isFolder ? await folderFor(item) : join(hostileFixtures(), item.file);
      let message: string | null = null;
      try {
        const { probe } = await loadProbe(path, MODEL);
        checkProbeReads(path, probe, STATES);
      } catch (error) {
        expect(error).toBeInstanceOf(ForewarnError);
        message = (error as Error).message;
      }
      expect([item.outcome, ...(item.also_ok ?? [])]).toContain(message === null ? 'accept' : 'refuse');
      if (message === null) return;
      const field = item.must_name['field'];
      const ours = {
        ...item,
        must_name: { ...item.must_name, ...(typeof field === 'string' ? { field: OUR_NAMES[field] ?? field } : {}) },
        match: item.match?.map((pattern) => OUR_NAMES[pattern] ?? pattern),
      };
      expect({ message, missing: missingFrom(message, ours) }).toEqual({ message, missing: [] });
      expect(message.split('\n')).toHaveLength(1);
    });
  }
});
