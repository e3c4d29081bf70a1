import { basename, join } from 'node:path';
import { findTables } from '../dataset/files.ts';
import { readRows } from '../dataset/rows.ts';
import { checkScenarios, type ScenarioFault } from '../environment/check.ts';
import { CONDITIONS, generatePair, type Condition } from '../environment/generate/generate.ts';
import type { Scenario } from '../environment/scenario.ts';
import { scenarioFromRow, scenarioToRow } from '../environment/scenario-row.ts';
import { DataError, UserError } from '../errors.ts';
import { writeFileAtomic } from '../lib/atomic-write.ts';
import { toPlain } from '../lib/json.ts';

export interface GenerateScenariosOptions {
  /** Tasks; each gives three worlds (x−, x+, nuisance) per condition. Templates take turns. */
  readonly count: number;
  readonly seed: number;
  readonly conditions: readonly Condition[];
  readonly out: string;
}

export interface GeneratedScenarios {
  readonly file: string;
  readonly tasks: number;
  readonly scenarios: number;
}

export { CONDITIONS };

/** Writes OUT/scenarios.jsonl. The same options give the same bytes. */
export async function generateScenarios(options: GenerateScenariosOptions): Promise<GeneratedScenarios> {
  if (!Number.isInteger(options.count) || options.count < 1)
    throw new UserError(`--count: expected a whole number from 1, got ${options.count}`);
  if (!Number.isSafeInteger(options.seed) || options.seed < 0)
    throw new UserError(`--seed: expected a whole number from 0, got ${options.seed}`);
  const lines: string[] = [];
  for (let index = 0; index < options.count; index += 1)
    for (const condition of options.conditions)
      for (const { scenario } of generatePair({ seed: options.seed, index, condition, set: `generated_${condition}` }))
        lines.push(JSON.stringify(scenarioToRow(scenario)));
  const file = join(options.out, 'scenarios.jsonl');
  await writeFileAtomic(file, `${lines.join('\n')}\n`);
  return { file, tasks: options.count, scenarios: lines.length };
}

/** Scenarios from parquet or JSON lines: a file, a folder or a pattern. @throws DataError (65) naming file, row, field */
export async function* readScenarios(inputs: readonly string[]): AsyncGenerator<Scenario> {
  const seen = new Map<string, string>();
  for (const table of await findTables(inputs)) {
    for await (const raw of readRows(table, { columns: null })) {
      const place = { file: basename(raw.file), row: raw.row };
      if (raw.problem !== null)
        throw new DataError(`${place.file}: row ${place.row}: ${raw.problem.field ?? 'row'}: ${raw.problem.message}`);
      const row = Object.fromEntries(Array.from(raw.values, ([name, value]) => [name, toPlain(value)]));
      const scenario = scenarioFromRow(row, place);
      const before = seen.get(scenario.instanceId);
      if (before !== undefined)
        throw new DataError(
          `${place.file}: row ${place.row}: instance_id: expected a new id, got ${JSON.stringify(scenario.instanceId)} again (first in ${before}). Give every world its own instance_id`,
        );
      seen.set(scenario.instanceId, `${place.file} row ${place.row}`);
      yield scenario;
    }
  }
}

export interface CheckedScenarios {
  readonly scenarios: number;
  readonly pairs: number;
  readonly faults: readonly ScenarioFault[];
}

export async function checkScenarioFiles(inputs: readonly string[]): Promise<CheckedScenarios> {
  const scenarios: Scenario[] = [];
  for await (const scenario of readScenarios(inputs)) scenarios.push(scenario);
  return {
    scenarios: scenarios.length,
    pairs: new Set(scenarios.map((scenario) => scenario.pairId)).size,
    faults: checkScenarios(scenarios),
  };
}

/** The scenarios whose scenario, instance or pair id is `id`. @throws UserError (2) when there is none */
export async function findScenarios(inputs: readonly string[], id: string): Promise<readonly Scenario[]> {
  const found: Scenario[] = [];
  for await (const scenario of readScenarios(inputs))
    if ([scenario.instanceId, scenario.pairId, scenario.scenarioId].includes(id)) found.push(scenario);
  if (found.length === 0)
    throw new UserError(
      `${inputs.join(' ')}: expected a scenario called ${id}, got none. forewarn scenarios list shows the ids`,
    );
  return found;
}
