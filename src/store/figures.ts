import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptFileError } from '../errors.ts';
import { writeJsonAtomic } from '../lib/atomic-write.ts';
import type { Figure, Metrics, Value } from '../types.ts';

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

function checkValue(figure: Figure, value: Value): void {
  if ('undefinedBecause' in value) return;
  for (const [name, number] of Object.entries(value)) {
    if (number !== null && !Number.isFinite(number)) {
      throw new Error(
        `${figure.metric} of ${figure.reader} at ${figure.landmark} ${figure.position}: ${name} is ${number}; an undefined number needs its reason`,
      );
    }
  }
}

/** @throws Error when a figure holds what JSON cannot (a bug of the stage that made it) */
export async function writeMetrics(folder: string, metrics: Metrics): Promise<void> {
  for (const figure of metrics.figures) checkValue(figure, figure.value);
  await writeJsonAtomic(join(folder, 'metrics.json'), metrics);
}

export async function readMetrics(folder: string): Promise<Metrics> {
  const path = join(folder, 'metrics.json');
  const metrics = JSON.parse(await readFile(path, 'utf8')) as Metrics;
  if (metrics.schemaVersion !== 1)
    throw new CorruptFileError(
      `${path}: expected schemaVersion 1, got ${String(metrics.schemaVersion)}. Make the run again with this version`,
    );
  return metrics;
}
