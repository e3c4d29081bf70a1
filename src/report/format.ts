import type { Undefined, Value } from '../types.ts';

export const isUndefined = (value: Value): value is Undefined => 'undefinedBecause' in value;

export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? '∞' : value < 0 ? '−∞' : 'no number';
  const size = Math.abs(value);
  if (Number.isInteger(value) && size >= 10) return value.toLocaleString('en');
  // Three decimals would print a small p-value as 0.
  if (size > 0 && size < 0.001) return value.toPrecision(2);
  return (value === 0 ? 0 : value).toFixed(size >= 10 ? 1 : 3);
}

/** 0.07 → `7 %`, although 0.07 · 100 is 7.000000000000001 in binary. */
export const formatPercent = (share: number): string => `${Number((share * 100).toPrecision(6))} %`;

/** `0.71 [0.60, 0.81], n 120, 40 clusters`, or why there is no number. */
export function formatValue(value: Value | undefined): string {
  if (value === undefined) return 'not measured';
  if (isUndefined(value)) return `undefined: ${value.undefinedBecause}`;
  const none = value.lower === null || value.upper === null;
  const interval = none ? '' : ` [${formatNumber(value.lower)}, ${formatNumber(value.upper)}]`;
  // A whole number without an interval is a count.
  const estimate =
    none && Number.isInteger(value.estimate) ? value.estimate.toLocaleString('en') : formatNumber(value.estimate);
  const clusters = value.clusters === null ? '' : `, ${value.clusters} cluster${value.clusters === 1 ? '' : 's'}`;
  const positives = value.positives === null ? '' : `, ${value.positives} positive`;
  return `${estimate}${interval}, n ${value.n.toLocaleString('en')}${positives}${clusters}`;
}
