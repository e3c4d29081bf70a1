/**
 * Preregistration: what was decided before any test row was read. The hash covers configuration, row keys, hypotheses
 * and thresholds; `lockChanges` says what differs from a later run, in the words of the configuration.
 */
import { fromPlain, isJsonArray, isJsonObject, stringifyJson } from '../lib/json.ts';
import type { JsonValue } from '../types.ts';

export interface LockContent {
  /** Effective configuration of the forecast. */
  readonly config: Readonly<Record<string, unknown>>;
  /** `episode turn position` of every row that will be tested; order does not matter. */
  readonly rows: readonly string[];
  /** Sentences such as "probe minus text:so_far > 0 at reveal+1, x-". */
  readonly hypotheses: readonly string[];
  readonly thresholds: Readonly<Record<string, number>>;
}

export interface Lock {
  readonly schemaVersion: 1;
  /** ISO 8601, handed in. */
  readonly lockedAt: string;
  readonly hash: string;
  readonly rowsHash: string;
  readonly rowCount: number;
  readonly config: Readonly<Record<string, unknown>>;
  readonly hypotheses: readonly string[];
  readonly thresholds: Readonly<Record<string, number>>;
}

/** @param sha256 hex digest of a text, handed in */
export function makeLock(content: LockContent, lockedAt: string, sha256: (text: string) => string): Lock {
  const rowsHash = sha256([...content.rows].sort().join('\n'));
  const { config, hypotheses, thresholds } = content;
  const hash = sha256(canonical({ config, rows: rowsHash, hypotheses, thresholds }));
  return {
    schemaVersion: 1,
    lockedAt,
    hash,
    rowsHash,
    rowCount: content.rows.length,
    config,
    hypotheses,
    thresholds,
  };
}

export interface LockChange {
  /** Dotted path: `config.forecast.taps`, `rows`, `hypotheses` … */
  readonly field: string;
  readonly locked: string;
  readonly now: string;
}

/** Empty when the later run is the one that was locked. */
export function lockChanges(lock: Lock, now: Lock): readonly LockChange[] {
  const changes: LockChange[] = [];
  const compare = (field: string, a: JsonValue, b: JsonValue): void => {
    if (isJsonObject(a) && isJsonObject(b)) {
      for (const key of new Set([...a.keys(), ...b.keys()])) {
        compare(`${field}.${key}`, a.get(key) ?? null, b.get(key) ?? null);
      }
      return;
    }
    const [locked, later] = [stringifyJson(a), stringifyJson(b)];
    if (locked !== later) changes.push({ field, locked, now: later });
  };
  compare('config', fromPlain(lock.config), fromPlain(now.config));
  compare('hypotheses', fromPlain(lock.hypotheses), fromPlain(now.hypotheses));
  compare('thresholds', fromPlain(lock.thresholds), fromPlain(now.thresholds));
  if (lock.rowsHash !== now.rowsHash) {
    changes.push({ field: 'rows', locked: `${lock.rowCount} rows`, now: `${now.rowCount} rows` });
  }
  return changes;
}

/** JSON with sorted keys, so that the hash does not depend on the order in which a file lists them. */
export function canonical(value: unknown): string {
  const sorted = (json: JsonValue): JsonValue => {
    if (isJsonArray(json)) return json.map(sorted);
    if (!isJsonObject(json)) return json;
    return new Map(
      [...json].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([key, item]) => [key, sorted(item)]),
    );
  };
  return stringifyJson(sorted(fromPlain(value)));
}
