/**
 * L2-regularised linear fits on one feature matrix: all C × folds × targets (and replicas) in one call. Each is the
 * optimum of scikit-learn's LogisticRegression(C=…), or Ridge(alpha=1/C) on ±1, after StandardScaler on its own training
 * rows:
 *
 *   minimise over w, b:  Σ_i s_i·loss(w·(x_i − mean)/scale + b, y_i) + ‖w‖²/(2C),   b unpenalised
 *
 * No row outside `rows` influences a fit. Standardisation is per problem, but done algebraically: all problems read one
 * matrix, in whose units the penalty of column k becomes (scale_k / unit_k)²·v_k². Problems with far fewer rows than
 * columns are solved in the span of their rows instead.
 */
import { DataError } from '../errors.ts';
import { solveLinearBatch } from '../math/batched-newton.ts';
import { withSmallProducts } from '../math/gemm.ts';
import type { Convergence } from '../math/newton.ts';
import type { LinearProblem } from '../math/newton-slot.ts';
import { diagonalPreconditioner, gramPreconditioner, type Preconditioner } from '../math/preconditioner.ts';
import { gramMatrix, matrixBlocks, rescaledBlocks, type RowBlocks, selectedBlocks } from '../math/row-blocks.ts';
import { logisticRows, type RowLoss, squaredRows } from '../math/row-loss.ts';
import { rowSpace } from '../math/row-space.ts';
import { columnMoments, type Standardization } from '../math/standardize.ts';
import type { FeatureMatrix, Gemm, Gemm64, Undefined } from '../types.ts';
import { groupByRows, type RowSet, type TrainingRows } from './row-sets.ts';

export interface LinearFitProblem extends TrainingRows {
  /** Absent: logistic. `squared` is least squares on labels ±1. */
  readonly loss?: 'logistic' | 'squared';
  /** scikit-learn's C. */
  readonly C: number;
}

/** score(x) = weights · ((x − mean) / scale) + bias, and how the fit ended. All arrays [columns]. */
export interface FittedReader {
  readonly mean: Float64Array;
  readonly scale: Float64Array;
  readonly weights: Float64Array;
  readonly bias: number;
  /** null for estimators in closed form. */
  readonly convergence: Convergence | null;
}

export interface FitLinearOptions {
  /** The matrix, or blocks of its rows (larger than memory, or held in another precision). */
  readonly x: FeatureMatrix | RowBlocks;
  readonly problems: readonly LinearFitProblem[];
  readonly gemm: Gemm;
  /** For the float64 gradients that fits are judged by; absent: plain loops, about ten times slower. */
  readonly gemm64?: Gemm64;
  /** Relative objective gap aimed at; the default is a tenth of the 1e-6 that the fits promise. */
  readonly tolerance?: number;
  /** false: mean 0 and scale 1, so w are plain coefficients of x. */
  readonly standardize?: boolean;
  /** Problems in flight; fewer for less memory. */
  readonly slots?: number;
  /** Newton steps after which a fit is given up, and says so. */
  readonly maxIterations?: number;
}

/** Widest matrix whose Gram factors are kept (27 MB each). */
const MAX_DENSE = 2600;
/** Multiplications that the Gram matrix of one row set may cost for the row-space form. */
const MAX_ROW_SPACE = 3e8;

/**
 * Answers in the order of the problems. A problem with one class (or no weight) is undefined with the reason.
 * @throws DataError where a used row holds a number that is not finite
 * @throws TypeError where labels or weights do not match the rows, or C is not positive
 */
export async function fitLinearBatch(options: FitLinearOptions): Promise<readonly (FittedReader | Undefined)[]> {
  const { problems, standardize = true } = options;
  const gemm = withSmallProducts(options.gemm);
  for (const { C } of problems) {
    if (!(C > 0 && Number.isFinite(C))) throw new TypeError(`C must be a positive number, got ${C}`);
  }
  const { x, sets } = usedRows('data' in options.x ? matrixBlocks(options.x) : options.x, problems);
  const results: (FittedReader | Undefined)[] = [];
  const usable = sets.filter((set) => {
    if (set.total > 0) return true;
    for (const index of set.problems) results[index] = { undefinedBecause: 'the training rows hold no rows' };
    return false;
  });
  if (usable.length === 0) return results;

  const wanted = standardize ? usable.map((set) => set.weights) : [];
  const [all, ...own] = await columnMoments(x, [new Float64Array(x.rows).fill(1), ...wanted]);
  checkFinite(all);
  const fitted = usable.map((_, at) => (standardize ? own[at] : identity(x.columns)));
  const inRowSpace = usable.map(({ rows }) => rows <= x.columns / 2 && (rows * rows * x.columns) / 2 <= MAX_ROW_SPACE);
  const common = { ...options, gemm, x };
  const shared = usable.flatMap((set, at) => (inRowSpace[at] ? [] : [{ set, moments: fitted[at] }]));
  if (shared.length > 0) await fitShared(common, shared, all, results);
  for (let at = 0; at < usable.length; at += 1) {
    if (inRowSpace[at]) await fitInRowSpace(common, usable[at], fitted[at], results);
  }
  return results;
}

interface Common extends FitLinearOptions {
  readonly x: RowBlocks;
}

/** Problems on many rows: one matrix, in units that are alike for all columns. */
async function fitShared(
  { x, problems, gemm, gemm64, tolerance, slots, maxIterations }: Common,
  sets: readonly { readonly set: RowSet; readonly moments: Standardization }[],
  all: Standardization,
  results: (FittedReader | Undefined)[],
): Promise<void> {
  // Columns that are nearly standardised already are read as they are: no copy, no pass to rescale.
  const plain = all.mean.every((m, k) => Math.abs(m) <= 4 * all.scale[k] && all.scale[k] >= 0.25 && all.scale[k] <= 4);
  const unit = plain ? identity(x.columns) : all;
  const design = plain ? x : rescaledBlocks(x, unit.mean, unit.scale);
  const shapes = sets.map(({ moments }) => moments.scale.map((scale, k) => (scale / unit.scale[k]) ** 2));
  const wanted: LinearProblem[] = [];
  const at: { readonly index: number; readonly moments: Standardization }[] = [];
  sets.forEach(({ set, moments }, s) => {
    for (const index of set.problems) {
      wanted.push({
        loss: lossOf(problems[index]),
        labels: set.labelsOf(problems[index]),
        weights: set.weights,
        strength: 1 / problems[index].C,
        shape: shapes[s],
      });
      at.push({ index, moments });
    }
  });
  const precondition = await preconditionerOf(design, averageOf(shapes), gemm);
  const solved = await solveLinearBatch(design, wanted, {
    gemm,
    gemm64,
    precondition,
    tolerance,
    slots,
    maxIterations,
  });
  solved.forEach((solution, i) => {
    const { index, moments } = at[i];
    if ('undefinedBecause' in solution) {
      results[index] = solution;
      return;
    }
    const { v, c, convergence } = solution;
    let bias = c;
    for (let k = 0; k < v.length; k += 1) bias += (v[k] * (moments.mean[k] - unit.mean[k])) / unit.scale[k];
    const weights = v.map((value, k) => (value * moments.scale[k]) / unit.scale[k]);
    results[index] = { ...moments, weights, bias, convergence };
  });
}

/** Problems on one small set of rows, in the span of those rows. */
async function fitInRowSpace(
  { x, problems, gemm, gemm64, tolerance, slots, maxIterations }: Common,
  set: RowSet,
  moments: Standardization,
  results: (FittedReader | Undefined)[],
): Promise<void> {
  const rows = await standardizedRows(x, set, moments);
  const space = rowSpace(rows, set.rows, x.columns);
  const kept = keptRows(set);
  const weights = Float64Array.from(kept, (row) => set.weights[row]);
  const design = matrixBlocks({ data: space.coordinates, rows: set.rows, columns: space.rank });
  const shape = new Float64Array(space.rank).fill(1);
  const wanted = set.problems.map((index) => {
    const labels = set.labelsOf(problems[index]);
    return {
      loss: lossOf(problems[index]),
      labels: Uint8Array.from(kept, (row) => labels[row]),
      weights,
      strength: 1 / problems[index].C,
      shape,
    };
  });
  const precondition = await preconditionerOf(design, shape, gemm);
  const solved = await solveLinearBatch(design, wanted, {
    gemm,
    gemm64,
    precondition,
    tolerance,
    slots,
    maxIterations,
  });
  solved.forEach((solution, i) => {
    results[set.problems[i]] =
      'undefinedBecause' in solution
        ? solution
        : { ...moments, weights: space.expand(solution.v), bias: solution.c, convergence: solution.convergence };
  });
}

async function preconditionerOf(design: RowBlocks, shape: Float64Array, gemm: Gemm): Promise<Preconditioner> {
  if (design.columns <= MAX_DENSE) return gramPreconditioner(await gramMatrix(design, gemm), shape, gemm);
  const squares = new Float64Array(design.columns);
  for await (const { count, data } of design.blocks()) {
    for (let i = 0, at = 0; i < count; i += 1)
      for (let k = 0; k < squares.length; k += 1, at += 1) squares[k] += data[at] ** 2;
  }
  return diagonalPreconditioner(squares, shape);
}

function lossOf({ loss }: LinearFitProblem): RowLoss {
  return loss === 'squared' ? squaredRows : logisticRows;
}

function keptRows(set: RowSet): Int32Array {
  const kept = new Int32Array(set.rows);
  let at = 0;
  set.weights.forEach((weight, row) => {
    if (weight > 0) kept[at++] = row;
  });
  return kept;
}

/** [set.rows × columns] standardised rows of positive weight. */
async function standardizedRows(x: RowBlocks, set: RowSet, { mean, scale }: Standardization): Promise<Float64Array> {
  const d = x.columns;
  const out = new Float64Array(set.rows * d);
  let to = 0;
  for await (const { start, count, data } of x.blocks()) {
    for (let i = 0; i < count; i += 1) {
      if (set.weights[start + i] === 0) continue;
      for (let k = 0, from = i * d; k < d; k += 1, from += 1, to += 1) out[to] = (data[from] - mean[k]) / scale[k];
    }
  }
  return out;
}

/** The rows that some problem trains on; what stands in the others is never read, be it NaN. */
function usedRows(
  x: RowBlocks,
  problems: readonly LinearFitProblem[],
): { readonly x: RowBlocks; readonly sets: readonly RowSet[] } {
  const sets = groupByRows(x.rows, problems);
  const used = new Uint8Array(x.rows);
  for (const { weights } of sets) weights.forEach((weight, row) => (used[row] |= weight > 0 ? 1 : 0));
  const rows = Int32Array.from(used.keys()).filter((row) => used[row] === 1);
  if (rows.length === x.rows) return { x, sets };
  return {
    x: selectedBlocks(x, rows),
    sets: sets.map((set) => ({
      ...set,
      weights: Float64Array.from(rows, (row) => set.weights[row]),
      labelsOf(problem) {
        const labels = set.labelsOf(problem);
        return Uint8Array.from(rows, (row) => labels[row]);
      },
    })),
  };
}

function averageOf(shapes: readonly Float64Array[]): Float64Array {
  const mean = new Float64Array(shapes[0].length);
  for (const shape of shapes) for (let k = 0; k < mean.length; k += 1) mean[k] += shape[k] / shapes.length;
  return mean;
}

function identity(columns: number): Standardization {
  return { mean: new Float64Array(columns), scale: new Float64Array(columns).fill(1) };
}

function checkFinite({ mean, scale }: Standardization): void {
  const column = mean.findIndex((value, k) => !Number.isFinite(value) || !Number.isFinite(scale[k]));
  if (column >= 0) {
    throw new DataError(
      `feature matrix: expected finite numbers, got NaN or Infinity in column ${column}. Leave those rows out, or capture them again`,
    );
  }
}
