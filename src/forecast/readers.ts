/**
 * The probe readers of one landmark: every tap × position × estimator × C is searched inside the folds, tap by tap, so
 * that one matrix is in memory at a time. Nothing here sees a label of an outer side.
 */
import type { FeatureKey, FeatureMatrix, Tap } from '../types.ts';
import type { LandmarkRows } from './landmarks.ts';
import { betterOf, type FoldScores, searchTap } from './search.ts';
import type { Sides } from './sides.ts';
import type { EstimatorSpec, ForecastInput } from './types.ts';

/** Rows, folds and masks of one landmark and training population. */
export interface LandmarkData {
  readonly landmark: LandmarkRows;
  /** Per folding of the input; the first has the side of the released probe as its last. */
  readonly sides: readonly Sides[];
  /** Per row: at risk, or existing, at every position: the rows on which positions are compared. */
  readonly jointAtRisk: Uint8Array;
  readonly jointExists: Uint8Array;
}

/** Scores of one way of reading an episode, on the same rows and folds as every other. */
export interface Reader {
  /** `probe:logistic`, `text:so_far`, `baseline:step_index` … */
  readonly name: string;
  readonly tap: string | null;
  /** A position name, or `selected`. */
  readonly position: string;
  /** Per row. */
  readonly atRisk: Uint8Array;
  /** Per folding. */
  readonly scores: readonly FoldScores[];
}

export interface ProbeReaders {
  /** Per estimator and position, tap selected; with several positions also `selected`; with several estimators `probe:selected`. */
  readonly readers: readonly Reader[];
  /** The search itself: one reader per tap × position × estimator, first folding only. */
  readonly map: readonly Reader[];
  readonly layer0: readonly Reader[];
}

/** The reader that stands for "the probe": the estimator, or the one selected among several. */
export function headlineReader(estimators: readonly EstimatorSpec[]): string {
  return estimators.length > 1 ? 'probe:selected' : `probe:${estimators[0].name}`;
}

/** Position under which the headline of a landmark stands. */
export function headlinePosition(positions: readonly { readonly position: string }[]): string {
  return positions.length > 1 ? 'selected' : positions[0].position;
}

/** What nobody has to be asked for. */
const NOTHING: FeatureMatrix = { data: new Float32Array(0), rows: 0, columns: 0 };

export async function probeReaders(input: ForecastInput, data: LandmarkData): Promise<ProbeReaders> {
  const { estimators, layer0, taps } = input;
  const { positions } = data.landmark;
  const several = positions.length > 1;
  /** [estimator][position] → per folding. */
  const best: (readonly FoldScores[])[][] = estimators.map(() => []);
  const joint: (readonly FoldScores[])[] = [];
  const map: Reader[] = [];
  const layer0Readers: Reader[] = [];
  const readTaps = layer0 === null || taps.includes(layer0) ? taps : [...taps, layer0];

  for (const [p, { position, exists, atRisk }] of positions.entries()) {
    const { keys, matrixRow } = keysOf(data.landmark, position, exists);
    for (const tap of readTaps) {
      input.progress?.note(`${data.landmark.landmark}: ${position}, ${tap}`);
      const x = keys.length > 0 ? await input.read(tap, keys) : NOTHING;
      checkMatrix(x, keys.length, tap);
      const found = await searchTap({ tap, position, x, matrixRow, atRisk }, data.sides, estimators, input.fit);
      estimators.forEach(({ name }, e) => {
        const scores = found.map((perEstimator) => perEstimator[e]);
        if (tap === layer0 && e === 0) {
          layer0Readers.push({ name: 'baseline:layer_0', tap, position, atRisk, scores });
        }
        if (!taps.includes(tap)) return;
        map.push({ name: `probe:${name}`, tap, position, atRisk, scores: scores.slice(0, 1) });
        best[e][p] = merge(best[e][p], scores, data.sides, null);
        if (several) joint[e] = merge(joint[e], scores, data.sides, data.jointAtRisk)!;
      });
    }
  }

  const readers: Reader[] = [];
  const add = (name: string, position: string, atRisk: Uint8Array, scores: readonly FoldScores[]): void => {
    readers.push({ name, tap: 'selected', position, atRisk, scores });
  };
  const across = (lists: readonly (readonly FoldScores[])[], mask: Uint8Array | null): readonly FoldScores[] =>
    lists.slice(1).reduce((a, b) => merge(a, b, data.sides, mask), lists[0]);
  positions.forEach(({ position, atRisk }, p) => {
    estimators.forEach(({ name }, e) => add(`probe:${name}`, position, atRisk, best[e][p]));
    if (estimators.length > 1) {
      add(
        'probe:selected',
        position,
        atRisk,
        across(
          best.map((list) => list[p]),
          null,
        ),
      );
    }
  });
  if (several) {
    estimators.forEach(({ name }, e) => add(`probe:${name}`, 'selected', data.jointAtRisk, joint[e]));
    if (estimators.length > 1) add('probe:selected', 'selected', data.jointAtRisk, across(joint, data.jointAtRisk));
    layer0Readers.push(...selectPosition(layer0Readers, data));
  }
  return { readers, map, layer0: layer0Readers };
}

function merge(
  a: readonly FoldScores[] | undefined,
  b: readonly FoldScores[],
  sides: readonly Sides[],
  mask: Uint8Array | null,
): readonly FoldScores[] {
  if (!a) return b;
  return a.map((scores, f) => betterOf(scores, b[f], sides[f], mask));
}

/** One reader over the joint rows whose position is chosen inside the folds; nothing for a single position. */
export function selectPosition(perPosition: readonly Reader[], data: LandmarkData): readonly Reader[] {
  if (perPosition.length < 2) return [];
  const [first, ...rest] = perPosition;
  const scores = rest.reduce((best, reader) => merge(best, reader.scores, data.sides, data.jointAtRisk), first.scores);
  return [{ ...first, position: 'selected', atRisk: data.jointAtRisk, scores }];
}

/** Keys of the rows that have the position, and for each landmark row its row in the matrix (−1 = none). */
export function keysOf(
  landmark: LandmarkRows,
  position: string,
  exists: Uint8Array,
): { readonly keys: readonly FeatureKey[]; readonly matrixRow: Int32Array } {
  const keys: FeatureKey[] = [];
  const matrixRow = new Int32Array(landmark.rows.length).fill(-1);
  landmark.rows.forEach(({ episode, turn }, i) => {
    if (exists[i] === 0) return;
    matrixRow[i] = keys.length;
    keys.push({ episode, turn, position });
  });
  return { keys, matrixRow };
}

function checkMatrix(x: FeatureMatrix, rows: number, tap: Tap): void {
  if (x.rows !== rows || x.data.length !== x.rows * x.columns) {
    throw new Error(`read(${tap}): expected ${rows} rows, got ${x.rows} × ${x.columns} in ${x.data.length} numbers`);
  }
}
