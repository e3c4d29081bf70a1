import { join } from 'node:path';
import { CorruptFileError } from '../errors.ts';
import type { Choice, Curve } from '../forecast/types.ts';
import type { StopCurve, ThresholdChoice } from '../intervention/types.ts';
import { writeJsonAtomic } from '../lib/atomic-write.ts';
import { parseOrNothing, readTextIfThere } from '../lib/read-text.ts';

/** Which model × condition × target a curve or a choice belongs to. */
export interface OfPart {
  readonly model: string;
  readonly condition: string;
  readonly target: string;
}

/**
 * curves.json: what a page draws and what was chosen on the way, beside the figures of record in metrics.json. Points have
 * no interval; the figure with one is in metrics.json.
 */
export interface Curves {
  readonly schemaVersion: 1;
  /** Folder name of the run. */
  readonly run: string;
  /** ROC, reliability, lead time. */
  readonly curves: readonly (Curve & OfPart)[];
  /** Harm against usefulness over all thresholds; empty where stopping was not simulated. */
  readonly stops: readonly StopCurve[];
  /** Tap, position, estimator and C that the training side of each outer fold chose. */
  readonly choices: readonly (Choice & OfPart)[];
  /** Threshold that the development side of each outer fold chose, by reader and alpha. */
  readonly thresholds: readonly ThresholdChoice[];
}

const text = { type: 'string' } as const;
const number = { type: 'number' } as const;
const count = { type: 'integer', minimum: 0 } as const;
const numbers = { type: 'array', items: number } as const;
const numbersOrNull = { type: 'array', items: { type: ['number', 'null'] } } as const;
const population = { enum: ['x-', 'nuisance', 'x+', 'all'] } as const;
const part = { model: text, condition: text, target: text } as const;

/** An object with exactly these properties. */
const exactly = <P extends object>(properties: P) => ({
  type: 'object' as const,
  additionalProperties: false,
  required: Object.keys(properties),
  properties,
});

/** JSON schema of curves.json (draft 2020-12). */
export const CURVES_SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'forewarn curves',
  ...exactly({
    schemaVersion: { const: 1 },
    run: text,
    curves: {
      type: 'array',
      items: exactly({
        ...part,
        kind: { enum: ['roc', 'reliability', 'lead_time'] },
        population,
        landmark: text,
        position: text,
        reader: text,
        x: numbers,
        y: numbers,
        n: numbers,
      }),
    },
    stops: {
      type: 'array',
      items: exactly({
        ...part,
        kind: { const: 'stop' },
        population,
        reader: text,
        threshold: numbers,
        prevented: numbersOrNull,
        disrupted: numbersOrNull,
        harm: numbers,
        usefulness: numbersOrNull,
        n: count,
      }),
    },
    choices: {
      type: 'array',
      items: exactly({
        ...part,
        landmark: text,
        readAt: text,
        reader: text,
        trainedOn: population,
        foldingSeed: { type: 'integer' },
        fold: count,
        innerAuroc: number,
        tap: text,
        position: text,
        estimator: text,
        C: { type: ['number', 'null'] },
      }),
    },
    thresholds: {
      type: 'array',
      items: exactly({
        ...part,
        reader: text,
        alpha: number,
        fold: count,
        threshold: {
          oneOf: [number, exactly({ undefinedBecause: { type: 'string', minLength: 1 } })],
        },
      }),
    },
  }),
} as const;

/** JSON would turn NaN and Infinity into null without a word. */
function checkFinite(value: unknown, path: string): void {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new RangeError(`${path} is ${value}; a curve has no point where it has no number`);
  if (value !== null && typeof value === 'object')
    for (const [key, item] of Object.entries(value)) checkFinite(item, `${path}.${key}`);
}

/** @throws RangeError for a number that JSON cannot hold (a bug of the stage that made it), DiskError (74) */
export async function writeCurves(folder: string, curves: Curves): Promise<void> {
  checkFinite(curves, 'curves');
  await writeJsonAtomic(join(folder, 'curves.json'), curves);
}

/** null = the folder has none. @throws CorruptFileError (65) when it is none of this version */
export async function readCurves(folder: string): Promise<Curves | null> {
  const path = join(folder, 'curves.json');
  const content = await readTextIfThere(path);
  if (content === null) return null;
  const curves = parseOrNothing(content) as Partial<Curves> | null | undefined;
  const lists = [curves?.curves, curves?.stops, curves?.choices, curves?.thresholds];
  if (curves?.schemaVersion !== 1 || !lists.every(Array.isArray)) {
    throw new CorruptFileError(
      `${path}: expected curves of schemaVersion 1, got ${JSON.stringify(content.slice(0, 40))}. Make the run again with this version`,
    );
  }
  return curves as Curves;
}
