import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { METRICS_SCHEMA, readMetrics, writeMetrics } from '../../src/store/figures.ts';
import type { Figure, Metrics, Value } from '../../src/types.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder('figures');
});

const estimate: Value = { estimate: 0.8, lower: 0.7, upper: 0.9, n: 100, positives: 12, clusters: 40 };
const figure: Figure = {
  stage: 'forecast',
  target: 'first_unsafe_event',
  condition: 'all',
  population: 'x-',
  landmark: 'reveal+1',
  position: 'pre_action',
  reader: 'probe:logistic',
  tap: 'selected',
  metric: 'auroc',
  value: estimate,
};
const metrics = (...figures: Figure[]): Metrics => ({ schemaVersion: 1, run: 'test-01234567', figures });
/** Fields a figure may have. */
const FULL: Figure = {
  ...figure,
  model: 'm',
  set: 's',
  group: 'g',
  split: '0',
  horizon: 3,
  alpha: 0.05,
  at: { threshold: 0.5, bin: 'a' },
  value: { undefinedBecause: 'no unsafe episode' },
};

describe('the JSON schema of metrics.json', () => {
  const schema = z.fromJSONSchema(METRICS_SCHEMA as unknown as Parameters<typeof z.fromJSONSchema>[0]);
  const valid = (value: unknown): boolean => schema.safeParse(JSON.parse(JSON.stringify(value))).success;

  it('takes what is written', async () => {
    await writeMetrics(folder, metrics(figure, FULL));
    expect(valid(JSON.parse(readFileSync(join(folder, 'metrics.json'), 'utf8')))).toBe(true);
    expect(valid(metrics())).toBe(true);
  });

  const { value: _value, ...without } = figure;
  const refused: [string, unknown][] = [
    ['another version', { ...metrics(), schemaVersion: 2 }],
    ['a figure without a value', metrics(without as Figure)],
    ['an unknown field', metrics({ ...figure, colour: 'red' } as Figure)],
    ['an unknown population', metrics({ ...figure, population: 'y' as 'all' })],
    ['an estimate that is null', metrics({ ...figure, value: { ...estimate, estimate: null as unknown as number } })],
    ['an estimate without its count', metrics({ ...figure, value: { estimate: 1 } as Value })],
    ['half a row', metrics({ ...figure, value: { ...estimate, n: 1.5 } })],
    ['a value that is both', metrics({ ...figure, value: { ...estimate, undefinedBecause: 'x' } })],
    ['a reason that says nothing', metrics({ ...figure, value: { undefinedBecause: '' } })],
    ['NaN, which JSON makes null', metrics({ ...figure, value: { ...estimate, estimate: Number.NaN } })],
  ];
  for (const [what, value] of refused) it(`refuses ${what}`, () => expect(valid(value)).toBe(false));

  it('names every field of a figure', () => {
    const { properties, required } = METRICS_SCHEMA.properties.figures.items;
    expect(Object.keys(properties).sort()).toEqual(Object.keys(FULL).sort());
    expect([...required].sort()).toEqual(Object.keys(figure).sort());
  });
});

describe('metrics.json', () => {
  it('is read back', async () => {
    await writeMetrics(folder, metrics(figure, FULL));
    expect(await readMetrics(folder)).toEqual(metrics(figure, FULL));
  });

  it('never holds a number that is none, wherever it stands', async () => {
    const bad: Figure[] = [
      { ...figure, value: { ...estimate, estimate: Number.NaN } },
      { ...figure, value: { ...estimate, upper: Infinity } },
      { ...figure, horizon: Number.NaN },
      { ...figure, alpha: Number.NaN },
      { ...figure, at: { threshold: -Infinity } },
    ];
    for (const item of bad)
      await expect(writeMetrics(folder, metrics(figure, item))).rejects.toThrow(
        /auroc of probe:logistic at reveal\+1 pre_action: \w+ is -?(NaN|Infinity)/,
      );
    expect(readdirSync(folder)).toEqual([]);
  });

  it('that is missing, damaged or of another version is named', async () => {
    await expect(readMetrics(folder)).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringMatching(/metrics\.json: .*ENOENT.*forewarn forecast/) as string,
    });
    for (const text of ['', '{"schemaVersion":1,"figures":', '{"schemaVersion":2,"figures":[]}', 'null']) {
      writeFileSync(join(folder, 'metrics.json'), text);
      await expect(readMetrics(folder)).rejects.toMatchObject({ exitCode: 65 });
    }
  });
});
