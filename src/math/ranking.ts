/**
 * Ranking measures with ties counted as ½, so that none depends on the order of the rows.
 *
 * Concordance (EVALUATION.md 8): the share of (positive, negative) pairs *of the same stratum* in which the positive
 * scores higher. With one stratum it is the AUROC; with strata = outer folds, scores of different folds are never
 * compared. Rows may carry multiplicities (bootstrap draws, sample weights): a pair then counts m_i · m_j.
 *
 * Shapes: scores, labels, strata, groups and weights are aligned [rows]; labels are 1 (positive) or 0. Scores must be
 * finite or ±Infinity; NaN has no rank and throws a TypeError, as does a length that differs.
 */
import type { Undefined } from '../types.ts';
import { distinctCodes, sortedOrder } from './order.ts';

export interface RankedRows {
  readonly scores: ArrayLike<number>;
  readonly labels: ArrayLike<number>;
  /** Stratum of each row (any integers); absent = all rows in one. */
  readonly strata?: ArrayLike<number>;
}

export interface Concordance {
  /** Concordant pairs, ties ½. */
  readonly wins: number;
  /** All (positive, negative) pairs of the same stratum. */
  readonly pairs: number;
  readonly strata: number;
  /** Strata that hold one class only and so contribute no pair. */
  readonly oneClassStrata: number;
}

/**
 * Rows sorted once by (stratum, score), so that the concordance under any multiplicities is one pass.
 * Build it once per score column; `weightedConcordance` and the bootstrap read it thousands of times.
 */
export interface RankedStructure {
  readonly rows: number;
  /** Original row of each sorted place. */
  readonly order: Int32Array;
  /** Label of each sorted place. */
  readonly positive: Uint8Array;
  /** 0 = goes on with the tie run before it, 1 = a new score of the same stratum, 2 = a new stratum. */
  readonly step: Uint8Array;
  readonly strata: number;
}

/** Sorts the rows by stratum, then score. O(n log n). */
export function rankRows({ scores, labels, strata }: RankedRows): RankedStructure {
  const rows = scores.length;
  if (labels.length !== rows || (strata !== undefined && strata.length !== rows)) {
    throw new TypeError(`scores, labels and strata differ in length: ${rows}, ${labels.length}, ${strata?.length}`);
  }
  const codes = strata === undefined ? new Int32Array(rows) : distinctCodes(strata).codes;
  const order = sortedOrder(scores, codes);
  const positive = new Uint8Array(rows);
  const step = new Uint8Array(rows);
  let count = 0;
  for (let place = 0; place < rows; place += 1) {
    const row = order[place];
    positive[place] = labels[row] === 0 ? 0 : 1;
    const before = place === 0 ? -1 : order[place - 1];
    if (before < 0 || codes[before] !== codes[row]) {
      step[place] = 2;
      count += 1;
    } else if (scores[before] !== scores[row]) step[place] = 1;
  }
  return { rows, order, positive, step, strata: count };
}

/**
 * Concordance when row i counts `weights[i]` times (absent = once each).
 * @param weights [rows] ≥ 0
 */
export function weightedConcordance(ranked: RankedStructure, weights?: ArrayLike<number>): Concordance {
  const { rows, order, positive, step } = ranked;
  let wins = 0;
  let pairs = 0;
  let oneClassStrata = 0;
  // Within a stratum: negatives below the current tie run, and both classes of the run itself.
  let below = 0;
  let positivesBefore = 0;
  let runPositives = 0;
  let runNegatives = 0;
  const closeRun = (): void => {
    wins += runPositives * (below + runNegatives / 2);
    below += runNegatives;
    positivesBefore += runPositives;
    runPositives = 0;
    runNegatives = 0;
  };
  const closeStratum = (): void => {
    closeRun();
    pairs += positivesBefore * below;
    if (positivesBefore === 0 || below === 0) oneClassStrata += 1;
    below = 0;
    positivesBefore = 0;
  };
  for (let place = 0; place < rows; place += 1) {
    if (step[place] === 2) {
      if (place > 0) closeStratum();
    } else if (step[place] === 1) closeRun();
    const weight = weights === undefined ? 1 : weights[order[place]];
    if (positive[place] === 1) runPositives += weight;
    else runNegatives += weight;
  }
  if (rows > 0) closeStratum();
  return { wins, pairs, strata: ranked.strata, oneClassStrata };
}

/** Concordance over pairs of the same stratum, ties ½. */
export function concordance(rows: RankedRows): Concordance {
  return weightedConcordance(rankRows(rows));
}

/** The share itself, or why there is none. */
export function concordanceShare({ wins, pairs }: Concordance): number | Undefined {
  return pairs > 0 ? wins / pairs : { undefinedBecause: 'no stratum holds both a positive and a negative row' };
}

/** Area under the ROC curve of all rows together: P(score of a positive > score of a negative), ties ½. */
export function auroc(scores: ArrayLike<number>, labels: ArrayLike<number>): number | Undefined {
  const { wins, pairs } = concordance({ scores, labels });
  return pairs > 0 ? wins / pairs : { undefinedBecause: oneClassReason(labels) };
}

function oneClassReason(labels: ArrayLike<number>): string {
  if (labels.length === 0) return 'no rows';
  return `all ${labels.length} rows are ${labels[0] === 0 ? 'negative' : 'positive'}`;
}

/** Ranks from 1, ties get the mean of the ranks they span. */
export function midranks(values: ArrayLike<number>): Float64Array {
  const order = sortedOrder(values);
  const ranks = new Float64Array(values.length);
  for (let start = 0; start < order.length;) {
    let end = start + 1;
    while (end < order.length && values[order[end]] === values[order[start]]) end += 1;
    for (let place = start; place < end; place += 1) ranks[order[place]] = (start + 1 + end) / 2;
    start = end;
  }
  return ranks;
}

/**
 * How much each row takes part in the concordance: d wins / d m_i and d pairs / d m_i at multiplicities 1.
 * For a positive, the wins it takes part in and the negatives of its stratum; for a negative the mirror image.
 */
export function concordanceParts(ranked: RankedStructure): {
  readonly wins: Float64Array;
  readonly pairs: Float64Array;
} {
  const { rows, order, positive, step } = ranked;
  const wins = new Float64Array(rows);
  const pairs = new Float64Array(rows);
  for (let start = 0; start < rows;) {
    let end = start + 1;
    while (end < rows && step[end] !== 2) end += 1;
    let positives = 0;
    for (let place = start; place < end; place += 1) positives += positive[place];
    const negatives = end - start - positives;
    let negativesBelow = 0;
    let positivesBelow = 0;
    for (let run = start; run < end;) {
      let runEnd = run + 1;
      while (runEnd < end && step[runEnd] === 0) runEnd += 1;
      let runPositives = 0;
      for (let place = run; place < runEnd; place += 1) runPositives += positive[place];
      const runNegatives = runEnd - run - runPositives;
      for (let place = run; place < runEnd; place += 1) {
        const row = order[place];
        if (positive[place] === 1) {
          wins[row] = negativesBelow + runNegatives / 2;
          pairs[row] = negatives;
        } else {
          wins[row] = positives - positivesBelow - runPositives / 2;
          pairs[row] = positives;
        }
      }
      negativesBelow += runNegatives;
      positivesBelow += runPositives;
      run = runEnd;
    }
    start = end;
  }
  return { wins, pairs };
}

/**
 * Standard error of the concordance share for rows that are dependent within groups: the infinitesimal jackknife over
 * groups, which for one stratum is the clustered AUC variance of Obuchowski (1997, Biometrics 53:567) up to O(1/groups).
 * Used to studentise; intervals come from the bootstrap.
 * @param groups [rows] group of each row (any integers)
 */
export function concordanceStandardError(ranked: RankedStructure, groups: ArrayLike<number>): number | Undefined {
  const total = weightedConcordance(ranked);
  if (total.pairs === 0) return { undefinedBecause: 'no stratum holds both a positive and a negative row' };
  const { codes, count } = distinctCodes(groups);
  if (count < 2) return { undefinedBecause: `one group has no spread between groups` };
  const share = total.wins / total.pairs;
  const parts = concordanceParts(ranked);
  const influence = new Float64Array(count);
  for (let row = 0; row < ranked.rows; row += 1) influence[codes[row]] += parts.wins[row] - share * parts.pairs[row];
  let sum = 0;
  for (const value of influence) sum += (value / total.pairs) ** 2;
  return Math.sqrt((count / (count - 1)) * sum);
}
