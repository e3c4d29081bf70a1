import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptFileError, MismatchError, UserError } from '../errors.ts';
import { writeFileAtomic, writeJsonAtomic } from '../lib/atomic-write.ts';
import { hashValue, sha256, sha256Parts } from '../lib/content-hash.ts';
import {
  encodeSafetensors,
  readFloatRows,
  readSafetensorsHeader,
  readTensorBytes,
  type SafetensorsHeader,
} from '../lib/safetensors.ts';
import type { ModelInfo, Probe, Tap } from '../types.ts';
import { CARD_FORMAT, cardText, parseCard, type ProbeCard } from './card.ts';
import { foreignFormat } from './foreign-format.ts';

/** What the caller knows of a probe beside the probe itself. */
export type CardOrigin = Pick<ProbeCard, 'model' | 'training' | 'auroc' | 'versions' | 'notGoodFor'>;

const ARRAYS = ['mean', 'scale', 'weights'] as const;

/**
 * Writes `root/<model>/<target>/<hash8>/` with weights.safetensors, card.md and, last, card.json. The hash is of all that
 * makes the probe, so the same probe goes to the same folder.
 * @returns the folder
 */
export async function saveProbe(root: string, probe: Probe, origin: CardOrigin): Promise<string> {
  const columns = probe.width * probe.taps.length;
  for (const name of ARRAYS) {
    if (probe[name].length !== columns) {
      throw new RangeError(`${name}: expected ${columns} numbers, got ${probe[name].length}`);
    }
  }
  const parts = encodeSafetensors(
    ARRAYS.map((name) => ({ name, dtype: 'F64' as const, shape: [columns], data: probe[name] })),
  );
  const weightsSha256 = sha256Parts(parts);
  const { mean: _mean, scale: _scale, weights: _weights, ...named } = probe;
  const identity = hashValue({ ...named, weightsSha256, hashes: origin.model.hashes });
  const folder = join(root, folderName(origin.model.name), folderName(probe.target), identity.slice(0, 8));
  await mkdir(folder, { recursive: true });
  await writeFileAtomic(join(folder, 'weights.safetensors'), parts);
  const card: ProbeCard = { format: CARD_FORMAT, ...named, weightsSha256, ...origin };
  await writeFileAtomic(join(folder, 'card.md'), cardText(card));
  await writeJsonAtomic(join(folder, 'card.json'), card);
  return folder;
}

function folderName(text: string): string {
  return text.replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, 80);
}

/**
 * Reads a probe folder: every number finite, every length right, the bytes those the card was written for.
 * @param model hashes of the model whose states will be read; null = any model (the caller was told to)
 * @throws UserError (2) where there is no probe, CorruptFileError (65) where it is damaged or another kind of file,
 *   MismatchError (78) where it was trained on another model
 */
export async function loadProbe(
  folder: string,
  model: ModelInfo['hashes'] | null,
): Promise<{ readonly probe: Probe; readonly card: ProbeCard }> {
  const cardPath = join(await probeFolder(folder), 'card.json');
  await refuseForeign(cardPath, 'JSON');
  const card = parseCard(cardPath, await readFile(cardPath, 'utf8'));
  const weightsPath = join(folder, 'weights.safetensors');
  const columns = card.width * card.taps.length;
  const [mean, scale, weights] = await readArrays(weightsPath, columns);
  const bytes = await readFile(weightsPath);
  if (sha256(bytes) !== card.weightsSha256) {
    damaged(
      weightsPath,
      'sha256',
      `${card.weightsSha256.slice(0, 12)}…, as its card says`,
      `${sha256(bytes).slice(0, 12)}…`,
    );
  }
  if (model !== null) checkModel(cardPath, card, model);
  const { taps, landmark, target, horizon, estimator, C, width, bias, calibration, thresholds } = card;
  return {
    probe: {
      taps,
      landmark,
      target,
      horizon,
      estimator,
      C,
      width,
      mean,
      scale,
      weights,
      bias,
      calibration,
      thresholds,
    },
    card,
  };
}

/**
 * Checks that a probe can read a run's states.
 * @param states width of the model and the taps that were stored
 * @throws MismatchError (78) naming the field
 */
export function checkProbeReads(
  folder: string,
  probe: Probe,
  states: { readonly width: number; readonly taps: readonly Tap[] },
): void {
  if (probe.width !== states.width) {
    throw new MismatchError(
      `${folder}: width: expected ${states.width}, the width of the activations, got ${probe.width}. Use the model it was trained on`,
    );
  }
  const missing = probe.taps.find((tap) => !states.taps.includes(tap));
  if (missing !== undefined) {
    throw new MismatchError(
      `${folder}: taps: expected taps that were stored (${states.taps.join(', ')}), got ${missing}. Extract with that layer`,
    );
  }
}

async function probeFolder(folder: string): Promise<string> {
  const found = await stat(folder).catch(() => null);
  if (found === null)
    throw new UserError(`${folder}: expected a probe folder, got nothing there. Name an existing one`);
  if (found.isDirectory()) {
    if ((await stat(join(folder, 'card.json')).catch(() => null)) === null) {
      throw new UserError(
        `${folder}: expected a probe folder, got one without card.json. Name the folder that holds it`,
      );
    }
    return folder;
  }
  await refuseForeign(folder, 'a probe folder (card.json and weights.safetensors)');
  throw new UserError(`${folder}: expected a probe folder, got a file. Name the folder that holds card.json`);
}

async function refuseForeign(path: string, expected: string): Promise<void> {
  const kind = await foreignFormat(path);
  if (kind !== null) throw new CorruptFileError(`${path}: expected ${expected}, got ${kind}. Nothing was loaded`);
}

function damaged(path: string, field: string, expected: string, got: string): never {
  throw new CorruptFileError(
    `${path}: ${field}: expected ${expected}, got ${got}. Train the probe again, or take a whole copy of its folder`,
  );
}

async function readArrays(path: string, columns: number): Promise<readonly Float64Array[]> {
  if ((await stat(path).catch(() => null)) === null) damaged(path, 'file', 'the arrays of the probe', 'nothing there');
  await refuseForeign(path, 'safetensors');
  const header = await readSafetensorsHeader(path);
  const arrays: Float64Array[] = [];
  for (const name of ARRAYS) arrays.push(await readArray(path, header, name, columns));
  const [, scale, weights] = arrays;
  const flat = scale.findIndex((value) => !(value > 0));
  if (flat >= 0) damaged(path, 'scale', 'numbers > 0', `${scale[flat]} at ${flat}`);
  if (weights.every((value) => value === 0)) damaged(path, 'weights', 'a direction that is not zero', 'all zeros');
  return arrays;
}

async function readArray(
  path: string,
  header: SafetensorsHeader,
  name: string,
  columns: number,
): Promise<Float64Array> {
  const tensor = header.tensors.get(name);
  if (tensor === undefined) return damaged(path, name, `${columns} numbers`, 'no such tensor');
  const { dtype, shape } = tensor;
  if ((dtype !== 'F64' && dtype !== 'F32') || shape.length !== 1 || shape[0] !== columns) {
    damaged(path, name, `${columns} numbers (F64)`, `${dtype} [${shape.join(', ')}]`);
  }
  const values =
    dtype === 'F64'
      ? new Float64Array((await readTensorBytes(path, header, name)).buffer)
      : Float64Array.from((await readFloatRows(path, header, name, [null]))[0]);
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) damaged(path, name, 'finite numbers', `${values[bad]} at ${bad}`);
  return values;
}

function checkModel(path: string, card: ProbeCard, model: ModelInfo['hashes']): void {
  const names = [...new Set([...Object.keys(card.model.hashes), ...Object.keys(model)])];
  const differing = names.find((file) => card.model.hashes[file] !== model[file]);
  if (differing === undefined) return;
  const short = (hash: string | undefined): string => (hash === undefined ? 'no such file' : `${hash.slice(0, 12)}…`);
  throw new MismatchError(
    `${path}: model.hashes.${differing}: expected the model the probe was trained on (${card.model.name}, ${short(card.model.hashes[differing])}), got ${short(model[differing])}. Use that model, or --any-model if you know what you do`,
  );
}
