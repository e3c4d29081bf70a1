/** Sorted orders and codes of values: what every rank statistic starts from. */

/**
 * Row numbers in the order of ascending code (absent = all equal), then ascending value, then row: deterministic, so
 * nothing downstream depends on the sort of the engine. −0 equals 0.
 * @throws TypeError on NaN, which has no rank
 */
export function sortedOrder(values: ArrayLike<number>, codes?: ArrayLike<number>): Int32Array {
  const rows = values.length;
  const order = new Int32Array(rows);
  for (let row = 0; row < rows; row += 1) {
    if (Number.isNaN(values[row])) throw new TypeError(`the value of row ${row} is NaN and has no rank`);
    order[row] = row;
  }
  return order.sort((a, b) => {
    const byCode = codes === undefined ? 0 : codes[a] - codes[b];
    if (byCode !== 0) return byCode;
    // Comparing, not subtracting: Infinity − Infinity is NaN.
    if (values[a] < values[b]) return -1;
    if (values[a] > values[b]) return 1;
    return a - b;
  });
}

/** Codes 0 … count − 1 in the order of ascending key, and the keys themselves. */
export function distinctCodes(keys: ArrayLike<number>): {
  readonly codes: Int32Array;
  readonly count: number;
  readonly keys: readonly number[];
} {
  const distinct = Array.from(new Set(Array.from(keys))).sort((a, b) => a - b);
  const codeOf = new Map(distinct.map((key, code) => [key, code]));
  const codes = Int32Array.from(keys, (key) => codeOf.get(key) ?? 0);
  return { codes, count: distinct.length, keys: distinct };
}
