import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptFileError, MismatchError, UserError } from '../errors.ts';
import { writeFileAtomic, writeJsonAtomic } from '../lib/atomic-write.ts';
import { hashValue, sha256File } from '../lib/content-hash.ts';
import { encodeSafetensors, readSafetensorsHeader, readTensorBytes } from '../lib/safetensors.ts';
import type { Probe, Value } from '../types.ts';

/** What a reader needs to know of a probe beside its numbers. By name, so that a card can be read without forewarn. */
export interface ProbeCard {
  readonly format: 'forewarn-probe/1';
  readonly taps: readonly string[];
  readonly landmark: Probe['landmark'];
  readonly target: string;
  readonly horizon: number | null;
  readonly estimator: string;
  readonly C: number | null;
  /** Width of one tap. */
  readonly width: number;
  readonly bias: number;
  readonly calibration: Probe['calibration'];
  readonly thresholds: Probe['thresholds'];
  /** sha256 of weights.safetensors. */
  readonly weightsSha256: string;
  readonly model: {
    readonly name: string;
    readonly hashes: Readonly<Record<string, string>>;
    readonly tokenizer: string;
    readonly template: string;
  };
  readonly training: {
    readonly run: string;
    readonly rows: number;
    readonly positives: number;
    readonly groups: number;
    readonly population: string;
    readonly condition: string;
    readonly role: 'agent' | 'reader';
    readonly seed: number;
  };
  /** Out of fold, of the same search; the probe itself is refitted on everything and never scored on its own rows. */
  readonly auroc: Value;
  readonly versions: Readonly<Record<string, string>>;
  readonly notGoodFor: readonly string[];
}

const ARRAYS = ['mean', 'scale', 'weights'] as const;

function cardText(card: ProbeCard): string {
  const value = card.auroc;
  const auroc =
    'undefinedBecause' in value
      ? `undefined: ${value.undefinedBecause}`
      : `${value.estimate.toFixed(3)} [${value.lower?.toFixed(3) ?? '–'}, ${value.upper?.toFixed(3) ?? '–'}], n ${value.n}, clusters ${value.clusters}`;
  return `# Probe: ${card.target} at ${card.landmark.anchor}+${card.landmark.offset} ${card.landmark.position}

${card.estimator}${card.C === null ? '' : ` (C = ${card.C})`} on ${card.taps.join(', ')} of ${card.model.name}, width ${card.width}.
Trained on ${card.training.rows} rows (${card.training.positives} positive, ${card.training.groups} groups), population ${card.training.population}, condition ${card.training.condition}; the model was the ${card.training.role} of these episodes.

Out-of-fold AUROC within folds of the same search: ${auroc}. The weights here are refitted on every row.

Not good for:
${card.notGoodFor.map((line) => `- ${line}`).join('\n')}

\`\`\`python
import json, numpy as np
from safetensors.numpy import load_file
card = json.load(open("card.json"))
w = load_file("weights.safetensors")
def margin(x):                      # x: [n, width] hidden states at card["taps"][0], card["landmark"]["position"]
    return ((x - w["mean"]) / w["scale"]) @ w["weights"] + card["bias"]
def probability(x):
    c = card["calibration"]
    return 1 / (1 + np.exp(-(c["slope"] * margin(x) + c["intercept"]))) if c["kind"] == "platt" else margin(x)
\`\`\`
`;
}

/** Writes \`root/<model>/<target>/<hash8>/\`: weights.safetensors, card.json, card.md. Returns the folder. */
export async function saveProbe(
  root: string,
  probe: Probe,
  card: Omit<
    ProbeCard,
    | 'format'
    | 'taps'
    | 'landmark'
    | 'target'
    | 'horizon'
    | 'estimator'
    | 'C'
    | 'width'
    | 'bias'
    | 'calibration'
    | 'thresholds'
    | 'weightsSha256'
  >,
): Promise<string> {
  const columns = probe.width * probe.taps.length;
  for (const name of ARRAYS)
    if (probe[name].length !== columns)
      throw new RangeError(`${name}: expected ${columns} numbers, got ${probe[name].length}`);
  const parts = encodeSafetensors(
    ARRAYS.map((name) => ({ name, dtype: 'F64' as const, shape: [columns], data: probe[name] })),
  );
  const identity = hashValue({
    landmark: probe.landmark,
    taps: probe.taps,
    estimator: probe.estimator,
    C: probe.C,
    bias: probe.bias,
    weights: [...probe.weights],
  });
  const safe = (text: string): string => text.replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, 80);
  const folder = join(root, safe(card.model.name), safe(probe.target), identity.slice(0, 8));
  await mkdir(folder, { recursive: true });
  const weights = join(folder, 'weights.safetensors');
  await writeFileAtomic(weights, parts);
  const whole: ProbeCard = {
    format: 'forewarn-probe/1',
    taps: probe.taps,
    landmark: probe.landmark,
    target: probe.target,
    horizon: probe.horizon,
    estimator: probe.estimator,
    C: probe.C,
    width: probe.width,
    bias: probe.bias,
    calibration: probe.calibration,
    thresholds: probe.thresholds,
    weightsSha256: (await sha256File(weights)).sha256,
    ...card,
  };
  await writeFileAtomic(join(folder, 'card.md'), cardText(whole));
  await writeJsonAtomic(join(folder, 'card.json'), whole);
  return folder;
}

/**
 * Reads a probe folder.
 * @param model hashes the probe has to have been trained on; null = any model (the caller was told to)
 * @throws CorruptFileError (65), UserError (2) for a file that is no probe, MismatchError (78) for another model's probe
 */
export async function loadProbe(
  folder: string,
  model: Readonly<Record<string, string>> | null,
): Promise<{ readonly probe: Probe; readonly card: ProbeCard }> {
  const path = join(folder, 'card.json');
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new UserError(
      `${path}: expected a probe folder, got ${(error as NodeJS.ErrnoException).code ?? 'an error'}. Name the folder that holds card.json`,
    );
  });
  const card = parseCard(path, text);
  const weightsPath = join(folder, 'weights.safetensors');
  const fail = (field: string, expected: string, got: string): never => {
    throw new CorruptFileError(`${weightsPath}: ${field}: expected ${expected}, got ${got}. Train the probe again`);
  };
  const header = await readSafetensorsHeader(weightsPath);
  const { sha256 } = await sha256File(weightsPath);
  if (sha256 !== card.weightsSha256) fail('sha256', card.weightsSha256.slice(0, 12), sha256.slice(0, 12));
  const columns = card.width * card.taps.length;
  const arrays: Record<string, Float64Array> = {};
  for (const name of ARRAYS) {
    const info = header.tensors.get(name);
    if (!info) return fail(name, 'a tensor', 'none');
    if (info.dtype !== 'F64' || info.shape.length !== 1 || info.shape[0] !== columns)
      return fail(name, `${columns} numbers (F64)`, `${info.dtype} [${info.shape.join(', ')}]`);
    const values = new Float64Array((await readTensorBytes(weightsPath, header, name)).buffer);
    const bad = values.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0) return fail(name, 'finite numbers', `${values[bad]} at ${bad}`);
    arrays[name] = values;
  }
  const zero = arrays['scale'].findIndex((value) => !(value > 0));
  if (zero >= 0) return fail('scale', 'numbers > 0', `${arrays['scale'][zero]} at ${zero}`);
  if (arrays['weights'].every((value) => value === 0)) return fail('weights', 'a direction', 'all zeros');
  if (model !== null) {
    const differing = Object.entries(card.model.hashes).filter(([file, hash]) => model[file] !== hash);
    if (differing.length > 0) {
      const [file, hash] = differing[0];
      throw new MismatchError(
        `${path}: model.hashes.${file}: expected the model the probe was trained on (${hash.slice(0, 12)}), got ${model[file]?.slice(0, 12) ?? 'none'}. Use that model, or --any-model if you know what you do`,
      );
    }
  }
  return {
    probe: {
      taps: card.taps,
      landmark: card.landmark,
      target: card.target,
      horizon: card.horizon,
      estimator: card.estimator,
      C: card.C,
      width: card.width,
      mean: arrays['mean'],
      scale: arrays['scale'],
      weights: arrays['weights'],
      bias: card.bias,
      calibration: card.calibration,
      thresholds: card.thresholds,
    },
    card,
  };
}

function parseCard(path: string, text: string): ProbeCard {
  const fail = (field: string, expected: string, got: unknown): never => {
    throw new CorruptFileError(
      `${path}: ${field}: expected ${expected}, got ${typeof got === 'string' ? JSON.stringify(got) : String(got)}. Train the probe again`,
    );
  };
  if (text.startsWith('version https://git-lfs')) fail('file', 'JSON', 'a Git LFS pointer');
  let card: Partial<ProbeCard>;
  try {
    card = JSON.parse(text) as Partial<ProbeCard>;
  } catch (error) {
    return fail('file', 'complete JSON', (error as Error).message);
  }
  if (card.format !== 'forewarn-probe/1') fail('format', 'forewarn-probe/1', card.format);
  if (!Array.isArray(card.taps) || card.taps.length === 0) fail('taps', 'a list of taps', card.taps);
  if (!Number.isSafeInteger(card.width) || card.width! <= 0) fail('width', 'a whole number > 0', card.width);
  if (!Number.isFinite(card.bias)) fail('bias', 'a finite number', card.bias);
  if (typeof card.weightsSha256 !== 'string') fail('weightsSha256', 'a hash', card.weightsSha256);
  if (card.calibration === undefined) fail('calibration', 'an object', 'nothing');
  if (!Array.isArray(card.thresholds) || card.thresholds.length === 0) fail('thresholds', 'a list', card.thresholds);
  for (const { alpha, threshold } of card.thresholds!) {
    if (!(alpha > 0 && alpha < 1)) fail('thresholds.alpha', 'a number between 0 and 1', alpha);
    if (typeof threshold === 'number' && !(threshold >= 0 && threshold <= 1))
      fail('thresholds.threshold', 'a probability in 0..1', threshold);
    if (typeof threshold !== 'number' && typeof threshold?.undefinedBecause !== 'string')
      fail('thresholds.threshold', 'a number or a reason', threshold);
  }
  if (card.model === undefined || typeof card.model.hashes !== 'object')
    fail('model.hashes', 'hashes by file', 'nothing');
  return card as ProbeCard;
}
