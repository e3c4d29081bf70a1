import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { CorruptFileError } from '../../src/errors.ts';
import { type Curves, CURVES_SCHEMA, readCurves, writeCurves } from '../../src/store/curves.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder('curves');
});

const part = { model: 'm', condition: 'all', target: 'first_unsafe_event' };
const curves: Curves = {
  schemaVersion: 1,
  run: 'test-01234567',
  curves: [
    {
      ...part,
      kind: 'roc',
      population: 'x-',
      landmark: 'reveal+1',
      position: 'selected',
      reader: 'probe:selected',
      x: [0, 1],
      y: [0, 1],
      n: [0, 9],
    },
  ],
  stops: [
    {
      ...part,
      kind: 'stop',
      population: 'x+',
      reader: 'probe:selected',
      threshold: [0.9, -1],
      prevented: [null, null],
      disrupted: [0, 1],
      harm: [0, 0],
      usefulness: [1, 0],
      n: 9,
    },
  ],
  choices: [
    {
      ...part,
      landmark: 'reveal+1',
      readAt: 'selected',
      reader: 'probe:selected',
      trainedOn: 'x-',
      foldingSeed: 1,
      fold: 0,
      innerAuroc: 0.7,
      tap: 'resid_post.1',
      position: 'pre_action',
      estimator: 'mean_difference',
      C: null,
    },
  ],
  thresholds: [
    { ...part, reader: 'probe:selected', alpha: 0.05, fold: 0, threshold: 0.4 },
    { ...part, reader: 'probe:selected', alpha: 0.01, fold: 0, threshold: { undefinedBecause: 'too few' } },
  ],
};

describe('the JSON schema of curves.json', () => {
  const schema = z.fromJSONSchema(CURVES_SCHEMA as unknown as Parameters<typeof z.fromJSONSchema>[0]);
  const valid = (value: unknown): boolean => schema.safeParse(JSON.parse(JSON.stringify(value))).success;

  it('takes what is written', async () => {
    await writeCurves(folder, curves);
    expect(valid(JSON.parse(readFileSync(join(folder, 'curves.json'), 'utf8')))).toBe(true);
  });

  const [stop] = curves.stops;
  const refused: [string, unknown][] = [
    ['another version', { ...curves, schemaVersion: 2 }],
    ['a missing list', { ...curves, stops: undefined }],
    ['an unknown field', { ...curves, stops: [{ ...stop, colour: 'red' }] }],
    ['a harm that is null', { ...curves, stops: [{ ...stop, harm: [null, 0] }] }],
    ['a threshold without number or reason', { ...curves, thresholds: [{ ...curves.thresholds[0], threshold: null }] }],
  ];
  for (const [what, value] of refused) it(`refuses ${what}`, () => expect(valid(value)).toBe(false));
});

describe('curves.json', () => {
  it('is read back, and a folder without it has none', async () => {
    expect(await readCurves(folder)).toBe(null);
    await writeCurves(folder, curves);
    expect(await readCurves(folder)).toEqual(curves);
  });

  it('never holds a number that is none, and says where it stood', async () => {
    const bad: Curves = { ...curves, stops: [{ ...curves.stops[0], harm: [0, Number.NaN] }] };
    await expect(writeCurves(folder, bad)).rejects.toThrow('curves.stops.0.harm.1 is NaN');
  });

  it('refuses what is none of this version', async () => {
    for (const content of ['{"schemaVersion":2}', 'no json', '{"schemaVersion":1,"curves":[]}']) {
      writeFileSync(join(folder, 'curves.json'), content);
      await expect(readCurves(folder)).rejects.toThrow(CorruptFileError);
    }
  });
});
