import { DataError } from '../errors.ts';
import type { Exclusion } from '../types.ts';
import type { RawRow } from './rows.ts';

/** Rows set aside, counted against the share that may be bad. */
export interface Quarantine {
  /** A row that was read, good or bad. */
  seen(): void;
  /** @throws DataError (65) as soon as no number of good rows to come could bring the share below the limit */
  setAside(row: RawRow, reason: string, detail: string, episode: string | null): void;
  readonly rows: number;
  readonly bad: number;
  /** @throws DataError (65) when too many rows were bad, or all of them */
  finish(): void;
}

/**
 * @param maxBad share of bad rows above which reading stops; 1 = never
 * @param mostRows rows that can still come in all; null = unknown, so that only the end decides
 */
export function createQuarantine(
  maxBad: number,
  mostRows: number | null,
  onExclusion: (exclusion: Exclusion) => void,
): Quarantine {
  let rows = 0;
  let bad = 0;
  let first = '';
  const stop = (hint: string): never => {
    throw new DataError(
      `${first}. Expected at most ${Number((maxBad * 100).toPrecision(6))} % bad rows, got ${bad.toLocaleString('en')} of ${rows.toLocaleString('en')}${hint}. Correct them, or raise dataset.maxBad to go on without them`,
    );
  };
  return {
    seen: () => {
      rows += 1;
    },
    setAside(row, reason, detail, episode) {
      bad += 1;
      const message = `${row.file}: row ${row.row}: ${detail}`;
      if (bad === 1) first = message;
      onExclusion({ stage: 'dataset', episode, file: row.file, row: row.row, turn: null, reason, detail: message });
      if (maxBad < 1 && mostRows !== null && bad > maxBad * mostRows) stop(' so far');
    },
    get rows() {
      return rows;
    },
    get bad() {
      return bad;
    },
    finish() {
      if (maxBad < 1 && bad > maxBad * rows) stop('');
      if (rows > 0 && bad === rows)
        throw new DataError(
          `${first}. Expected some usable rows, got ${bad.toLocaleString('en')} bad ones of ${rows.toLocaleString('en')}. Correct them, or the mapping`,
        );
    },
  };
}
