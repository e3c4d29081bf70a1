import { readFile } from 'node:fs/promises';
import type { JoinColumn, Mapping } from '../config/mapping-fields.ts';
import { DataError } from '../errors.ts';
import { sha256 } from '../lib/content-hash.ts';
import { isJsonArray, JsonError, parseJson } from '../lib/json.ts';
import type { JsonValue } from '../types.ts';
import { asText, FieldProblem, isMissing, show } from './cell.ts';
import { findTables } from './files.ts';
import { readRows } from './rows.ts';

/** The tables beside the episodes, reduced to what an episode takes from them. */
export interface SideTables {
  /** null = no scenarios were given. */
  readonly scenarios: ReadonlyMap<string, ScenarioFacts> | null;
  readonly reportLabels: ReadonlyMap<string, string | null> | null;
  /** From a tools file: the same schemas for every episode. */
  readonly tools: readonly JsonValue[] | null;
}

export interface ScenarioFacts {
  readonly system: string | null;
  readonly user: string | null;
  readonly tools: readonly JsonValue[] | null;
  readonly style: string | null;
  readonly family: string | null;
  readonly template: string | null;
  /** The mapping's `duplicateText` columns of this table. Normalised and hashed where an episode asks: most never do. */
  readonly duplicateTexts: readonly string[];
}

export const joinKey = (values: readonly (JsonValue | undefined)[]): string =>
  values.map((value) => asText('join', value) ?? '').join('\u0000');

/** NFC, case folding, line ends, white space and digits evened out; names stay (EVALUATION.md 6). */
export function normaliseForDuplicates(text: string): string {
  return text.normalize('NFC').toLowerCase().replace(/\d+/g, '0').replace(/\s+/g, ' ').trim();
}

/** Equal for episodes whose texts differ in nothing that matters; null where there is no text. */
export function duplicateKeyOf(texts: readonly (JsonValue | undefined)[]): string | null {
  const joined = texts.map((text) => (typeof text === 'string' ? text : '')).join('\n');
  return joined.trim() === '' ? null : sha256(normaliseForDuplicates(joined));
}

/** `scenarios.system_prompt` → `system_prompt` where the table is the one asked for. */
export function columnOf(reference: string | null, table: 'episodes' | 'scenarios'): string | null {
  return reference !== null && reference.startsWith(`${table}.`) ? reference.slice(table.length + 1) : null;
}

/** Tool schemas from a list or from JSON text of one. @throws FieldProblem */
export function readToolSchemas(value: JsonValue | undefined): readonly JsonValue[] | null {
  if (isMissing(value)) return null;
  let tools: JsonValue = value;
  if (typeof tools === 'string') {
    try {
      tools = parseJson(tools);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      throw new FieldProblem('tools', 'a JSON list of schemas', error.message);
    }
  }
  if (!isJsonArray(tools)) throw new FieldProblem('tools', 'a list of schemas', show(tools));
  return tools;
}

async function* sideRows(
  inputs: readonly string[],
  columns: readonly string[],
  join: readonly JoinColumn[],
): AsyncGenerator<{ readonly key: string; readonly values: ReadonlyMap<string, JsonValue>; readonly where: string }> {
  for (const file of await findTables(inputs)) {
    for await (const row of readRows(file, { columns: [...columns, ...join.map((column) => column.other)] })) {
      const where = `${file.path}: row ${row.row}`;
      if (row.problem) throw new DataError(`${where}: ${row.problem.message}. Correct or remove the row`);
      for (const { other } of join) {
        if (!row.values.has(other))
          throw new DataError(
            `${file.path}: ${other}: expected a column that joins it to the episodes, got none. Name it in the mapping (join)`,
          );
      }
      try {
        yield { key: joinKey(join.map((column) => row.values.get(column.other))), values: row.values, where };
      } catch (error) {
        if (!(error instanceof FieldProblem)) throw error;
        throw new DataError(`${where}: ${error.message}. Correct or remove the row`, { cause: error });
      }
    }
  }
}

const scenarioColumn = (reference: string | null): string | null => columnOf(reference, 'scenarios');

async function readScenarios(inputs: readonly string[], mapping: Mapping): Promise<Map<string, ScenarioFacts>> {
  const out = new Map<string, ScenarioFacts>();
  const duplicates = mapping.duplicateText.map(scenarioColumn).filter((name) => name !== null);
  const [system, user, tools] = [mapping.opening.system, mapping.opening.user, mapping.tools].map(scenarioColumn);
  const needed = [system, user, tools, ...duplicates].filter((name) => name !== null && name !== undefined);
  const own = ['policy_style', 'scenario_family', 'template'];
  // Schemas are the same for most scenarios: parsed once each.
  const parsed = new Map<string, readonly JsonValue[] | null>();
  for await (const { key, values, where } of sideRows(inputs, [...needed, ...own], mapping.join.scenarios)) {
    const text = (name: string | null | undefined): string | null =>
      name === null || name === undefined ? null : asText(name, values.get(name));
    try {
      const schemas = tools === null || tools === undefined ? undefined : values.get(tools);
      const memo = typeof schemas === 'string' ? schemas : '';
      if (typeof schemas === 'string' && !parsed.has(memo)) parsed.set(memo, readToolSchemas(schemas));
      const facts: ScenarioFacts = {
        system: text(system),
        user: text(user),
        tools: typeof schemas === 'string' ? (parsed.get(memo) ?? null) : readToolSchemas(schemas),
        style: text('policy_style'),
        family: text('scenario_family'),
        template: text('template'),
        duplicateTexts: duplicates.map((name) => {
          const value = values.get(name);
          return typeof value === 'string' ? value : '';
        }),
      };
      const known = out.get(key);
      if (known !== undefined && (known.system !== facts.system || known.user !== facts.user))
        throw new FieldProblem(
          mapping.join.scenarios.map((item) => item.other).join(' + '),
          'one scenario for each value',
          `two with different prompts (${key.replaceAll('\u0000', ', ').slice(0, 80)}). Name the columns that tell them apart in the mapping (join.scenarios)`,
        );
      out.set(key, facts);
    } catch (error) {
      if (!(error instanceof FieldProblem)) throw error;
      throw new DataError(`${where}: ${error.message}`, { cause: error });
    }
  }
  return out;
}

async function readReportLabels(inputs: readonly string[], mapping: Mapping): Promise<Map<string, string | null>> {
  const out = new Map<string, string | null>();
  for await (const { key, values, where } of sideRows(inputs, [mapping.reportLabel], mapping.join.reportLabels)) {
    if (!values.has(mapping.reportLabel))
      throw new DataError(
        `${where}: ${mapping.reportLabel}: expected a column with the label, got none. Name it in the mapping (reportLabel)`,
      );
    const label = asText(mapping.reportLabel, values.get(mapping.reportLabel));
    const known = out.get(key);
    if (known !== undefined && known !== label)
      throw new DataError(
        `${where}: ${mapping.reportLabel}: expected one label for each report, got ${known ?? 'null'} and ${label ?? 'null'} for ${key.replaceAll('\u0000', ', ').slice(0, 80)}. Remove one, or name the columns that tell them apart in the mapping (join.reportLabels)`,
      );
    out.set(key, label);
  }
  return out;
}

/** A JSON file with a list of tool schemas. @throws DataError (65) */
export async function readToolsFile(path: string): Promise<readonly JsonValue[]> {
  const fail = (got: string, cause?: unknown): never => {
    throw new DataError(`${path}: expected a JSON list of tool schemas, got ${got}. Correct the file`, { cause });
  };
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    return fail(`${(error as NodeJS.ErrnoException).code ?? 'an error'} (not readable)`, error);
  }
  try {
    const value = parseJson(text);
    if (isJsonArray(value)) return value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return fail(error.message, error);
  }
  return fail('something else');
}

export interface SideInputs {
  readonly scenarios: readonly string[] | null;
  readonly reportLabels: readonly string[] | null;
  readonly tools: string | null;
}

/** @throws DataError (65): side tables hold what episodes share, so one bad row of theirs is not set aside */
export async function readSideTables(inputs: SideInputs, mapping: Mapping): Promise<SideTables> {
  return {
    scenarios: inputs.scenarios === null ? null : await readScenarios(inputs.scenarios, mapping),
    reportLabels: inputs.reportLabels === null ? null : await readReportLabels(inputs.reportLabels, mapping),
    tools: inputs.tools === null ? null : await readToolsFile(inputs.tools),
  };
}
