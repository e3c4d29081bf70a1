/** Problems that train on the same rows with the same weights share standardisation, weights and label columns. */

export interface TrainingRows {
  /** Rows of the matrix to train on, ascending, none twice. */
  readonly rows: Int32Array;
  /** 0 / 1, aligned with `rows`. */
  readonly labels: Uint8Array;
  /** Aligned with `rows`, ≥ 0; null = all 1. */
  readonly weights: Float64Array | null;
}

export interface RowSet {
  /** [all rows of the matrix]; 0 = not trained on. */
  readonly weights: Float64Array;
  /** Rows of positive weight, and their total. */
  readonly rows: number;
  readonly total: number;
  /** Indices of the problems on these rows. */
  readonly problems: readonly number[];
  /** [all rows] labels of a problem of this set; problems that share a label array share the answer. */
  labelsOf(problem: TrainingRows): Uint8Array;
}

/** @throws TypeError naming the problem whose rows, labels or weights are not as described */
export function groupByRows(rowCount: number, problems: readonly TrainingRows[]): readonly RowSet[] {
  const buckets = new Map<string, number[][]>();
  const sets: number[][] = [];
  problems.forEach((problem, index) => {
    check(problem, index, rowCount);
    const key = `${problem.rows.length}:${checksum(problem)}`;
    const bucket = buckets.get(key) ?? [];
    buckets.set(key, bucket);
    const same = bucket.find(([first]) => equalRows(problems[first], problem));
    if (same !== undefined) same.push(index);
    else {
      const set = [index];
      bucket.push(set);
      sets.push(set);
    }
  });
  return sets.map((members) => openSet(rowCount, problems[members[0]], members));
}

function openSet(rowCount: number, { rows, weights }: TrainingRows, problems: readonly number[]): RowSet {
  const full = new Float64Array(rowCount);
  let total = 0;
  let positive = 0;
  for (let i = 0; i < rows.length; i += 1) {
    const weight = weights === null ? 1 : weights[i];
    full[rows[i]] = weight;
    total += weight;
    if (weight > 0) positive += 1;
  }
  const known = new Map<Uint8Array, Uint8Array>();
  return {
    weights: full,
    rows: positive,
    total,
    problems,
    labelsOf({ labels }) {
      const before = known.get(labels);
      if (before !== undefined) return before;
      const out = new Uint8Array(rowCount);
      for (let i = 0; i < rows.length; i += 1) out[rows[i]] = labels[i];
      known.set(labels, out);
      return out;
    },
  };
}

function check({ rows, labels, weights }: TrainingRows, index: number, rowCount: number): void {
  if (labels.length !== rows.length) {
    throw new TypeError(`problem ${index}: ${labels.length} labels for ${rows.length} rows`);
  }
  if (weights !== null && weights.length !== rows.length) {
    throw new TypeError(`problem ${index}: ${weights.length} weights for ${rows.length} rows`);
  }
  for (let i = 0; i < rows.length; i += 1) {
    if (!(rows[i] >= 0 && rows[i] < rowCount) || (i > 0 && rows[i] <= rows[i - 1])) {
      throw new TypeError(`problem ${index}: rows must ascend within 0 … ${rowCount - 1}, got ${rows[i]} at ${i}`);
    }
    if (weights !== null && !(weights[i] >= 0 && Number.isFinite(weights[i]))) {
      throw new TypeError(`problem ${index}: weight ${i} must be a finite number ≥ 0, got ${weights[i]}`);
    }
  }
}

function checksum({ rows, weights }: TrainingRows): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < rows.length; i += 1) h = Math.imul(h ^ rows[i], 0x01000193);
  if (weights !== null) for (const weight of weights) h = Math.imul(h ^ (weight * 65_536), 0x01000193);
  return h >>> 0;
}

function equalRows(a: TrainingRows, b: TrainingRows): boolean {
  if (a.rows !== b.rows && !a.rows.every((row, i) => row === b.rows[i])) return false;
  if (a.weights === b.weights) return true;
  for (let i = 0; i < a.rows.length; i += 1) {
    if ((a.weights === null ? 1 : a.weights[i]) !== (b.weights === null ? 1 : b.weights[i])) return false;
  }
  return true;
}
