import type { EpisodeField, Mapping } from '../config/mapping-fields.ts';
import type { ChatMessage, Episode, EpisodeMeta, JsonValue } from '../types.ts';
import type { LogAdapter, ParsedLog, Warn } from './adapters/adapter.ts';
import { ADAPTERS } from './adapters/table.ts';
import { asBoolean, asSeed, asText, FieldProblem, isMissing, show } from './cell.ts';
import { checkUnsafe, firstTurn, readEnd, readReveal, readStep, readWorld } from './labels.ts';
import type { RawRow } from './rows.ts';
import {
  columnOf,
  duplicateKeyOf,
  joinKey,
  readToolSchemas,
  type ScenarioFacts,
  type SideTables,
} from './side-tables.ts';

/** Turns rows of one source into episodes; what a mapping needs once is made once. */
export type RowReader = (row: RawRow, warn: Warn) => Episode;

interface Prepared {
  readonly mapping: Mapping;
  readonly tables: SideTables;
  readonly adapter: LogAdapter;
  readonly conditions: readonly { readonly pattern: RegExp; readonly name: string }[];
  /** Columns with a canonical meaning; the others are `extra`. */
  readonly known: ReadonlySet<string>;
  /** One copy of every name that repeats over episodes. */
  readonly intern: (text: string) => string;
  readonly duplicateKey: (
    own: readonly (JsonValue | undefined)[],
    scenario: ScenarioFacts | undefined,
  ) => string | null;
  readonly sameNames: (names: readonly string[]) => readonly string[];
}

/** Names repeat, ids do not: past this many distinct texts a source's names are taken as they come. */
const MAX_INTERNED = 50_000;

function interner(): (text: string) => string {
  const seen = new Map<string, string>();
  return (text) => {
    const known = seen.get(text);
    if (known !== undefined) return known;
    if (seen.size < MAX_INTERNED) seen.set(text, text);
    return text;
  };
}

function listInterner(intern: (text: string) => string): (names: readonly string[]) => readonly string[] {
  const seen = new Map<string, readonly string[]>();
  return (names) => {
    const key = names.join('\u0000');
    const known = seen.get(key);
    if (known !== undefined) return known;
    const list = names.map(intern);
    if (seen.size < MAX_INTERNED) seen.set(key, list);
    return list;
  };
}

/** Episodes of one scenario share its text, so its key is made once. */
function duplicateKeys(): Prepared['duplicateKey'] {
  const made = new Map<ScenarioFacts, string | null>();
  return (own, scenario) => {
    const texts = scenario?.duplicateTexts ?? [];
    if (own.length > 0 || scenario === undefined) return duplicateKeyOf([...texts, ...own]);
    const known = made.get(scenario);
    if (known !== undefined) return known;
    const key = duplicateKeyOf(texts);
    made.set(scenario, key);
    return key;
  };
}

export function rowReader(mapping: Mapping, tables: SideTables): RowReader {
  const intern = interner();
  const prepared: Prepared = {
    mapping,
    tables,
    adapter: ADAPTERS[mapping.format],
    conditions: mapping.condition.rules.map((rule) => ({ pattern: new RegExp(rule.match), name: rule.name })),
    known: new Set(Object.values(mapping.columns).flat()),
    intern,
    duplicateKey: duplicateKeys(),
    sameNames: listInterner(intern),
  };
  return (row, warn) => toEpisode(row, prepared, warn);
}

/** The value of a canonical field; undefined where the source has no such column. */
export function fieldOf(
  values: ReadonlyMap<string, JsonValue>,
  mapping: Mapping,
  field: EpisodeField,
): JsonValue | undefined {
  for (const column of mapping.columns[field]) {
    if (!values.has(column)) continue;
    const value = values.get(column);
    const missing = mapping.missing[field];
    return missing !== undefined && !isMissing(value) && isListed(value, missing) ? null : value;
  }
  return undefined;
}

function idOf(value: JsonValue | undefined): string {
  const id = asText('episode_id', value);
  if (id === null || id === '') throw new FieldProblem('episode_id', 'an id', show(value));
  return id;
}

/** What names an episode: the mapping's key fields, joined by "/". @throws FieldProblem where the id is missing */
export function keyOf(values: ReadonlyMap<string, JsonValue>, mapping: Mapping): string {
  return mapping.key
    .map((field) => {
      const value = fieldOf(values, mapping, field);
      return field === 'episode_id' ? idOf(value) : (asText(field, value) ?? '');
    })
    .join('/');
}

function isListed(value: JsonValue, missing: readonly string[]): boolean {
  if (typeof value === 'string' || typeof value === 'boolean') return missing.includes(String(value));
  return (
    value !== null &&
    'lexeme' in value &&
    missing.some((text) => text === value.lexeme || Number(text) === Number(value.lexeme))
  );
}

/** @throws FieldProblem for the first thing that makes the row unusable */
function toEpisode(row: RawRow, prepared: Prepared, warn: Warn): Episode {
  const { mapping, tables, intern } = prepared;
  const raw = (field: EpisodeField): JsonValue | undefined => fieldOf(row.values, mapping, field);
  const text = (field: EpisodeField): string | null => {
    const value = asText(field, raw(field));
    if (value !== null && !value.isWellFormed()) warn('lone_surrogate', `${field}: a lone surrogate`);
    return value;
  };
  const name = (field: EpisodeField): string | null => {
    const value = text(field);
    return value === null ? null : intern(value);
  };
  const boolean = (field: EpisodeField): boolean | null => asBoolean(field, raw(field), mapping);
  for (const field of mapping.required) {
    if (field !== 'first_unsafe_event' && raw(field) === undefined)
      throw new FieldProblem(field, 'a value', 'nothing (the field is missing)');
  }
  const episodeId = idOf(raw('episode_id'));
  const joined = (columns: Mapping['join']['scenarios']): string =>
    joinKey(
      columns.map(({ episodes }) =>
        episodes in mapping.columns ? raw(episodes as EpisodeField) : row.values.get(episodes),
      ),
    );
  const scenario = tables.scenarios?.get(joined(mapping.join.scenarios));
  if (tables.scenarios !== null && scenario === undefined)
    throw new FieldProblem(
      mapping.join.scenarios.map((column) => column.episodes).join(' + '),
      'a scenario of the scenarios table',
      `${show(raw('scenario_id'))}, which it does not hold`,
    );
  const own = (reference: string | null): JsonValue | undefined => {
    const column = columnOf(reference, 'episodes');
    return column === null ? undefined : row.values.get(column);
  };

  const log = prepared.adapter(raw('events_json'), 'events_json', mapping, warn);
  const reveal = readReveal(raw('reveal_event'), mapping, log);
  const unsafe =
    mapping.columns.first_unsafe_event.length === 0
      ? firstTurn(log.turns, (turn) => turn.unsafe)
      : readStep('first_unsafe_event', raw('first_unsafe_event'), mapping, log);
  checkUnsafe(log, unsafe, boolean('unsafe_episode'));
  const turns =
    log.marksUnsafe || unsafe === null
      ? log.turns
      : log.turns.map((turn) => (turn.index === unsafe ? { ...turn, unsafe: true } : turn));
  const informed = boolean('informed_violation');
  if (informed !== null && reveal !== null) {
    const computed = unsafe !== null && reveal < unsafe;
    if (informed !== computed)
      warn(
        'informed_contradiction',
        `informed_violation: expected ${computed} (reveal_event < first_unsafe_event), got ${informed}`,
      );
  }
  const status = name('status');
  const conditionText = text(mapping.condition.from) ?? '';
  const label = tables.reportLabels?.get(joined(mapping.join.reportLabels));
  const ownDuplicates = mapping.duplicateText.filter((reference) => columnOf(reference, 'episodes') !== null);
  return {
    key: keyOf(row.values, mapping),
    run: name('run') ?? '',
    episodeId,
    model: name('model') ?? 'unknown',
    condition: prepared.conditions.find((rule) => rule.pattern.test(conditionText))?.name ?? mapping.condition.default,
    set: name('set'),
    scenarioId: text('scenario_id'),
    instanceId: text('instance_id'),
    template: name('template') ?? scenario?.template ?? null,
    family: name('scenario_family') ?? scenario?.family ?? null,
    style: name('policy_style') ?? scenario?.style ?? null,
    pairId: text('counterfactual_pair_id'),
    world: readWorld(raw('cf_value'), boolean('nuisance'), mapping),
    seed: asSeed('seed', raw('seed')),
    reveal,
    unsafe,
    unsafeCall: unsafe === null ? null : (turns[unsafe]?.unsafeCall ?? null),
    informed,
    escalated: boolean('escalated'),
    firstEscalation: firstTurn(turns, (turn) => turn.escalation),
    criticalDone: boolean('critical_done'),
    firstCritical:
      readStep('first_critical_event', raw('first_critical_event'), mapping, log) ??
      firstTurn(turns, (turn) => turn.critical),
    success: boolean('success'),
    status,
    end: readEnd(status, mapping),
    reportLabel: label === undefined || label === null ? null : intern(label),
    turnCount: turns.length,
    toolNames: turns.map((turn) => prepared.sameNames(turn.calls.map((call) => call.name))),
    duplicateKey: prepared.duplicateKey(ownDuplicates.map(own), scenario),
    extra: extraColumns(row.values, prepared),
    source: { file: row.file, row: row.row },
    opening: openingOf(
      mapping,
      log,
      (reference, role) => asText(`${role} prompt`, own(reference)) ?? scenario?.[role] ?? null,
    ),
    tools: log.tools ?? readToolSchemas(own(mapping.tools)) ?? scenario?.tools ?? tables.tools ?? [],
    after: log.after,
    finalAnswer: text('final_answer'),
    turns,
  };
}

/** Messages before turn 0: from columns, or from a message list, which may lack only the system prompt. */
function openingOf(
  mapping: Mapping,
  log: ParsedLog,
  content: (reference: string | null, role: 'system' | 'user') => string | null,
): readonly ChatMessage[] {
  if (log.opening?.some(({ role }) => role === 'system' || role === 'developer')) return log.opening;
  const opening: ChatMessage[] = [];
  for (const role of log.opening === null ? (['system', 'user'] as const) : (['system'] as const)) {
    const text = content(mapping.opening[role], role);
    if (text !== null) opening.push({ role, content: text });
  }
  return [...opening, ...(log.opening ?? [])];
}

/** The part of an episode that stays in memory for a whole data set. */
export function toMeta(episode: Episode): EpisodeMeta {
  const {
    opening: _opening,
    tools: _tools,
    after: _after,
    finalAnswer: _finalAnswer,
    turns: _turns,
    ...meta
  } = episode;
  return meta;
}

/** Texts longer than this are no labels, and 207k of them would not fit into memory. */
const MAX_EXTRA = 200;

/** Scalars of columns that have no canonical meaning. A null-prototype object: names are data. */
function extraColumns(
  values: ReadonlyMap<string, JsonValue>,
  prepared: Prepared,
): Record<string, string | number | boolean | null> {
  const out = Object.create(null) as Record<string, string | number | boolean | null>;
  for (const [column, value] of values) {
    if (prepared.known.has(column)) continue;
    if (value === null || typeof value === 'boolean') out[column] = value;
    else if (typeof value === 'string' && value.length <= MAX_EXTRA) out[column] = prepared.intern(value);
    else if (typeof value === 'object' && 'lexeme' in value)
      out[column] = Number.isFinite(Number(value.lexeme)) ? Number(value.lexeme) : null;
  }
  return out;
}
