import { DataError } from '../errors.ts';
import { JsonError, isJsonArray, isJsonNumber, isJsonObject, parseJson, toPlain } from '../lib/json.ts';
import type { JsonValue, World } from '../types.ts';
import type {
  ActionMatcher,
  CallPattern,
  CommandEffect,
  CommandRule,
  Database,
  EffectPattern,
  Fault,
  Goal,
  Permissions,
  Scenario,
} from './scenario.ts';
import { TOOLS } from './tools.ts';

/**
 * A scenario as one row of CAPE-Bench's `scenarios` table (parquet or JSON lines) and back.
 *
 * Required: `scenario_id`, `task_prompt`, `critical`, and `cf_value` or `permissions`. Everything else has a default:
 *
 * | column | if missing or empty |
 * |---|---|
 * | instance_id, counterfactual_pair_id | scenario_id |
 * | template, scenario_family, set, policy_style, pressure, causal_var, causal_desc, system_prompt | "" |
 * | condition | all |
 * | permissions | the critical action is allowed if cf_value is safe, forbidden if it is unsafe |
 * | files, db | empty; commands: none but the built-in ones on files |
 * | goal | an effect of the critical action; the report is checked for nothing |
 * | seed | 0; max_turns 20; faults none |
 *
 * `permissions`, `files`, `db`, `commands`, `critical`, `goal` and `faults` are JSON (as text or already parsed) in the
 * form of scenario.ts. Columns that are not named here are kept in `extra` and not used.
 */
const COLUMNS = new Set(
  (
    'scenario_id instance_id counterfactual_pair_id template scenario_family cf_value nuisance set seed system_prompt ' +
    'task_prompt permissions files db commands critical goal causal_var causal_desc policy_style pressure condition ' +
    'faults max_turns'
  ).split(' '),
);

/** Where a row was read, for messages: base name of the file and 1-based row. */
export interface RowPlace {
  readonly file: string;
  readonly row: number;
}

/** @throws DataError naming file, row, field, what was expected and what was found */
export function scenarioFromRow(row: Readonly<Record<string, unknown>>, place: RowPlace): Scenario {
  const fail = (field: string, expected: string, got: unknown, hint: string): never => {
    throw new DataError(`${place.file}: row ${place.row}: ${field}: expected ${expected}, got ${show(got)}. ${hint}`);
  };
  const text = (name: string, fallback?: string): string => {
    const value = row[name];
    if (value === undefined || value === null || value === '') {
      if (fallback !== undefined) return fallback;
      return fail(name, 'text', value, `Every scenario needs ${name}.`);
    }
    if (typeof value === 'string') return value;
    if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
    if (isJsonNumber(value as JsonValue)) return (value as { readonly lexeme: string }).lexeme;
    return fail(name, 'text', value, 'Write it as a string.');
  };
  const reader = (name: string): Reader | null => {
    const value = row[name];
    if (value === undefined || value === null || value === '') return null;
    return {
      fail: (path, expected, got) => fail(`${name}${path}`, expected, got, FORM_HINT),
      path: '',
      value: parsed(name, value),
    };
  };
  const parsed = (name: string, value: unknown): unknown => {
    if (typeof value !== 'string') return plainOf(value);
    try {
      return toPlain(parseJson(value));
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      return fail(name, 'JSON', value, `It is not JSON: ${error.message}.`);
    }
  };
  const id = text('scenario_id');
  const criticalReader = reader('critical');
  if (criticalReader === null)
    return fail('critical', 'the matcher of the critical action', row['critical'], FORM_HINT);
  const critical = readMatcher(criticalReader);
  const world = readWorld(row, fail);
  const permissionsReader = reader('permissions');
  if (permissionsReader === null && world === 'none')
    fail('cf_value', 'safe or unsafe, or a permissions column', row['cf_value'], 'Say whether the action is allowed.');
  const maxTurns = Number(text('max_turns', '20'));
  if (!Number.isInteger(maxTurns) || maxTurns < 1)
    fail('max_turns', 'a whole number from 1', row['max_turns'], 'Correct it.');
  const seed = text('seed', '0');
  if (!/^\d+$/.test(seed)) fail('seed', 'a whole number', row['seed'], 'Correct it.');
  return {
    scenarioId: id,
    instanceId: text('instance_id', id),
    pairId: text('counterfactual_pair_id', id),
    template: text('template', ''),
    family: text('scenario_family', ''),
    world,
    set: text('set', ''),
    seed,
    systemPrompt: text('system_prompt', ''),
    taskPrompt: text('task_prompt'),
    permissions:
      permissionsReader === null ? defaultPermissions(world === 'x+', critical) : readPermissions(permissionsReader),
    files: mapReader(reader('files'), (item) => stringOf(item)),
    db: readDatabase(reader('db')),
    commands: listReader(reader('commands'), readCommand),
    critical,
    goal: readGoal(reader('goal'), critical),
    causalVar: text('causal_var', ''),
    causalDesc: text('causal_desc', ''),
    policyStyle: text('policy_style', ''),
    pressure: text('pressure', ''),
    condition: text('condition', 'all'),
    faults: listReader(reader('faults'), readFault),
    maxTurns,
    extra: Object.fromEntries(
      Object.entries(row)
        .filter(([name]) => !COLUMNS.has(name))
        .map(([name, value]) => [name, scalar(value)]),
    ),
  };
}

/** The row of a scenario, columns in CAPE's order, structured fields as JSON text. */
export function scenarioToRow(scenario: Scenario): Readonly<Record<string, string | number | boolean | null>> {
  return {
    scenario_id: scenario.scenarioId,
    instance_id: scenario.instanceId,
    template: scenario.template,
    scenario_family: scenario.family,
    counterfactual_pair_id: scenario.pairId,
    cf_value: cfValue(scenario.world),
    nuisance: scenario.world === 'nuisance',
    seed: scenario.seed,
    set: scenario.set,
    system_prompt: scenario.systemPrompt,
    task_prompt: scenario.taskPrompt,
    permissions: JSON.stringify(scenario.permissions),
    files: JSON.stringify(scenario.files),
    db: JSON.stringify(scenario.db),
    commands: JSON.stringify(scenario.commands),
    critical: JSON.stringify(scenario.critical),
    goal: JSON.stringify(scenario.goal),
    causal_var: scenario.causalVar,
    causal_desc: scenario.causalDesc,
    policy_style: scenario.policyStyle,
    pressure: scenario.pressure,
    condition: scenario.condition,
    faults: JSON.stringify(scenario.faults),
    max_turns: scenario.maxTurns,
    ...scenario.extra,
  };
}

/** "unsafe" for x− and its nuisance copies, "safe" for x+, null where there are no worlds. */
export function cfValue(world: World): string | null {
  return world === 'none' ? null : world === 'x+' ? 'safe' : 'unsafe';
}

const FORM_HINT = 'See "Scenario files" in the README for its form.';

type Fail = (field: string, expected: string, got: unknown, hint: string) => never;

function readWorld(row: Readonly<Record<string, unknown>>, fail: Fail): World {
  const value = row['cf_value'];
  const nuisance = row['nuisance'];
  if (nuisance !== undefined && nuisance !== null && ![true, false, 'true', 'false', ''].includes(nuisance as string))
    fail('nuisance', 'true or false', nuisance, 'Correct it.');
  if (value === undefined || value === null || value === '') return 'none';
  if (value !== 'safe' && value !== 'unsafe') return fail('cf_value', 'safe or unsafe', value, 'Correct it.');
  if (nuisance === true || nuisance === 'true') return 'nuisance';
  return value === 'safe' ? 'x+' : 'x-';
}

function defaultPermissions(allowed: boolean, critical: ActionMatcher): Permissions {
  return { rules: [{ id: 'critical', allowed, match: critical }], escalation: allowed ? 'granted' : 'denied' };
}

// ---------------------------------------------------------------- structured fields

/** A value inside a structured column and where it stands (`.rules[0].match`). */
interface Reader {
  readonly value: unknown;
  readonly path: string;
  readonly fail: (path: string, expected: string, got: unknown) => never;
}

function at(reader: Reader, key: string | number): Reader {
  const container = reader.value as Readonly<Record<string, unknown>>;
  const path = typeof key === 'number' ? `${reader.path}[${key}]` : `${reader.path}.${key}`;
  return { ...reader, path, value: container[key] };
}

/** The reader itself once its value is an object with no other keys than these. */
function objectOf(reader: Reader, required: readonly string[], optional: readonly string[] = []): Reader {
  const { value } = reader;
  if (!isRecord(value)) return reader.fail(reader.path, `an object with ${required.join(', ')}`, value);
  for (const key of Object.keys(value))
    if (!required.includes(key) && !optional.includes(key))
      reader.fail(`${reader.path}.${key}`, `one of ${[...required, ...optional].join(', ')}`, key);
  for (const key of required) if (value[key] === undefined) reader.fail(`${reader.path}.${key}`, 'a value', undefined);
  return reader;
}

function listReader<T>(reader: Reader | null, item: (reader: Reader) => T): readonly T[] {
  if (reader === null || reader.value === undefined) return [];
  if (!Array.isArray(reader.value)) return reader.fail(reader.path, 'a list', reader.value);
  return reader.value.map((_, index) => item(at(reader, index)));
}

function mapReader<T>(reader: Reader | null, item: (reader: Reader) => T): Readonly<Record<string, T>> {
  if (reader === null || reader.value === undefined) return {};
  if (!isRecord(reader.value)) return reader.fail(reader.path, 'an object', reader.value);
  return Object.fromEntries(Object.keys(reader.value).map((key) => [key, item(at(reader, key))]));
}

function readDatabase(reader: Reader | null): Database {
  const row = (cells: Reader): Readonly<Record<string, string>> => mapReader(cells, scalarOf);
  return mapReader(reader, (rows) => mapReader(rows, row));
}

function stringOf(reader: Reader): string {
  return typeof reader.value === 'string' ? reader.value : reader.fail(reader.path, 'text', reader.value);
}

/** Numbers and booleans of a data base become the text a tool prints. */
function scalarOf(reader: Reader): string {
  const { value } = reader;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return value === null ? 'null' : stringOf(reader);
}

function oneOf<const T extends string>(reader: Reader, options: readonly T[]): T {
  const found = options.find((option) => option === reader.value);
  return found ?? reader.fail(reader.path, options.join(' | '), reader.value);
}

function readMatcher(reader: Reader): ActionMatcher {
  objectOf(reader, [], ['calls', 'effects']);
  const matcher = {
    calls: listReader(at(reader, 'calls'), readPattern),
    effects: listReader(at(reader, 'effects'), readEffect),
  };
  if (matcher.calls.length + matcher.effects.length === 0)
    reader.fail(reader.path, 'at least one call or effect', reader.value);
  return matcher;
}

function readPattern(reader: Reader): CallPattern {
  objectOf(reader, ['tool', 'args']);
  return {
    tool: oneOf(
      at(reader, 'tool'),
      TOOLS.map((tool) => tool.name),
    ),
    args: mapReader(at(reader, 'args'), stringOf),
  };
}

const DB_KEYS = ['table', 'id', 'field', 'value'] as const;

function readEffect(reader: Reader): EffectPattern {
  objectOf(reader, ['kind'], ['path', 'to', 'name', ...DB_KEYS]);
  const kind = oneOf(at(reader, 'kind'), ['file_gone', 'file_changed', 'file_copied', 'db', 'sent', 'flag']);
  const text = (key: string): string => stringOf(at(reader, key));
  switch (kind) {
    case 'db':
      return { kind, table: text('table'), id: text('id'), field: text('field'), value: text('value') };
    case 'sent':
      return { kind, to: text('to') };
    case 'flag':
      return { kind, name: text('name') };
    default:
      return { kind, path: text('path') };
  }
}

function readCommand(reader: Reader): CommandRule {
  objectOf(reader, ['words', 'output'], ['effects']);
  return {
    words: stringOf(at(reader, 'words')),
    output: stringOf(at(reader, 'output')),
    effects: listReader(at(reader, 'effects'), readCommandEffect),
  };
}

function readCommandEffect(reader: Reader): CommandEffect {
  objectOf(reader, ['kind'], ['path', 'text', 'name', ...DB_KEYS]);
  const kind = oneOf(at(reader, 'kind'), ['write', 'delete', 'db', 'flag']);
  const text = (key: string): string => stringOf(at(reader, key));
  switch (kind) {
    case 'write':
      return { kind, path: text('path'), text: text('text') };
    case 'delete':
      return { kind, path: text('path') };
    case 'db':
      return { kind, table: text('table'), id: text('id'), field: text('field'), value: text('value') };
    default:
      return { kind, name: text('name') };
  }
}

function readPermissions(reader: Reader): Permissions {
  objectOf(reader, ['rules'], ['escalation']);
  const rules = listReader(at(reader, 'rules'), (rule) => {
    objectOf(rule, ['id', 'allowed', 'match']);
    const allowed = at(rule, 'allowed');
    if (typeof allowed.value !== 'boolean') allowed.fail(allowed.path, 'true or false', allowed.value);
    return { id: stringOf(at(rule, 'id')), allowed: allowed.value === true, match: readMatcher(at(rule, 'match')) };
  });
  const answer = at(reader, 'escalation');
  const escalation = answer.value === undefined ? 'denied' : oneOf(answer, ['granted', 'denied']);
  return { rules, escalation };
}

function readGoal(reader: Reader | null, critical: ActionMatcher): Goal {
  const report = { object: '', done: [], allowedClaims: [], forbiddenClaims: [] };
  if (reader === null) return { any: critical.effects, report };
  objectOf(reader, ['any'], ['report']);
  const any = listReader(at(reader, 'any'), readEffect);
  const claims = at(reader, 'report');
  if (claims.value === undefined) return { any, report };
  objectOf(claims, ['object', 'done', 'allowedClaims', 'forbiddenClaims']);
  const words = (key: string): readonly string[] => listReader(at(claims, key), (item) => stringOf(item).toLowerCase());
  return {
    any,
    report: {
      object: stringOf(at(claims, 'object')),
      done: words('done'),
      allowedClaims: words('allowedClaims'),
      forbiddenClaims: words('forbiddenClaims'),
    },
  };
}

function readFault(reader: Reader): Fault {
  objectOf(reader, ['tool', 'call', 'error']);
  const call = at(reader, 'call');
  if (!Number.isInteger(call.value) || (call.value as number) < 1)
    call.fail(call.path, 'a whole number from 1', call.value);
  return {
    tool: oneOf(
      at(reader, 'tool'),
      TOOLS.map((tool) => tool.name),
    ),
    call: call.value as number,
    error: stringOf(at(reader, 'error')),
  };
}

// ---------------------------------------------------------------- plain values

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Map);
}

function plainOf(value: unknown): unknown {
  const json = value as JsonValue;
  return isJsonObject(json) || isJsonArray(json) || isJsonNumber(json) ? toPlain(json) : value;
}

function scalar(value: unknown): string | number | boolean | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  return typeof value === 'bigint' ? value.toString() : JSON.stringify(plainOf(value));
}

const SHOWN = 60;

function show(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = typeof value === 'bigint' ? String(value) : (JSON.stringify(plainOf(value)) ?? 'nothing');
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}
