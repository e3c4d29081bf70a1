/**
 * The null of the whole search (EVALUATION.md 13): outcomes of the risk set are exchanged between groups inside
 * template × condition × model; one permutation serves every tap, position and ridge; the statistic is the largest
 * studentised AUROC of all of them.
 *
 * Nested logistic refits × 1,000 permutations are out of reach, so the permuted reader is ridge regression (two
 * strengths, the stronger nearly the difference of means): cheaper, linear in the labels, and named in `at.estimator`.
 * Each candidate is studentised by mean and spread over all permutations, the observed one among them, which keeps
 * the (b + 1)/(B + 1) p-value exact.
 */
import { seededRng } from '../lib/rng.ts';
import { permutationPValue, permuteGroupsWithin } from '../math/permutation.ts';
import { quantile } from '../math/quantiles.ts';
import type { Figure, Gemm, Value } from '../types.ts';
import { count } from './figures.ts';
import { inPopulation, landmarkRows } from './landmarks.ts';
import { ridgeScores } from './ridge-scores.ts';
import { keysOf } from './readers.ts';
import { openLabels } from './sealed-labels.ts';
import type { ForecastInput, LandmarkSpec, Population } from './types.ts';

export interface NullInput {
  readonly input: ForecastInput;
  readonly spec: LandmarkSpec;
  readonly population: Population;
  readonly permutations: number;
  /** Landmarks that are claimed: the Bonferroni factor. */
  readonly landmarksClaimed: number;
  readonly gemm?: Gemm;
}

/** Permutations that the contract asks for; a figure of fewer says so in `at.contract`. */
export const MIN_PERMUTATIONS = 1000;

const RIDGES = [1, 100] as const;

export async function permutationNull(task: NullInput): Promise<readonly Figure[]> {
  const { input, spec, population, permutations } = task;
  const landmark = landmarkRows({ ...input, spec });
  const labels = openLabels(landmark.labels);
  const rows = landmark.rows.flatMap((row, i) => {
    const everywhere = landmark.positions.every((p) => p.atRisk[i] === 1);
    const labelled = labels[i] === 0 || labels[i] === 1;
    return everywhere && labelled && inPopulation(input.episodes[row.index], population) ? [i] : [];
  });
  const episodeOf = (i: number) => input.episodes[landmark.rows[i].index];
  const groups = rows.map((i) => input.groups[landmark.rows[i].index]);
  const strata = codesOf(rows.map((i) => `${episodeOf(i).template}\n${episodeOf(i).condition}\n${episodeOf(i).model}`));
  const [folding] = input.foldings;
  const folds = rows.map((i) => folding.fold[landmark.rows[i].index]);
  const observed = Uint8Array.from(rows, (i) => (labels[i] === 1 ? 1 : 0));

  const figure = (metric: string, value: Value, at: Figure['at'] = {}): Figure => ({
    stage: 'forecast',
    target: input.target.name,
    condition: input.condition,
    population,
    landmark: landmark.landmark,
    position: spec.positions.length > 1 ? 'selected' : spec.positions[0],
    reader: 'control:permutation',
    tap: null,
    metric,
    value,
    model: input.model,
    ...(input.split ? { split: input.split } : {}),
    ...(input.horizon === null ? {} : { horizon: input.horizon }),
    at: { estimator: 'ridge', ...(permutations < MIN_PERMUTATIONS ? { contract: MIN_PERMUTATIONS } : {}), ...at },
  });
  const metrics = ['p_value', 'p_value_bonferroni', 'selectivity', 'null_max_auroc'];
  const nothing = (why: string): readonly Figure[] =>
    metrics.map((metric) => figure(metric, { undefinedBecause: why }));
  const movable = movableRows(groups, strata, observed);
  const fixed = figure('permutable_rows', count(movable, rows.length));
  if (movable === 0) {
    return [fixed, ...nothing('inside template × condition × model no two groups of equal size differ in outcome')];
  }

  // Column 0 is the observed outcome.
  const outcomes = Array.from({ length: permutations + 1 }, (_, b) => {
    if (b === 0) return observed;
    const from = permuteGroupsWithin(groups, strata, seededRng(input.seed, 'null', landmark.landmark, population, b));
    return observed.map((_label, i) => observed[from[i]]);
  });
  const aurocs: Float64Array[] = [];
  for (const position of landmark.positions) {
    const { keys } = keysOf(landmark, position.position, maskOf(landmark.rows.length, rows));
    for (const tap of input.taps) {
      input.progress?.note(`null: ${landmark.landmark}, ${position.position}, ${tap}`);
      const x = await input.read(tap, keys);
      aurocs.push(...(await candidateAurocs(x, folds, folding.folds, outcomes, task.gemm)));
    }
  }
  const usable = aurocs.filter((values) => values.every((value) => !Number.isNaN(value)));
  if (usable.length === 0) return [fixed, ...nothing('no fold holds both classes under every permutation')];
  const largest = Float64Array.from(outcomes, (_, b) => Math.max(...usable.map((values) => values[b])));
  const studentised = usable.map(studentise).filter((values) => values !== null);
  if (studentised.length === 0) return [fixed, ...nothing('the AUROC is the same under every permutation')];
  const statistic = Float64Array.from(outcomes, (_, b) => Math.max(...studentised.map((values) => values[b])));
  const p = permutationPValue(statistic[0], statistic.subarray(1));
  if (typeof p !== 'number') return [fixed, ...nothing(p.undefinedBecause)];
  const nulls = largest.subarray(1);
  const mean = nulls.reduce((a, b) => a + b, 0) / nulls.length;
  const [low, high] = [quantile(nulls, 0.025), quantile(nulls, 0.975)].map(Number);
  const candidates = { candidates: usable.length };
  return [
    fixed,
    figure('p_value', count(p, permutations), candidates),
    figure('p_value_bonferroni', count(Math.min(1, p * task.landmarksClaimed), permutations), {
      landmarks: task.landmarksClaimed,
    }),
    figure(
      'selectivity',
      { ...count(largest[0] - mean, permutations), lower: largest[0] - high, upper: largest[0] - low },
      candidates,
    ),
    figure('null_max_auroc', { ...count(mean, permutations), lower: low, upper: high }, candidates),
  ];
}

/** Per ridge: within-fold AUROC under each outcome column; NaN where no fold holds both classes. */
async function candidateAurocs(
  x: Awaited<ReturnType<ForecastInput['read']>>,
  folds: readonly number[],
  foldCount: number,
  outcomes: readonly Uint8Array[],
  gemm: Gemm | undefined,
): Promise<readonly Float64Array[]> {
  const wins = RIDGES.map(() => new Float64Array(outcomes.length));
  const pairs = new Float64Array(outcomes.length);
  for (let fold = 0; fold < foldCount; fold += 1) {
    const held = Int32Array.from(folds.keys()).filter((i) => folds[i] === fold);
    const training = Int32Array.from(folds.keys()).filter((i) => folds[i] !== fold);
    if (held.length < 2 || training.length < 2) continue;
    // [outcomes, training], centred: the intercept of a standardised ridge is the mean label.
    const centred = new Float32Array(outcomes.length * training.length);
    outcomes.forEach((labels, b) => {
      const mean = training.reduce((sum, i) => sum + labels[i], 0) / training.length;
      training.forEach((i, k) => (centred[b * training.length + k] = labels[i] - mean));
    });
    const labels = outcomes.map((column) => Uint8Array.from(held, (i) => column[i]));
    const perRidge = await ridgeScores({ x, training, held, outcomes: centred, ridges: RIDGES, gemm });
    for (const [r, scores] of perRidge.entries()) {
      labels.forEach((column, b) => {
        const part = pairsWon(scores.subarray(b * held.length, (b + 1) * held.length), column);
        wins[r][b] += part.wins;
        if (r === 0) pairs[b] += part.pairs;
      });
    }
  }
  return wins.map((won) => won.map((value, b) => value / pairs[b]));
}

/** Concordant pairs of one fold by ranks of the positives among the negatives. */
function pairsWon(scores: Float32Array, labels: Uint8Array): { readonly wins: number; readonly pairs: number } {
  const negatives = scores.filter((_, i) => labels[i] === 0).sort();
  let wins = 0;
  for (let i = 0; i < scores.length; i += 1) {
    if (labels[i] === 1) wins += (bound(negatives, scores[i], false) + bound(negatives, scores[i], true)) / 2;
  }
  return { wins, pairs: negatives.length * (scores.length - negatives.length) };
}

/** Number of sorted values below `value` (or, `inclusive`, at most `value`). */
function bound(sorted: Float32Array, value: number, inclusive: boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value || (inclusive && sorted[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** null where the permutations do not move the AUROC. */
function studentise(values: Float64Array): Float64Array | null {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const sd = Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length);
  return sd > 1e-12 ? values.map((value) => (value - mean) / sd) : null;
}

/** Rows of groups that have a partner of their stratum and size with another outcome. */
function movableRows(groups: readonly number[], strata: Int32Array, labels: Uint8Array): number {
  const members = new Map<number, number[]>();
  groups.forEach((group, i) => members.set(group, [...(members.get(group) ?? []), i]));
  const cells = new Map<string, { rows: number; patterns: Set<string> }>();
  for (const rows of members.values()) {
    const key = `${strata[rows[0]]}/${rows.length}`;
    const cell = cells.get(key) ?? { rows: 0, patterns: new Set<string>() };
    cell.rows += rows.length;
    cell.patterns.add(rows.map((i) => labels[i]).join(''));
    cells.set(key, cell);
  }
  return [...cells.values()].reduce((sum, { rows, patterns }) => sum + (patterns.size > 1 ? rows : 0), 0);
}

function codesOf(keys: readonly string[]): Int32Array {
  const codes = new Map<string, number>();
  return Int32Array.from(keys, (key) => {
    const code = codes.get(key) ?? codes.size;
    codes.set(key, code);
    return code;
  });
}

function maskOf(length: number, rows: readonly number[]): Uint8Array {
  const mask = new Uint8Array(length);
  for (const row of rows) mask[row] = 1;
  return mask;
}
