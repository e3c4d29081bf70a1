import type { Value } from '../types.ts';

const isUndefined = (value: Value): value is { readonly undefinedBecause: string } => 'undefinedBecause' in value;

export function formatNumber(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) >= 10) return value.toLocaleString('en');
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 3);
}

/** `0.71 [0.60, 0.81], n 120, 40 clusters`, or why there is no number. */
export function formatValue(value: Value | undefined): string {
  if (value === undefined) return 'not measured';
  if (isUndefined(value)) return `undefined: ${value.undefinedBecause}`;
  const interval =
    value.lower === null || value.upper === null ? '' : ` [${formatNumber(value.lower)}, ${formatNumber(value.upper)}]`;
  const clusters = value.clusters === null ? '' : `, ${value.clusters} clusters`;
  const positives = value.positives === null ? '' : `, ${value.positives} positive`;
  return `${formatNumber(value.estimate)}${interval}, n ${value.n.toLocaleString('en')}${positives}${clusters}`;
}
