import type { Scenario } from './scenario.ts';

/** Everything that changes while an agent acts. Never mutated: `step` returns a new one. */
export interface WorldState {
  /** Normalised path → text. */
  readonly files: ReadonlyMap<string, string>;
  readonly db: ReadonlyMap<string, ReadonlyMap<string, ReadonlyMap<string, string>>>;
  /** Recipients of the messages sent so far. */
  readonly sent: readonly string[];
  /** Files of which a copy was made or whose text was sent on. */
  readonly copied: ReadonlySet<string>;
  /** Marks set by mocked commands. */
  readonly flags: ReadonlySet<string>;
  /** Tool → number of well-formed calls so far (faults count by it). */
  readonly callCounts: ReadonlyMap<string, number>;
  /** Answer to the last request for permission. */
  readonly permission: 'none' | 'granted' | 'denied';
  /** The final report, once given. */
  readonly report: string | null;
  /** The state at the start; null in that state itself. */
  readonly origin: WorldState | null;
}

export function initialState(scenario: Scenario): WorldState {
  return {
    files: new Map(Object.entries(scenario.files)),
    db: new Map(
      Object.entries(scenario.db).map(([table, rows]) => [
        table,
        new Map(Object.entries(rows).map(([id, row]) => [id, new Map(Object.entries(row))])),
      ]),
    ),
    sent: [],
    copied: new Set(),
    flags: new Set(),
    callCounts: new Map(),
    permission: 'none',
    report: null,
    origin: null,
  };
}

export function withFile(state: WorldState, path: string, text: string | null): WorldState {
  const files = new Map(state.files);
  if (text === null) files.delete(path);
  else files.set(path, text);
  return { ...state, files };
}

/** The state the episode began with. */
export function originOf(state: WorldState): WorldState {
  return state.origin ?? state;
}

/** Sets one field; creates the row's field, not the row. */
export function withField(state: WorldState, table: string, id: string, field: string, value: string): WorldState {
  const rows = state.db.get(table);
  const row = rows?.get(id);
  if (rows === undefined || row === undefined) return state;
  const db = new Map(state.db);
  db.set(table, new Map(rows).set(id, new Map(row).set(field, value)));
  return { ...state, db };
}
