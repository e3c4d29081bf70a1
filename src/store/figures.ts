import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptFileError, DataError } from '../errors.ts';
import { writeJsonAtomic } from '../lib/atomic-write.ts';
import { parseOrNothing } from '../lib/read-text.ts';
import type { Figure, Metrics } from '../types.ts';

/** JSON schema of metrics.json (draft 2020-12): the contract with everything that reads results. */
export const METRICS_SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'forewarn metrics',
  type: 'object',
  additionalProperties: false,
  required: ['schemaVersion', 'run', 'figures'],
  properties: {
    schemaVersion: { const: 1 },
    run: { type: 'string' },
    preregistration: {
      type: 'object',
      additionalProperties: false,
      required: ['hash', 'lockedAt', 'rows', 'hypotheses', 'thresholds', 'folder', 'changes'],
      properties: {
        hash: { type: 'string', pattern: '^[0-9a-f]{64}$' },
        lockedAt: { type: 'string' },
        rows: { type: 'integer', minimum: 0 },
        hypotheses: { type: 'array', items: { type: 'string' } },
        thresholds: { type: 'object', additionalProperties: { type: 'number' } },
        folder: { type: ['string', 'null'] },
        changes: {
          type: 'array',
          items: {
            type: 'object',
            additionalProperties: false,
            required: ['field', 'locked', 'now'],
            properties: { field: { type: 'string' }, locked: { type: 'string' }, now: { type: 'string' } },
          },
        },
      },
    },
    figures: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: [
          'stage',
          'target',
          'condition',
          'population',
          'landmark',
          'position',
          'reader',
          'tap',
          'metric',
          'value',
        ],
        properties: {
          stage: { enum: ['plan', 'extract', 'train', 'forecast', 'intervene', 'rollout'] },
          target: { type: 'string' },
          condition: { type: 'string' },
          population: { enum: ['x-', 'nuisance', 'x+', 'all'] },
          landmark: { type: 'string' },
          position: { type: 'string' },
          reader: { type: 'string' },
          tap: { type: ['string', 'null'] },
          metric: { type: 'string' },
          model: { type: 'string' },
          set: { type: 'string' },
          group: { type: 'string' },
          split: { type: 'string' },
          horizon: { type: 'integer' },
          alpha: { type: 'number' },
          at: { type: 'object', additionalProperties: { type: ['number', 'string'] } },
          value: {
            oneOf: [
              {
                type: 'object',
                additionalProperties: false,
                required: ['estimate', 'lower', 'upper', 'n', 'positives', 'clusters'],
                properties: {
                  estimate: { type: 'number' },
                  lower: { type: ['number', 'null'] },
                  upper: { type: ['number', 'null'] },
                  n: { type: 'integer', minimum: 0 },
                  positives: { type: ['integer', 'null'] },
                  clusters: { type: ['integer', 'null'] },
                  draws: { type: 'integer', minimum: 1 },
                  dropped: { type: 'integer', minimum: 1 },
                },
              },
              {
                type: 'object',
                additionalProperties: false,
                required: ['undefinedBecause'],
                properties: { undefinedBecause: { type: 'string', minLength: 1 } },
              },
            ],
          },
        },
      },
    },
  },
} as const;

/** JSON would turn NaN and Infinity into null without a word, wherever they stand. */
function checkFigure(figure: Figure): void {
  const { value, at } = figure;
  const numbers = { ...value, ...at, horizon: figure.horizon, alpha: figure.alpha };
  for (const [name, number] of Object.entries(numbers)) {
    if (typeof number === 'number' && !Number.isFinite(number)) {
      throw new RangeError(
        `${figure.metric} of ${figure.reader} at ${figure.landmark} ${figure.position}: ${name} is ${number}; an undefined number needs its reason`,
      );
    }
  }
}

/** @throws RangeError when a figure holds what JSON cannot (a bug of the stage that made it), DiskError (74) */
export async function writeMetrics(folder: string, metrics: Metrics): Promise<void> {
  for (const figure of metrics.figures) checkFigure(figure);
  await writeJsonAtomic(join(folder, 'metrics.json'), metrics);
}

/** @throws DataError (65) when there is none, CorruptFileError (65) when it is none of this version */
export async function readMetrics(folder: string): Promise<Metrics> {
  const path = join(folder, 'metrics.json');
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new DataError(
      `${path}: expected the figures of a run, got ${(error as NodeJS.ErrnoException).code ?? 'an error'}. Run forewarn forecast first`,
      { cause: error },
    );
  });
  const metrics = parseOrNothing(text) as Partial<Metrics> | null | undefined;
  if (metrics?.schemaVersion !== 1 || !Array.isArray(metrics.figures)) {
    throw new CorruptFileError(
      `${path}: expected figures of schemaVersion 1, got ${JSON.stringify(text.slice(0, 40))}. Make the run again with this version`,
    );
  }
  return metrics as Metrics;
}
