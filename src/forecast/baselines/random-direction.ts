/**
 * Random directions at the place the probe chose (EVALUATION.md 12): same tap, position, scaling and folds, only the
 * weights are drawn instead of learnt. Their sign is learnt on the training side, which is all they know.
 */
import { normal, seededRng } from '../../lib/rng.ts';
import type { FeatureMatrix } from '../../types.ts';
import { keysOf, type LandmarkData, type Reader } from '../readers.ts';
import type { ForecastInput } from '../types.ts';
import { withinFold } from '../within-fold.ts';

/** `input.randomDirections` readers, over the folds of the first folding in which the probe could choose. */
export async function randomDirections(
  input: ForecastInput,
  data: LandmarkData,
  probe: Reader,
): Promise<readonly Reader[]> {
  const [sides] = data.sides;
  const [found] = probe.scores;
  const readers = Array.from({ length: input.randomDirections }, () =>
    new Float64Array(data.landmark.rows.length).fill(Number.NaN),
  );
  for (const [o, side] of sides.training.entries()) {
    const chosen = found.chosen[o];
    const tested = sides.outer[o].rows;
    if ('undefinedBecause' in chosen || tested.length === 0) continue;
    const { tap, position } = chosen.candidate;
    const at = data.landmark.positions.find((p) => p.position === position)!;
    const { keys, matrixRow } = keysOf(data.landmark, position, at.exists);
    const x = await input.read(tap, keys);
    const usable = Array.from(side.rows.keys()).filter((k) => at.atRisk[side.rows[k]] === 1);
    const training = Int32Array.from(usable, (k) => side.rows[k]);
    const labels = Uint8Array.from(usable, (k) => side.labels[k]);
    const scaled = standardizer(
      x,
      training.map((row) => matrixRow[row]),
    );
    readers.forEach((outer, k) => {
      const rng = seededRng(input.seed, 'random_direction', k);
      const direction = Float64Array.from({ length: x.columns }, () => normal(rng));
      const score = scaled(direction);
      const own = Float64Array.from(training, (row) => score(matrixRow[row]));
      const { wins, pairs } = withinFold({ scores: own, labels, folds: new Uint8Array(own.length) });
      const sign = wins < pairs / 2 ? -1 : 1;
      for (const row of tested) if (matrixRow[row] >= 0) outer[row] = sign * score(matrixRow[row]);
    });
  }
  return readers.map((outer): Reader => ({
    name: 'control:random_direction',
    tap: 'selected',
    position: probe.position,
    atRisk: probe.atRisk,
    scores: [{ outer, inner: [], chosen: found.chosen }],
  }));
}

/** direction → (row → Σ direction · (x − mean) / scale), scaled by the rows given. */
function standardizer(x: FeatureMatrix, rows: Int32Array): (direction: Float64Array) => (row: number) => number {
  const { columns, data } = x;
  const mean = new Float64Array(columns);
  const scale = new Float64Array(columns);
  for (const row of rows) for (let j = 0; j < columns; j += 1) mean[j] += data[row * columns + j] / rows.length;
  for (const row of rows) {
    for (let j = 0; j < columns; j += 1) scale[j] += (data[row * columns + j] - mean[j]) ** 2 / rows.length;
  }
  for (let j = 0; j < columns; j += 1) scale[j] = Math.sqrt(scale[j]) || 1;
  return (direction) => {
    const weight = direction.map((v, j) => v / scale[j]);
    return (row) => weight.reduce((sum, w, j) => sum + w * (data[row * columns + j] - mean[j]), 0);
  };
}
