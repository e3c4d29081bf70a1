/** Counts of what values of one column or key are like. Filled over millions of values, so plain numbers only. */

export const KINDS = ['null', 'boolean', 'integer', 'number', 'NaN', 'text', 'list', 'object'] as const;
export type Kind = (typeof KINDS)[number];

export interface ValueProfile {
  /** Values seen, null included. */
  count: number;
  readonly kinds: Record<Kind, number>;
  /** Texts of length 0. */
  empty: number;
  minimum: number;
  maximum: number;
  /** Short values and how often each came; null once there were too many to be a category. */
  values: Map<string, number> | null;
}

/** Columns with more distinct values than this are ids or texts, not categories. */
const MAX_VALUES = 300;
/** Longer texts are no category. */
const MAX_TEXT = 80;

export function createProfile(): ValueProfile {
  return {
    count: 0,
    kinds: { null: 0, boolean: 0, integer: 0, number: 0, NaN: 0, text: 0, list: 0, object: 0 },
    empty: 0,
    minimum: Number.POSITIVE_INFINITY,
    maximum: Number.NEGATIVE_INFINITY,
    values: new Map(),
  };
}

function countValue(profile: ValueProfile, text: string): void {
  const { values } = profile;
  if (values === null) return;
  const known = values.get(text);
  if (known !== undefined) values.set(text, known + 1);
  else if (values.size < MAX_VALUES && text.length <= MAX_TEXT) values.set(text, 1);
  else profile.values = null;
}

/** A plain value (as JSON.parse makes them); bigints count as integers. */
export function addValue(profile: ValueProfile, value: unknown): void {
  profile.count += 1;
  const { kinds } = profile;
  if (value === null || value === undefined) kinds.null += 1;
  else if (typeof value === 'string') {
    kinds.text += 1;
    if (value.length === 0) profile.empty += 1;
    countValue(profile, value);
  } else if (typeof value === 'boolean') {
    kinds.boolean += 1;
    countValue(profile, value ? 'true' : 'false');
  } else if (typeof value === 'number' || typeof value === 'bigint') {
    const number = Number(value);
    if (Number.isNaN(number)) kinds.NaN += 1;
    else {
      if (Number.isInteger(number)) kinds.integer += 1;
      else kinds.number += 1;
      if (number < profile.minimum) profile.minimum = number;
      if (number > profile.maximum) profile.maximum = number;
      if (profile.values !== null) countValue(profile, String(value));
    }
  } else if (Array.isArray(value)) kinds.list += 1;
  else kinds.object += 1;
}

/** What a report shows of a profile: plain JSON. */
export interface ProfileSummary {
  readonly count: number;
  readonly kinds: Readonly<Partial<Record<Kind, number>>>;
  readonly empty: number;
  readonly minimum: number | null;
  readonly maximum: number | null;
  /** Most frequent first; null = too many distinct values. */
  readonly values: readonly (readonly [string, number])[] | null;
  readonly distinct: number | null;
}

export function summarise(profile: ValueProfile, most = 12): ProfileSummary {
  const values =
    profile.values === null ? null : [...profile.values].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return {
    count: profile.count,
    kinds: Object.fromEntries(
      KINDS.filter((kind) => profile.kinds[kind] > 0).map((kind) => [kind, profile.kinds[kind]]),
    ),
    empty: profile.empty,
    minimum: Number.isFinite(profile.minimum) ? profile.minimum : null,
    maximum: Number.isFinite(profile.maximum) ? profile.maximum : null,
    values: values === null ? null : values.slice(0, most),
    distinct: values === null ? null : values.length,
  };
}
