import type { Tap } from '../types.ts';

/** What was seen at one tap, over all rows captured. */
export interface TapHealth {
  readonly tap: Tap;
  readonly rows: number;
  /** Values that are NaN or infinite. */
  readonly nonFinite: number;
  /** Finite values beyond ±65,504: they would become infinite in float16. */
  readonly beyondFloat16: number;
  /** Rows that are all zero: a wrong output or a missing chunk, never a real state. */
  readonly zeroRows: number;
  /** Largest finite magnitude. */
  readonly maxAbs: number;
}

const FLOAT16_MAX = 65504;

export function createTapHealth(taps: readonly Tap[]): {
  /** data[k]: [rows, width] of tap k. */
  readonly see: (data: readonly Float32Array[], width: number) => void;
  /** What was seen since the last call. */
  readonly take: () => TapHealth[];
} {
  const blank = () => taps.map((tap) => ({ tap, rows: 0, nonFinite: 0, beyondFloat16: 0, zeroRows: 0, maxAbs: 0 }));
  let seen = blank();
  return {
    see: (data, width) => {
      for (const [k, values] of data.entries()) {
        const s = seen[k];
        if (!s || width === 0) continue;
        for (let start = 0; start < values.length; start += width) {
          let max = 0;
          const before = s.nonFinite;
          for (let i = start; i < start + width; i++) {
            const v = Math.abs(values[i]);
            if (v <= FLOAT16_MAX) {
              if (v > max) max = v;
            } else if (v < Infinity) {
              s.beyondFloat16++;
              if (v > max) max = v;
            } else s.nonFinite++;
          }
          s.rows++;
          if (max === 0 && s.nonFinite === before) s.zeroRows++;
          if (max > s.maxAbs) s.maxAbs = max;
        }
      }
    },
    take: () => {
      const result = seen;
      seen = blank();
      return result;
    },
  };
}

/** Two lists over the same taps, added up; an empty list is nothing seen. */
export function mergeHealth(a: readonly TapHealth[], b: readonly TapHealth[]): readonly TapHealth[] {
  if (a.length === 0) return b;
  return a.map((x, k) => {
    const y = b[k];
    if (!y) return x;
    return {
      tap: x.tap,
      rows: x.rows + y.rows,
      nonFinite: x.nonFinite + y.nonFinite,
      beyondFloat16: x.beyondFloat16 + y.beyondFloat16,
      zeroRows: x.zeroRows + y.zeroRows,
      maxAbs: Math.max(x.maxAbs, y.maxAbs),
    };
  });
}
