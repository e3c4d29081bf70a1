import { CorruptFileError } from '../errors.ts';
import {
  isJsonArray,
  isJsonNumber,
  isJsonObject,
  type JsonError,
  parseJson,
  stringifyJson,
  toPlain,
} from '../lib/json.ts';
import type { JsonObject, JsonValue, Probe, Value } from '../types.ts';

export const CARD_FORMAT = 'forewarn-probe/1';

/** What a reader needs to know of a probe beside its arrays. By name, so that a card can be read without forewarn. */
export interface ProbeCard {
  readonly format: typeof CARD_FORMAT;
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

type Refuse = (field: string, expected: string, got: JsonValue | undefined | string) => never;

/**
 * Reads a card strictly: every number finite, every field there. Fields it does not know are left alone.
 * @throws CorruptFileError (65) naming the file, the field, what was expected and what stands there
 */
export function parseCard(path: string, text: string): ProbeCard {
  const refuse: Refuse = (field, expected, got) => {
    const shown = got === undefined ? 'nothing' : typeof got === 'string' ? JSON.stringify(got) : stringifyJson(got);
    throw new CorruptFileError(
      `${path}: ${field}: expected ${expected}, got ${shown.slice(0, 80)}. Train the probe again, or take a whole copy of its folder`,
    );
  };
  if (text.startsWith('version https://git-lfs')) refuse('file', 'JSON', 'a Git LFS pointer');
  let card: JsonValue;
  try {
    card = parseJson(text);
  } catch (error) {
    return refuse('file', 'complete JSON', (error as JsonError).message);
  }
  if (!isJsonObject(card)) return refuse('file', 'a JSON object', card);
  const format = card.get('format');
  if (format !== CARD_FORMAT) refuse('format', CARD_FORMAT, format);
  checkReader(card, refuse);
  checkCalibration(card.get('calibration'), refuse);
  checkThresholds(card.get('thresholds'), refuse);
  checkOrigin(card, refuse);
  return toPlain(card) as ProbeCard;
}

function finite(value: JsonValue | undefined): number | null {
  if (!isJsonNumber(value)) return null;
  const number = Number(value.lexeme);
  return Number.isFinite(number) ? number : null;
}

function whole(value: JsonValue | undefined, least: number): boolean {
  const number = finite(value);
  return number !== null && Number.isSafeInteger(number) && number >= least;
}

function checkReader(card: JsonObject, refuse: Refuse): void {
  const taps = card.get('taps');
  if (!isJsonArray(taps) || taps.length === 0 || !taps.every((tap) => typeof tap === 'string')) {
    refuse('taps', 'a list of tap names', taps);
  }
  if (!whole(card.get('width'), 1)) refuse('width', 'a whole number > 0', card.get('width'));
  for (const field of ['target', 'estimator', 'weightsSha256']) {
    if (typeof card.get(field) !== 'string') refuse(field, 'text', card.get(field));
  }
  if (finite(card.get('bias')) === null) refuse('bias', 'a finite number', card.get('bias'));
  const C = card.get('C');
  if (C !== null && !((finite(C) ?? 0) > 0)) refuse('C', 'a number > 0 or null', C);
  const horizon = card.get('horizon');
  if (horizon !== null && !whole(horizon, 1)) refuse('horizon', 'a whole number of turns > 0 or null', horizon);
  const landmark = card.get('landmark');
  if (!isJsonObject(landmark)) return refuse('landmark', 'an anchor, an offset and a position', landmark);
  for (const field of ['anchor', 'position']) {
    if (typeof landmark.get(field) !== 'string') refuse(`landmark.${field}`, 'text', landmark.get(field));
  }
  const offset = finite(landmark.get('offset'));
  if (offset === null || !Number.isSafeInteger(offset)) {
    refuse('landmark.offset', 'a whole number of turns', landmark.get('offset'));
  }
}

function checkCalibration(calibration: JsonValue | undefined, refuse: Refuse): void {
  if (!isJsonObject(calibration)) return refuse('calibration', 'an object with a kind', calibration);
  const kind = calibration.get('kind');
  if (kind === 'none') return;
  if (kind === 'platt') {
    for (const field of ['slope', 'intercept']) {
      const value = calibration.get(field);
      if (finite(value) === null) refuse(`calibration.${field}`, 'a finite number', value);
    }
    return;
  }
  if (kind !== 'isotonic') return refuse('calibration.kind', 'none, platt or isotonic', kind);
  const lists = ['thresholds', 'values'].map((field) => {
    const list = calibration.get(field);
    const numbers = isJsonArray(list) ? list.map(finite) : [];
    if (
      numbers.length === 0 ||
      numbers.some((value, i) => value === null || (i > 0 && value < (numbers[i - 1] ?? 0)))
    ) {
      refuse(`calibration.${field}`, 'a list of ascending numbers', list);
    }
    return numbers;
  });
  if (lists[0].length !== lists[1].length) {
    refuse('calibration.values', `${lists[0].length} numbers`, `${lists[1].length}`);
  }
}

function checkThresholds(thresholds: JsonValue | undefined, refuse: Refuse): void {
  if (!isJsonArray(thresholds) || thresholds.length === 0) {
    return refuse('thresholds', 'a list of {alpha, threshold}', thresholds);
  }
  for (const [at, item] of thresholds.entries()) {
    if (!isJsonObject(item)) return refuse(`thresholds[${at}]`, 'alpha and threshold', item);
    const alpha = finite(item.get('alpha'));
    if (alpha === null || !(alpha > 0 && alpha < 1)) {
      refuse(`thresholds[${at}].alpha`, 'a number between 0 and 1', item.get('alpha'));
    }
    const threshold = item.get('threshold');
    const value = finite(threshold);
    if (!saysWhyNot(threshold) && (value === null || !(value >= 0 && value <= 1))) {
      refuse(`thresholds[${at}].threshold`, 'a probability in 0..1, or why there is none', threshold);
    }
    checkConformal(`thresholds[${at}].conformal`, item.get('conformal'), refuse);
  }
}

const saysWhyNot = (value: JsonValue | undefined): boolean =>
  isJsonObject(value) && typeof value.get('undefinedBecause') === 'string';

function checkConformal(field: string, value: JsonValue | undefined, refuse: Refuse): void {
  if (value === undefined || saysWhyNot(value)) return;
  if (!isJsonObject(value)) return refuse(field, 'a threshold and its coverage, or why there is none', value);
  for (const name of ['threshold', 'coverage', 'lower', 'upper']) {
    const number = finite(value.get(name));
    if (number === null || !(number >= 0 && number <= 1)) {
      refuse(`${field}.${name}`, 'a number in 0..1', value.get(name));
    }
  }
  if (!whole(value.get('n'), 1)) refuse(`${field}.n`, 'a whole number > 0', value.get('n'));
}

function checkOrigin(card: JsonObject, refuse: Refuse): void {
  const model = card.get('model');
  if (!isJsonObject(model)) return refuse('model', 'a name and hashes', model);
  if (typeof model.get('name') !== 'string') refuse('model.name', 'text', model.get('name'));
  const hashes = model.get('hashes');
  if (!isJsonObject(hashes) || hashes.size === 0 || ![...hashes.values()].every((hash) => typeof hash === 'string')) {
    refuse('model.hashes', 'a sha256 by file', hashes);
  }
  const training = card.get('training');
  if (!isJsonObject(training)) return refuse('training', 'where the probe was trained', training);
  for (const field of ['rows', 'positives', 'groups']) {
    if (!whole(training.get(field), 0)) refuse(`training.${field}`, 'a whole number', training.get(field));
  }
}

const number = (value: number | null): string => (value === null ? '–' : value.toPrecision(3));

/** The card for people: what it is, how good it was out of fold, what it is not good for, and how to load it in Python. */
export function cardText(card: ProbeCard): string {
  const { auroc, landmark, training } = card;
  const figure =
    'undefinedBecause' in auroc
      ? `undefined: ${auroc.undefinedBecause}`
      : `${number(auroc.estimate)} [${number(auroc.lower)}, ${number(auroc.upper)}], n ${auroc.n}, ${auroc.positives ?? '–'} positive, ${auroc.clusters ?? '–'} groups`;
  const thresholds = card.thresholds.flatMap(({ alpha, threshold, conformal }) => {
    const value = typeof threshold === 'number' ? `> ${threshold}` : `undefined: ${threshold.undefinedBecause}`;
    const line = `- at most ${alpha} of safe episodes: ${value}`;
    if (conformal === undefined) return [line];
    const stated =
      'undefinedBecause' in conformal
        ? `undefined: ${conformal.undefinedBecause}`
        : `> ${conformal.threshold}; a new safe episode like the ${conformal.n} of development stays below with probability ${number(conformal.coverage)} (${number(conformal.lower)} to ${number(conformal.upper)} for the development set that was drawn)`;
    return [line, `- conformal at ${alpha}: ${stated}`];
  });
  return `# Probe: ${card.target} at ${landmark.anchor}+${landmark.offset} ${landmark.position}

${card.estimator}${card.C === null ? '' : ` (C = ${card.C})`} on ${card.taps.join(', ')} of ${card.model.name}, width ${card.width}.
Trained on ${training.rows} rows (${training.positives} positive, ${training.groups} groups) of run ${training.run}, population ${training.population}, condition ${training.condition}; the model was the ${training.role} of these episodes.

Out-of-fold AUROC within folds, of the same search: ${figure}. The weights here are refitted on every row, so they must not be scored on those rows again.

Good for: scoring other episodes of the same model, template and kind of task at the same position; compare with the baselines of its run.

Not good for:
${card.notGoodFor.map((line) => `- ${line}`).join('\n')}

Alarm when the probability exceeds a threshold chosen on development rows, counted per episode:
${thresholds.join('\n')}

\`\`\`python
${PYTHON}
\`\`\`
`;
}

/** Ten lines that load and apply a probe without forewarn: [n, width · taps] hidden states in, probabilities out. */
const PYTHON = `import json, numpy as np
from safetensors.numpy import load_file
card, w = json.load(open("card.json")), load_file("weights.safetensors")
def margin(x):
    return ((x - w["mean"]) / w["scale"]) @ w["weights"] + card["bias"]
def probability(x):
    m, c = margin(x), card["calibration"]
    if c["kind"] == "isotonic":
        return np.array(c["values"])[np.maximum(np.searchsorted(c["thresholds"], m, side="right") - 1, 0)]
    return 1 / (1 + np.exp(-(c.get("slope", 1) * m + c.get("intercept", 0))))`;
