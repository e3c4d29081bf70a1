/**
 * Nested selection (EVALUATION.md 7). Every candidate (tap, position, estimator, C) becomes a `FoldScores`: margins of
 * readers fitted on inner folds, which the training side may look at, and margins of the reader refitted on the whole
 * training side, which stay unlabelled until the outer side is opened. `betterOf` chooses per outer fold.
 */
import type { FeatureMatrix, Tap, Undefined } from '../types.ts';
import type { Sides, TrainingSide } from './sides.ts';
import type { Candidate, EstimatorSpec, FitProblem, FitReaders, LinearReader } from './types.ts';
import { withinFold } from './within-fold.ts';

export interface FoldScores {
  /** Per row: margin of the reader of the row's outer fold. NaN = no score (no state there, or no reader). */
  readonly outer: Float64Array;
  /** Per outer fold: margins of the inner readers, aligned with `training.rows`. NaN = no score. */
  readonly inner: readonly Float64Array[];
  /** Per outer fold: what was fitted, or why nothing could be. */
  readonly chosen: readonly (Chosen | Undefined)[];
}

export interface Chosen {
  readonly candidate: Candidate;
  /** Within-inner-fold AUROC over the rows the choice was made on. */
  readonly innerAuroc: number;
}

export interface TapRows {
  readonly tap: Tap;
  readonly position: string;
  readonly x: FeatureMatrix;
  /** Row of `x` for each row of the landmark; −1 where the position does not exist. */
  readonly matrixRow: Int32Array;
  /** Per landmark row: at risk at this position, so that it may be learnt from. */
  readonly atRisk: Uint8Array;
}

/** Index lists of the fits of one training side: inner folds first, the whole side last. */
interface Plan {
  readonly side: TrainingSide;
  /** Positions within `side.rows` that may be learnt from. */
  readonly usable: Int32Array;
}

/**
 * Fits every folding × outer fold × (inner folds + whole) × estimator × C on one matrix in one call of the fitter.
 * @returns per folding, per estimator: the scores with C chosen on the training side
 */
export async function searchTap(
  at: TapRows,
  foldings: readonly Sides[],
  estimators: readonly EstimatorSpec[],
  fit: FitReaders,
): Promise<readonly (readonly FoldScores[])[]> {
  const plans = foldings.map((sides) =>
    sides.training.map((side): Plan => {
      const usable: number[] = [];
      side.rows.forEach((row, k) => {
        if (at.atRisk[row] === 1) usable.push(k);
      });
      return { side, usable: Int32Array.from(usable) };
    }),
  );
  const problems: FitProblem[] = [];
  for (const folding of plans) {
    for (const { side, usable } of folding) {
      for (let inner = 0; inner <= side.innerFolds; inner += 1) {
        const learn = usable.filter((k) => side.inner[k] !== inner);
        const rows = learn.map((k) => at.matrixRow[side.rows[k]]);
        const labels = Uint8Array.from(learn, (k) => side.labels[k]);
        for (const { name, Cs } of estimators) {
          for (const C of Cs) problems.push({ rows, labels, weights: null, estimator: name, C });
        }
      }
    }
  }
  const readers = await fitBothClasses(at.x, problems, fit);

  let next = 0;
  const perCandidate = estimators.reduce((sum, { Cs }) => sum + Cs.length, 0);
  return plans.map((folding, f) => {
    const outerSides = foldings[f].outer;
    const rowCount = at.matrixRow.length;
    const scored = estimators.map(({ Cs }) => Cs.map(() => emptyScores(foldings[f], rowCount)));
    folding.forEach(({ side, usable }, o) => {
      const first = next;
      next += perCandidate * (side.innerFolds + 1);
      let offset = 0;
      estimators.forEach(({ name, Cs }, e) => {
        Cs.forEach((C, c) => {
          const scores = scored[e][c];
          for (let inner = 0; inner < side.innerFolds; inner += 1) {
            const reader = readers[first + inner * perCandidate + offset];
            if ('undefinedBecause' in reader) continue;
            const score = scorer(reader, at.x);
            for (const k of usable) {
              if (side.inner[k] === inner) scores.inner[o][k] = score(at.matrixRow[side.rows[k]]);
            }
          }
          const whole = readers[first + side.innerFolds * perCandidate + offset];
          offset += 1;
          if ('undefinedBecause' in whole) {
            scores.chosen.push(whole);
            return;
          }
          const candidate = { tap: at.tap, position: at.position, estimator: name, C };
          const chosen = withInnerAuroc(candidate, side, scores.inner[o], null);
          scores.chosen.push(chosen);
          if ('undefinedBecause' in chosen) return;
          const score = scorer(whole, at.x);
          for (const row of outerSides[o].rows) {
            if (at.matrixRow[row] >= 0) scores.outer[row] = score(at.matrixRow[row]);
          }
        });
      });
    });
    return scored.map((list) => bestOf(list, foldings[f], null));
  });
}

/** Only training sets that hold both classes reach the fitter; the others are undefined without asking. */
export async function fitBothClasses(
  x: FeatureMatrix,
  problems: readonly FitProblem[],
  fit: FitReaders,
): Promise<readonly (LinearReader | Undefined)[]> {
  const askable = problems.filter(({ labels }) => labels.includes(0) && labels.includes(1));
  const readers = askable.length > 0 ? await fit(x, askable) : [];
  if (readers.length !== askable.length) {
    throw new Error(`the fitter answered ${readers.length} readers for ${askable.length} problems`);
  }
  const answers = new Map(askable.map((problem, i) => [problem, readers[i]]));
  return problems.map((problem) => {
    const { labels } = problem;
    const why = labels.length === 0 ? 'no rows' : labels.includes(1) ? 'positives only' : 'negatives only';
    return answers.get(problem) ?? { undefinedBecause: `the training rows hold ${why}` };
  });
}

/**
 * What `searchRows` asks of one training set: margins of the rows `ask` by each candidate, in their order. Without
 * labels of `ask`, which may be rows of the outer side.
 */
export type FitRows = (learn: Int32Array, labels: Uint8Array, ask: Int32Array) => readonly (Float64Array | Undefined)[];

/** Prepares one outer fold: whatever is taken from the rows alone (vocabulary, kernel) may see `training` only. */
export type PrepareFold = (training: Int32Array, tested: Int32Array) => FitRows;

/**
 * The same nested selection for readers that are not linear in a stored matrix (text, base rates): rows are landmark
 * rows throughout.
 * @returns per folding
 */
export function searchRows(
  candidates: readonly Candidate[],
  atRisk: Uint8Array,
  exists: Uint8Array,
  foldings: readonly Sides[],
  prepare: PrepareFold,
): readonly FoldScores[] {
  return foldings.map((sides) => {
    const scored = candidates.map(() => emptyScores(sides, exists.length));
    for (const [o, side] of sides.training.entries()) {
      const usable = Int32Array.from(side.rows.keys()).filter((k) => atRisk[side.rows[k]] === 1);
      const tested = sides.outer[o].rows.filter((row) => exists[row] === 1);
      const fit = prepare(
        usable.map((k) => side.rows[k]),
        tested,
      );
      const fitOn = (learn: Int32Array, ask: Int32Array) =>
        fit(
          learn.map((k) => side.rows[k]),
          Uint8Array.from(learn, (k) => side.labels[k]),
          ask,
        );
      for (let inner = 0; inner < side.innerFolds; inner += 1) {
        const held = usable.filter((k) => side.inner[k] === inner);
        const margins = fitOn(
          usable.filter((k) => side.inner[k] !== inner),
          held.map((k) => side.rows[k]),
        );
        margins.forEach((values, c) => {
          if ('undefinedBecause' in values) return;
          held.forEach((k, i) => (scored[c].inner[o][k] = values[i]!));
        });
      }
      const margins = fitOn(usable, tested);
      margins.forEach((values, c) => {
        const scores = scored[c];
        const chosen =
          'undefinedBecause' in values ? values : withInnerAuroc(candidates[c], side, scores.inner[o], null);
        scores.chosen.push(chosen);
        if ('undefinedBecause' in values || 'undefinedBecause' in chosen) return;
        tested.forEach((row, i) => (scores.outer[row] = values[i]!));
      });
    }
    return bestOf(scored, sides, null);
  });
}

interface OpenScores {
  readonly outer: Float64Array;
  readonly inner: readonly Float64Array[];
  readonly chosen: (Chosen | Undefined)[];
}

function emptyScores(sides: Sides, rows: number): OpenScores {
  return {
    outer: new Float64Array(rows).fill(NaN),
    inner: sides.training.map((side) => new Float64Array(side.rows.length).fill(NaN)),
    chosen: [],
  };
}

/** x row → margin. Weights are folded with mean and scale once. */
export function scorer(reader: LinearReader, x: FeatureMatrix): (row: number) => number {
  const { columns, data } = x;
  if (reader.weights.length !== columns) {
    throw new Error(`the fitter answered a reader of width ${reader.weights.length} for ${columns} columns`);
  }
  const weight = new Float64Array(columns);
  let bias = reader.bias;
  for (let j = 0; j < columns; j += 1) {
    weight[j] = reader.weights[j] / reader.scale[j];
    bias -= weight[j] * reader.mean[j];
  }
  const blocks = columns - (columns % 4);
  return (row) => {
    // Four sums at a time: one alone waits for the latency of every addition.
    let a = bias;
    let b = 0;
    let c = 0;
    let d = 0;
    const base = row * columns;
    for (let j = 0; j < blocks; j += 4) {
      const at = base + j;
      a += weight[j] * data[at];
      b += weight[j + 1] * data[at + 1];
      c += weight[j + 2] * data[at + 2];
      d += weight[j + 3] * data[at + 3];
    }
    for (let j = blocks; j < columns; j += 1) a += weight[j] * data[base + j];
    const sum = a + b + (c + d);
    if (!Number.isFinite(sum)) throw new Error(`non-finite score at row ${row} of a matrix of ${x.rows} rows`);
    return sum;
  };
}

function withInnerAuroc(
  candidate: Candidate,
  side: TrainingSide,
  inner: Float64Array,
  mask: Uint8Array | null,
): Chosen | Undefined {
  const auroc = withinFold({
    scores: inner,
    labels: side.labels,
    folds: side.inner,
    use: (k) => mask === null || mask[side.rows[k]] === 1,
  });
  if (auroc.pairs === 0) return { undefinedBecause: 'no inner fold of the training side holds both classes' };
  return { candidate, innerAuroc: auroc.wins / auroc.pairs };
}

/**
 * Per outer fold the one with the higher inner AUROC; on a tie the first, so list what is simpler first. With `mask`
 * (per landmark row) the AUROC is taken anew over those rows, which makes candidates of different positions comparable.
 */
export function betterOf(a: FoldScores, b: FoldScores, sides: Sides, mask: Uint8Array | null): FoldScores {
  const outer = Float64Array.from(a.outer);
  const inner = [...a.inner];
  const chosen = sides.training.map((side, o) => {
    const first = valued(a, o, side, mask);
    const second = valued(b, o, side, mask);
    const takeSecond =
      !('undefinedBecause' in second) && ('undefinedBecause' in first || second.innerAuroc > first.innerAuroc);
    if (!takeSecond) return first;
    inner[o] = b.inner[o]!;
    for (const row of sides.outer[o].rows) outer[row] = b.outer[row]!;
    return second;
  });
  return { outer, inner, chosen };
}

/** @see betterOf */
export function bestOf(list: readonly FoldScores[], sides: Sides, mask: Uint8Array | null): FoldScores {
  return list.slice(1).reduce((best, other) => betterOf(best, other, sides, mask), list[0]);
}

function valued(scores: FoldScores, o: number, side: TrainingSide, mask: Uint8Array | null): Chosen | Undefined {
  const chosen = scores.chosen[o];
  if ('undefinedBecause' in chosen || mask === null) return chosen;
  return withInnerAuroc(chosen.candidate, side, scores.inner[o], mask);
}
