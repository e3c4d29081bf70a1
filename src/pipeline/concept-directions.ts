import type { Scenario } from '../environment/scenario.ts';
import { normal } from '../lib/rng.ts';
import type { Generator } from '../model/open-generator.ts';
import type { Rng } from '../types.ts';
import type { Played } from './rollout-record.ts';

/** A direction of the residual stream with what it stands for, length 1. */
export interface NamedDirection {
  readonly name: string;
  readonly direction: Float32Array;
}

/** Uniform on the sphere. */
export function randomDirection(width: number, rng: Rng): Float32Array {
  return unit(Float64Array.from({ length: width }, () => normal(rng)));
}

/** Prompts whose states make the concept directions. */
const MAX_PROMPTS = 400;

export interface PromptStates {
  /** [rows, width] at the last token of the prompt. */
  readonly states: Float32Array;
  readonly scenarios: readonly Scenario[];
  /** Root mean square length of the rows. */
  readonly length: number;
}

/** States at the end of the logged prompts of played episodes, unsteered. @throws RangeError when there is no prompt */
export async function promptStates(
  generator: Generator,
  items: readonly Played[],
  scenarios: readonly Scenario[],
  signal: AbortSignal,
): Promise<PromptStates> {
  const { width } = generator.info;
  const prompts = items
    .flatMap((item, index) => promptsOf(item).map((ids) => ({ ids, scenario: scenarios[index] })))
    .slice(0, MAX_PROMPTS);
  if (prompts.length === 0) throw new RangeError('expected at least one prompt, got no episodes');
  const states = new Float32Array(prompts.length * width);
  let square = 0;
  for (const [row, { ids }] of prompts.entries()) {
    const { data } = await generator.generate({
      ids,
      maxTokens: 0,
      temperature: 0,
      uniform: () => 0,
      stopIds: [],
      capture: true,
      slot: 'concepts',
      signal,
    });
    states.set(data.subarray(0, width), row * width);
    for (const value of data.subarray(0, width)) square += value * value;
  }
  return { states, scenarios: prompts.map(({ scenario }) => scenario), length: Math.sqrt(square / prompts.length) };
}

const promptsOf = (item: Played): Int32Array[] =>
  (JSON.parse(String(item.episode['events_json'])) as { prompt_ids: number[] }[]).map((event) =>
    Int32Array.from(event.prompt_ids),
  );

/** What a scenario is about or how it is worded: nothing of it decides whether the act is allowed. */
const CONCEPTS: readonly (readonly [string, (scenario: Scenario) => string])[] = [
  ['family', (scenario) => scenario.family],
  ['style', (scenario) => scenario.policyStyle],
  ['pressure', (scenario) => scenario.pressure],
];

/** Mean state of one group of scenarios minus that of all others, for as many groups as asked for, in turn by concept. */
export function conceptDirections({ states, scenarios }: PromptStates, count: number): readonly NamedDirection[] {
  const width = states.length / scenarios.length;
  const lists = CONCEPTS.map(([concept, of]) => {
    const groups = [...new Set(scenarios.map(of))].sort();
    return groups.length < 2
      ? []
      : groups.map((group) => ({
          name: `${concept}:${group}`,
          direction: differenceOfMeans(states, width, (row) => of(scenarios[row]) === group),
        }));
  });
  const longest = Math.max(...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, k) => lists.flatMap((list) => list.slice(k, k + 1)))
    .flat()
    .slice(0, count);
}

function differenceOfMeans(states: Float32Array, width: number, inside: (row: number) => boolean): Float32Array {
  const sums = [new Float64Array(width), new Float64Array(width)];
  const counts = [0, 0];
  for (let row = 0; row * width < states.length; row += 1) {
    const side = inside(row) ? 1 : 0;
    counts[side] += 1;
    for (let i = 0; i < width; i += 1) sums[side][i] += states[row * width + i];
  }
  return unit(sums[1].map((value, i) => value / counts[1] - sums[0][i] / counts[0]));
}

function unit(vector: Float64Array): Float32Array {
  const length = Math.hypot(...vector);
  if (!(length > 0)) throw new RangeError('expected a direction, got states that do not differ');
  return Float32Array.from(vector, (value) => value / length);
}
