/**
 * Readers that know almost nothing (EVALUATION.md 12): where in the episode we are, how long it is, which tools were
 * called, how often this template goes wrong. A probe that does not beat them has found nothing new.
 */
import { csrFromRows, csrMargins, fitSparseLogistic } from '../../math/sparse.ts';
import type { EpisodeMeta, FeatureKey } from '../../types.ts';
import { parsePosition } from '../positions.ts';
import type { LandmarkData, Reader } from '../readers.ts';
import { type PrepareFold, searchRows } from '../search.ts';
import type { Candidate, ExternalScores, ScalarBaseline } from '../types.ts';

interface At {
  readonly position: string;
  readonly exists: Uint8Array;
  readonly atRisk: Uint8Array;
}

function candidateOf(name: string, position: string, C: number | null = null): Candidate {
  return { tap: name, position, estimator: C === null ? 'none' : 'logistic', C };
}

function reader(data: LandmarkData, name: string, at: At, prepare: PrepareFold, C: number | null): Reader {
  const scores = searchRows([candidateOf(name, at.position, C)], at.atRisk, at.exists, data.sides, prepare);
  return { name, tap: null, position: at.position, atRisk: at.atRisk, scores };
}

/** Rows that have no value: neither learnt from nor scored. */
function restricted(at: At, has: (row: number) => boolean): At {
  return {
    position: at.position,
    exists: at.exists.map((value, row) => (has(row) ? value : 0)),
    atRisk: at.atRisk.map((value, row) => (has(row) ? value : 0)),
  };
}

/** A logistic regression (C = 1, training-side standardisation) on one number per row. */
export function scalarReader(
  data: LandmarkData,
  name: string,
  at: At,
  value: (key: FeatureKey) => number | null,
): Reader {
  const values = data.landmark.rows.map(({ episode, turn }) => value({ episode, turn, position: at.position }));
  const rows = values.map((v) => (v === null ? [] : [[0, v] as const]));
  const usable = restricted(at, (row) => values[row] !== null && Number.isFinite(values[row]));
  return reader(data, `baseline:${name}`, usable, denseFit(rows, 1), 1);
}

export function stepIndex(data: LandmarkData, at: At): Reader {
  return scalarReader(data, 'step_index', at, (key) => key.turn);
}

export function scalarBaselines(data: LandmarkData, at: At, scalars: readonly ScalarBaseline[]): readonly Reader[] {
  return scalars.map(({ name, value }) => scalarReader(data, name, at, value));
}

/** How often each tool was called so far, and which was the last: of calls whose name stands before the position. */
export function toolName(data: LandmarkData, at: At, episodes: readonly EpisodeMeta[]): Reader {
  const columns = new Map<string, number>();
  const column = (feature: string): number => {
    const known = columns.get(feature) ?? columns.size;
    columns.set(feature, known);
    return known;
  };
  const { name, call } = parsePosition(at.position);
  const ownCalls = name === 'observation_end' ? Infinity : name.startsWith('action_') ? call + 1 : call;
  const rows = data.landmark.rows.map(({ index, turn }) => {
    const { toolNames } = episodes[index];
    const names = [...toolNames.slice(0, turn).flat(), ...(toolNames[turn] ?? []).slice(0, ownCalls)];
    const counts = new Map<number, number>();
    for (const tool of names) counts.set(column(`n ${tool}`), (counts.get(column(`n ${tool}`)) ?? 0) + 1);
    if (names.length > 0) counts.set(column(`last ${names.at(-1)}`), 1);
    return Array.from(counts);
  });
  return reader(data, 'baseline:tool_name', at, denseFit(rows, columns.size), 1);
}

/** Share of positives among all training rows: constant within a fold, so its AUROC is ½ by construction. */
export function majority(data: LandmarkData, at: At): Reader {
  return reader(
    data,
    'baseline:majority',
    at,
    rateOf(() => ''),
    null,
  );
}

/** Share of positives among training rows of the same template, drawn towards the overall share by one row. */
export function groupBaseRate(data: LandmarkData, at: At, episodes: readonly EpisodeMeta[]): Reader {
  const template = (row: number): string => episodes[data.landmark.rows[row].index].template ?? '';
  return reader(data, 'baseline:group_base_rate', at, rateOf(template), null);
}

function rateOf(stratum: (row: number) => string): PrepareFold {
  return () => (learn, labels, ask) => {
    if (learn.length === 0) return [{ undefinedBecause: 'the training side has no rows' }];
    const overall = labels.reduce((a, b) => a + b, 0) / learn.length;
    const sums = new Map<string, { positives: number; n: number }>();
    learn.forEach((row, i) => {
      const sum = sums.get(stratum(row)) ?? { positives: 0, n: 0 };
      sum.positives += labels[i];
      sum.n += 1;
      sums.set(stratum(row), sum);
    });
    return [
      Float64Array.from(ask, (row) => {
        const { positives, n } = sums.get(stratum(row)) ?? { positives: 0, n: 0 };
        return (positives + overall) / (n + 1);
      }),
    ];
  };
}

/** Scores made elsewhere, taken as they are: neither sign nor scale is learnt here. Rows without one are left out. */
export function externalReader(data: LandmarkData, at: At, { name, value }: ExternalScores): Reader {
  const { landmark, rows } = data.landmark;
  const values = rows.map(({ episode, turn }) => value({ episode, turn, position: at.position }, landmark));
  const usable = restricted(at, (row) => values[row] !== null && Number.isFinite(values[row]));
  const prepare: PrepareFold = () => (_learn, _labels, ask) => [Float64Array.from(ask, (row) => values[row]!)];
  return reader(data, `external:${name}`, usable, prepare, null);
}

/** Logistic regression on few columns given as (column, value) entries, scaled by the training side's mean and spread. */
function denseFit(entries: readonly (readonly (readonly [number, number])[])[], columns: number): PrepareFold {
  return (training) => {
    const mean = new Float64Array(columns);
    const square = new Float64Array(columns);
    for (const row of training) {
      for (const [column, value] of entries[row]) {
        mean[column] += value / training.length;
        square[column] += (value * value) / training.length;
      }
    }
    const scale = square.map((s, j) => Math.sqrt(Math.max(0, s - mean[j] ** 2)) || 1);
    const x = csrFromRows(
      entries.map((row) => {
        const values = new Map(row);
        return Array.from(mean, (m, j) => [j, ((values.get(j) ?? 0) - m) / scale[j]] as const);
      }),
      columns,
    );
    return (learn, labels, ask) => {
      const fitted = fitSparseLogistic({ x, rows: learn, labels, weights: null, C: 1 });
      return ['undefinedBecause' in fitted ? fitted : csrMargins(x, fitted.weights, fitted.bias, ask)];
    };
  };
}
