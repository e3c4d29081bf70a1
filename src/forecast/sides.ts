/**
 * The two sides of an outer fold (EVALUATION.md 7). The training side is open: fits and every choice are made there.
 * The labels of the outer side are sealed; `openOuterSide` hands them out once, so that nobody can look at the test
 * figures and choose again. A second look is a bug of the program and throws.
 */
import { UserError } from '../errors.ts';
import { hash32 } from '../lib/rng.ts';
import type { LandmarkRows } from './landmarks.ts';
import { labelsToDeal } from './sealed-labels.ts';
import type { Folding } from './types.ts';

/** Rows to learn from, of one outer fold. All arrays are aligned with `rows`. */
export interface TrainingSide {
  readonly fold: number;
  /** Indices into `LandmarkRows.rows`, ascending: labelled, of the training population, of the other folds. */
  readonly rows: Int32Array;
  readonly labels: Uint8Array;
  readonly groups: Int32Array;
  /** Inner fold of each row, 0 … innerFolds − 1. */
  readonly inner: Int32Array;
  readonly innerFolds: number;
}

/** Which rows will be tested; their labels are not in this object. */
export interface OuterSide {
  readonly fold: number;
  /** Every row of the fold, of any population, labelled or not. */
  readonly rows: Int32Array;
}

const SEALED = new WeakMap<OuterSide, Int8Array>();
const OPENED = new WeakSet<OuterSide>();

function sealOuterSide(fold: number, rows: Int32Array, labels: Int8Array): OuterSide {
  const side: OuterSide = Object.freeze({ fold, rows });
  SEALED.set(side, labels);
  return side;
}

/** Labels aligned with `side.rows`, as in sealed-labels.ts. @throws Error on the second call for the same side */
export function openOuterSide(side: OuterSide): Int8Array {
  const labels = SEALED.get(side);
  if (!labels) throw new Error('this outer side was not sealed by splitRows');
  if (OPENED.has(side))
    throw new Error(`the outer side of fold ${side.fold} was read already: a test set is read once`);
  OPENED.add(side);
  return labels;
}

export interface Sides {
  readonly training: readonly TrainingSide[];
  readonly outer: readonly OuterSide[];
}

export interface SplitInput {
  readonly landmark: Pick<LandmarkRows, 'rows' | 'labels'>;
  /** Per row: may be learnt from (population of the training, at risk at some position). */
  readonly trainable: Uint8Array;
  /** Per episode. */
  readonly groups: Int32Array;
  readonly folding: Folding;
  readonly innerFolds: number;
  /** Adds a last training side with every row and nothing to test: the released probe is chosen and calibrated there. */
  readonly release: boolean;
}

export function splitRows({ landmark, trainable, groups, folding, innerFolds, release }: SplitInput): Sides {
  const { rows } = landmark;
  const labelOf = labelsToDeal(landmark.labels);
  const training: TrainingSide[] = [];
  const outer: OuterSide[] = [];
  for (let fold = 0; fold < folding.folds + (release ? 1 : 0); fold += 1) {
    const learn: number[] = [];
    const test: number[] = [];
    rows.forEach((row, i) => {
      if (folding.fold[row.index] === fold) test.push(i);
      else if (trainable[i] === 1 && (labelOf[i] === 0 || labelOf[i] === 1)) learn.push(i);
    });
    const labels = Uint8Array.from(learn, (i) => labelOf[i]);
    const rowGroups = Int32Array.from(learn, (i) => groups[rows[i].index]);
    training.push({
      fold,
      rows: Int32Array.from(learn),
      labels,
      groups: rowGroups,
      inner: dealInnerFolds(rowGroups, labels, innerFolds, `${folding.seed}/${fold}`),
      innerFolds,
    });
    outer.push(
      sealOuterSide(
        fold,
        Int32Array.from(test),
        Int8Array.from(test, (i) => labelOf[i]),
      ),
    );
  }
  return { training, outer };
}

/**
 * Deals groups to inner folds in seeded order, groups with a positive first, so that with few positives no inner fold
 * goes without. Uses training labels only.
 */
export function dealInnerFolds(
  groups: Int32Array,
  labels: Uint8Array,
  innerFolds: number,
  seed: string | number,
): Int32Array {
  const positive = new Map<number, boolean>();
  groups.forEach((group, i) => positive.set(group, (positive.get(group) ?? false) || labels[i] === 1));
  const order = [...positive.keys()]
    .map((group) => ({ group, first: positive.get(group) ? 0 : 1, rank: hash32('inner', seed, group) }))
    .sort((a, b) => a.first - b.first || a.rank - b.rank || a.group - b.group);
  const fold = new Map(order.map(({ group }, i) => [group, i % innerFolds]));
  return Int32Array.from(groups, (group) => fold.get(group)!);
}

/** @throws UserError naming the group: a group split over folds would let its twin teach the test */
export function checkFolding(
  folding: Folding,
  groups: Int32Array,
  episodes: readonly { readonly key: string }[],
): void {
  if (folding.fold.length !== episodes.length || groups.length !== episodes.length) {
    throw new UserError(
      `forecast.foldings: expected a fold and a group for each of ${episodes.length} episodes, got ${folding.fold.length} and ${groups.length}. Align them with the episodes`,
    );
  }
  const seen = new Map<number, { fold: number; key: string }>();
  episodes.forEach(({ key }, i) => {
    const fold = folding.fold[i];
    if (!Number.isInteger(fold) || fold < 0 || fold >= folding.folds) {
      throw new UserError(
        `forecast.foldings: expected a fold from 0 to ${folding.folds - 1} for ${key}, got ${fold}. Deal the folds again`,
      );
    }
    const known = seen.get(groups[i]);
    if (known === undefined) seen.set(groups[i], { fold, key });
    else if (known.fold !== fold) {
      throw new UserError(
        `forecast.foldings: expected group ${groups[i]} in one fold, got ${known.key} in ${known.fold} and ${key} in ${fold}. Deal folds by group`,
      );
    }
  });
}
