/**
 * AUROC within folds (EVALUATION.md 8): the share of (positive, negative) pairs of the same fold in which the positive
 * scores higher, ties ½, summed over folds. Scores of different folds come from different readers and are never
 * compared; pooling them is biased when folds differ in base rate (reference numbers: 0.19 pooled, 0.37 within).
 */
import { rankRows, type RankedStructure, weightedConcordance } from '../math/ranking.ts';

export interface ScoredRows {
  readonly scores: ArrayLike<number>;
  /** 1 and 0 count; anything else (censored, no label) is left out. */
  readonly labels: ArrayLike<number>;
  readonly folds: ArrayLike<number>;
  /** Rows to count; absent = all. Rows whose score is NaN (no reader) never count. */
  readonly use?: (row: number) => boolean;
}

/** Rows that count, ranked within their fold. */
export interface RankedSubset {
  /** Original row of each row of `ranked`. */
  readonly rows: Int32Array;
  readonly ranked: RankedStructure;
}

export function rankWithinFolds({ scores, labels, folds, use }: ScoredRows): RankedSubset {
  const rows: number[] = [];
  for (let row = 0; row < scores.length; row += 1) {
    if ((labels[row] === 0 || labels[row] === 1) && !Number.isNaN(scores[row]) && (!use || use(row))) rows.push(row);
  }
  const ranked = rankRows({
    scores: rows.map((row) => scores[row]),
    labels: rows.map((row) => labels[row]),
    strata: rows.map((row) => folds[row]),
  });
  return { rows: Int32Array.from(rows), ranked };
}

export function withinFold(rows: ScoredRows): { readonly wins: number; readonly pairs: number } {
  return weightedConcordance(rankWithinFolds(rows).ranked);
}
