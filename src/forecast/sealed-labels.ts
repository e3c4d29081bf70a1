/**
 * Labels that nobody may look at yet (EVALUATION.md 7). The rows of a landmark carry no labels: those lie behind an opaque
 * handle that two readers take. `splitRows` deals them: the training side gets its own, the outer side is sealed again.
 * `openLabels` hands all of them out once, for what is done when nothing is fitted or chosen any more (a released probe on
 * new episodes, the permutation null, a search for leaks). A test reads the imports, so that no third one appears.
 */

/** At risk, but stopped by a limit before the event could be seen. */
export const CENSORED = 2;
/** Not at risk: scored only so that late alarms count. */
export const NO_LABEL = -1;

/** 1: the event comes at or after the row. */
export type RowLabel = 0 | 1 | typeof CENSORED | typeof NO_LABEL;

export interface SealedLabels {
  /** Rows behind the seal. */
  readonly rows: number;
}

const SEALED = new WeakMap<SealedLabels, Int8Array>();
const OPENED = new WeakSet<SealedLabels>();

export function sealLabels(labels: readonly RowLabel[]): SealedLabels {
  const handle: SealedLabels = Object.freeze({ rows: labels.length });
  SEALED.set(handle, Int8Array.from(labels));
  return handle;
}

/** For `splitRows`, which gives each fold what it may see. @throws Error for a handle that was not sealed here */
export function labelsToDeal(handle: SealedLabels): Int8Array {
  const labels = SEALED.get(handle);
  if (!labels) throw new Error('these labels were not sealed by landmarkRows');
  return labels;
}

/** All labels, per row. @throws Error on the second call for the same rows */
export function openLabels(handle: SealedLabels): Int8Array {
  const labels = labelsToDeal(handle);
  if (OPENED.has(handle)) throw new Error('the labels of these rows were read already: a test set is read once');
  OPENED.add(handle);
  return labels;
}
