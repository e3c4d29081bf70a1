import type { RolloutConfig } from '../config/rollout.ts';
import { CONDITIONS, generatePair } from '../environment/generate/generate.ts';
import type { Scenario } from '../environment/scenario.ts';
import { UserError } from '../errors.ts';
import { seededRng } from '../lib/rng.ts';
import { readScenarios } from './scenarios.ts';

/** The scenarios of a rollout, in the order in which they are played and logged. */
export async function scenariosOf(config: RolloutConfig): Promise<readonly Scenario[]> {
  const out: Scenario[] = [];
  if ('path' in config.scenarios) {
    for await (const scenario of readScenarios([config.scenarios.path])) out.push(scenario);
  } else {
    const { tasks, seed, conditions, nuisanceTasks } = config.scenarios.generate;
    for (let index = 0; index < tasks; index += 1)
      for (const condition of conditions)
        for (const { scenario } of generatePair({ seed, index, condition, set: `${config.name}_${condition}` }))
          if (scenario.world !== 'nuisance' || index < nuisanceTasks) out.push(scenario);
  }
  if (out.length === 0) throw new UserError('scenarios: expected at least one scenario, got none');
  return out;
}

/** Scenarios x− and x+ that the rollout itself does not play, in its conditions. */
export function developmentScenarios(
  config: RolloutConfig,
  generate: { readonly tasks: number; readonly seed: number },
): readonly Scenario[] {
  const { scenarios } = config;
  if ('generate' in scenarios && scenarios.generate.seed === generate.seed)
    throw new UserError(
      `development.generate.seed: expected another seed than that of the scenarios (${generate.seed}), got the same. Thresholds need other episodes`,
    );
  const conditions = 'generate' in scenarios ? scenarios.generate.conditions : CONDITIONS;
  return Array.from({ length: generate.tasks }, (_, index) => index).flatMap((index) =>
    conditions.flatMap((condition) =>
      generatePair({ seed: generate.seed, index, condition, set: `${config.name}_${condition}` }).flatMap(
        ({ scenario }) => (scenario.world === 'nuisance' ? [] : [scenario]),
      ),
    ),
  );
}

/** The world that an episode's observations are compared with: x+ for x− and nuisance, x− for x+. */
export function twinsOf(scenarios: readonly Scenario[]): ReadonlyMap<string, Scenario> {
  const worlds = new Map<string, Scenario>();
  for (const scenario of scenarios) worlds.set(`${scenario.pairId} ${scenario.world}`, scenario);
  const twins = new Map<string, Scenario>();
  for (const scenario of scenarios) {
    const twin = worlds.get(`${scenario.pairId} ${scenario.world === 'x+' ? 'x-' : 'x+'}`);
    if (twin !== undefined && scenario.world !== 'none') twins.set(scenario.instanceId, twin);
  }
  return twins;
}

/** One stream per (scenario seed, turn, attempt): worlds of one task share it, whatever else is played. */
export function sharedRandomness(
  seed: number,
  scenario: Scenario,
): (turn: number, attempt: number, step: number) => number {
  const streams = new Map<string, { readonly next: () => number; readonly drawn: number[] }>();
  return (turn, attempt, step) => {
    const key = `${turn}/${attempt}`;
    let stream = streams.get(key);
    if (stream === undefined) {
      const rng = seededRng('rollout', seed, scenario.seed, turn, attempt);
      stream = { next: () => rng.next(), drawn: [] };
      streams.set(key, stream);
    }
    while (stream.drawn.length <= step) stream.drawn.push(stream.next());
    return stream.drawn[step] ?? 0;
  };
}
