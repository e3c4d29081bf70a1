import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { ForecastRow } from '../../src/forecast/landmarks.ts';
import { NO_LABEL, openLabels, type RowLabel, sealLabels } from '../../src/forecast/sealed-labels.ts';
import { checkFolding, dealInnerFolds, openOuterSide, splitRows } from '../../src/forecast/sides.ts';
import { meta } from './episodes.ts';

const rows: ForecastRow[] = Array.from({ length: 12 }, (_, i) => ({
  index: i,
  episode: `e${i}`,
  turn: 2,
}));
const labels = rows.map((_, i): RowLabel => (i === 11 ? NO_LABEL : i % 3 === 0 ? 1 : 0));
const landmark = { rows, labels: sealLabels(labels) };
const groups = Int32Array.from(rows, (_, i) => Math.floor(i / 2));
const folding = { seed: 1, folds: 3, fold: Int32Array.from(groups, (group) => group % 3) };
const split = () =>
  splitRows({ landmark, trainable: new Uint8Array(12).fill(1), groups, folding, innerFolds: 2, release: false });

test('training side and outer side of a fold share no group', () => {
  const { training, outer } = split();
  training.forEach((side, fold) => {
    const tested = new Set(Array.from(outer[fold].rows, (row) => groups[row]));
    expect(side.groups.some((group) => tested.has(group))).toBe(false);
    expect([...side.rows].some((row) => labels[row] === NO_LABEL)).toBe(false);
  });
  expect(outer.map((side) => side.rows.length).reduce((a, b) => a + b)).toBe(12);
});

test('reading the outer side twice is an error, and a forged side is refused', () => {
  const { outer } = split();
  expect([...openOuterSide(outer[0])]).toEqual(Array.from(outer[0].rows, (row) => labels[row]));
  expect(() => openOuterSide(outer[0])).toThrow(/fold 0 was read already: a test set is read once/);
  expect(() => openOuterSide({ ...outer[1] })).toThrow(/not sealed/);
});

test('neither the outer side nor the rows of a landmark show a label until they are opened', () => {
  expect(Object.keys(split().outer[0])).toEqual(['fold', 'rows']);
  expect(JSON.stringify(landmark)).not.toContain('label":');
  expect(landmark.labels).toEqual({ rows: 12 });
});

test('the labels of a landmark are handed out once, and a forged handle is refused', () => {
  const sealed = sealLabels(labels);
  expect([...openLabels(sealed)]).toEqual(labels);
  expect(() => openLabels(sealed)).toThrow('the labels of these rows were read already: a test set is read once');
  expect(() => openLabels({ rows: 12 })).toThrow(/not sealed by landmarkRows/);
});

test('only the split deals sealed labels, and only evaluations that fit nothing more open what was sealed', () => {
  const folder = fileURLToPath(new URL('../../src', import.meta.url));
  const users = (name: string): readonly string[] =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && readFileSync(join(folder, file), 'utf8').includes(`${name}(`))
      .map((file) => file.replaceAll('\\', '/'))
      .sort();
  expect(users('labelsToDeal')).toEqual(['forecast/sealed-labels.ts', 'forecast/sides.ts']);
  expect(users('openOuterSide')).toEqual([
    'forecast/evaluate-landmark.ts',
    'forecast/sides.ts',
    'forecast/transfer.ts',
  ]);
  expect(users('openLabels')).toEqual([
    'forecast/apply-probe.ts',
    'forecast/checks.ts',
    'forecast/permutation-null.ts',
    'forecast/sealed-labels.ts',
  ]);
});

test('inner folds keep groups whole and spread the groups with a positive', () => {
  const inner = dealInnerFolds(
    groups,
    Uint8Array.from(rows, (_, i) => (i < 4 ? 1 : 0)),
    2,
    'seed',
  );
  for (let i = 0; i < 12; i += 2) expect(inner[i]).toBe(inner[i + 1]);
  expect(inner[0]).not.toBe(inner[2]); // the two groups with positives
});

test('a group in two folds is refused by name', () => {
  const episodes = [meta('a'), meta('b')];
  const bad = { seed: 0, folds: 2, fold: Int32Array.from([0, 1]) };
  expect(() => checkFolding(bad, Int32Array.from([7, 7]), episodes)).toThrow(
    /group 7 in one fold, got a in 0 and b in 1/,
  );
  expect(() => checkFolding(bad, Int32Array.from([7, 8]), episodes)).not.toThrow();
  expect(() => checkFolding({ ...bad, folds: 1 }, Int32Array.from([7, 8]), episodes)).toThrow(
    /from 0 to 0 for b, got 1/,
  );
  expect(() => checkFolding(bad, Int32Array.from([7]), episodes)).toThrow(/each of 2 episodes/);
});

test('the side of the released probe holds every labelled row and tests none', () => {
  const sides = splitRows({
    landmark,
    trainable: new Uint8Array(12).fill(1),
    groups,
    folding,
    innerFolds: 2,
    release: true,
  });
  expect(sides.training.at(-1)!.rows.length).toBe(11);
  expect(sides.outer.at(-1)!.rows.length).toBe(0);
});
