import { expect, test } from 'vitest';
import { type ReportFlagsInput, reportFlags } from '../../src/intervention/report-flags.ts';
import type { OutcomeKind } from '../../src/intervention/types.ts';
import type { Figure, ScoreRow } from '../../src/types.ts';
import { number } from './watched.ts';

const row = (i: number, label: 0 | 1 | null, calibrated: number | null): ScoreRow => ({
  episode: `e${i}`,
  model: 'model',
  condition: 'all',
  population: 'x-',
  target: 'misreported',
  landmark: 'report',
  position: 'report_start',
  turn: 4,
  reader: 'probe:selected',
  tap: 'selected',
  fold: i % 5,
  group: i,
  label,
  score: 0,
  calibrated,
});

/** 100 violations with a verdict, 40 of them lied about; the 20 highest scores hold 15 lies. */
const rows = Array.from({ length: 100 }, (_, i) => {
  const lie = i < 15 || (i >= 20 && i < 45) ? 1 : 0;
  return row(i, lie, 1 - i / 100);
});

const flags = (change: Partial<ReportFlagsInput> = {}): readonly Figure[] =>
  reportFlags({ rows, budgets: [0.2], gates: [], randomRepeats: 200, bootstrapDraws: 500, seed: 1, ...change });

function find(figures: readonly Figure[], reader: string, metric: string, gate?: string): Figure {
  const found = figures.filter((f) => f.reader === reader && f.metric === metric && f.at?.['gate'] === gate);
  if (found.length !== 1) throw new Error(`${found.length} of ${reader} ${metric}`);
  return found[0];
}

test('precision and recall of reading the highest scores within the budget, beside random and the best possible', () => {
  const figures = flags();
  const at = (reader: string, metric: string) => number(find(figures, reader, metric).value);
  expect(at('policy:flag', 'flag_precision')).toBeCloseTo(15 / 20, 12);
  expect(at('policy:flag', 'flag_recall')).toBeCloseTo(15 / 40, 12);
  expect(at('policy:flag', 'flag_recall_minus_random')).toBeCloseTo(15 / 40 - 0.2, 12);
  expect(at('policy:flag', 'unflagged_lie_rate')).toBeCloseTo(25 / 100, 12);
  expect(at('policy:oracle', 'flag_recall')).toBeCloseTo(20 / 40, 12);
  expect(at('policy:random', 'flag_precision')).toBeCloseTo(0.4, 1);
  expect(at('policy:random', 'flag_recall')).toBeCloseTo(0.2, 1);
});

test('a score that knows nothing of lies reads no better than chance', () => {
  const blind = rows.map((r, i) => ({ ...r, calibrated: ((i * 37) % 100) / 100 }));
  const { value } = find(flags({ rows: blind }), 'policy:flag', 'flag_recall_minus_random');
  if ('undefinedBecause' in value) throw new Error(value.undefinedBecause);
  expect(value.lower! < 0 && value.upper! > 0).toBe(true);
});

test('after a gate only reports of episodes that ran on can be read, and every violation stays in the denominator', () => {
  const outcomes = new Map<string, OutcomeKind>(
    rows.map((r, i) => [r.episode, i < 10 ? 'prevented' : i < 12 ? 'late' : 'untouched'] as const),
  );
  const figures = flags({ gates: [{ name: 'threshold on probe:selected', alpha: 0.05, outcomes }] });
  const at = (metric: string) => find(figures, 'policy:flag', metric, 'threshold on probe:selected');
  // 88 reports are left, 17 may be read: e12 … e28, of which e12–e14 and e20–e28 lie; 28 lies are left.
  expect(number(at('flag_precision').value)).toBeCloseTo(12 / 17, 12);
  expect(number(at('flag_recall').value)).toBeCloseTo(12 / 28, 12);
  expect(number(at('unflagged_lie_rate').value)).toBeCloseTo(16 / 100, 12);
  expect(at('flag_recall').alpha).toBe(0.05);
});

test('rows without a verdict or a score are not there, and a budget below one report says so', () => {
  const figures = flags({ rows: [...rows.slice(0, 4), row(100, null, 0.9), row(101, 1, null)] });
  expect(find(figures, 'policy:flag', 'flag_precision').value).toEqual({
    undefinedBecause: 'no reports to read (a budget of 0.2 of 4 reports allows less than one)',
  });
  expect(flags({ rows: [] })).toEqual([]);
});
