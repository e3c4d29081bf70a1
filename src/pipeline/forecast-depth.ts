/**
 * What `forecast.depth: full` adds: the null of the whole search, the split looked at by an adversary, splits that leave
 * one template, family or style out, and the ordered transfer matrices. Many refits; the headline needs none of them.
 */
import { leadOf } from '../forecast/checks.ts';
import { splitAurocs } from '../forecast/adversarial.ts';
import { evaluate } from '../forecast/evaluate.ts';
import { landmarkName } from '../forecast/landmarks.ts';
import { permutationNull } from '../forecast/permutation-null.ts';
import { headlineReader } from '../forecast/readers.ts';
import { type Attribute, leaveOneOut, transferMatrix } from '../forecast/transfer.ts';
import type { ForecastInput } from '../forecast/types.ts';
import type { Figure, Gemm } from '../types.ts';

/** Of one model × condition × target. */
export async function deepFigures(input: ForecastInput, gemm: Gemm, permutations: number): Promise<Figure[]> {
  const population = leadOf(input);
  const figures: Figure[] = [];
  if (permutations > 0) {
    const landmarksClaimed = input.landmarks.length;
    for (const spec of input.landmarks) {
      figures.push(...(await permutationNull({ input, spec, population, permutations, landmarksClaimed, gemm })));
    }
  }
  const [spec] = input.landmarks;
  figures.push(...(await splitAurocs({ input, spec, population, tap: input.taps.at(-1)! })));
  for (const attribute of ['template', 'family', 'style'] as const) {
    figures.push(...(await leftOut(input, attribute)));
    figures.push(...(await transferred(input, attribute)));
  }
  return figures;
}

/** The headline landmark (the first one) alone: a matrix costs as many searches as it has rows. */
async function transferred(input: ForecastInput, by: Attribute): Promise<readonly Figure[]> {
  const values = new Set(input.episodes.map((episode) => episode[by] ?? null));
  values.delete(null);
  if (values.size < 2) return [];
  return await transferMatrix({ input, spec: input.landmarks[0], population: leadOf(input), by });
}

/**
 * Between conditions or between agents whose transcripts one reader read: their episodes together, which no other figure
 * of the run pools.
 * @param input the episodes of all of them
 */
export async function acrossFigures(input: ForecastInput, by: 'condition' | 'model'): Promise<readonly Figure[]> {
  return await transferred(input, by);
}

/** Readers that never saw one value of the attribute, tested on it; or, per landmark, why there are none. */
async function leftOut(input: ForecastInput, attribute: Attribute): Promise<readonly Figure[]> {
  const split = `leave_one_${attribute}`;
  const folding = leaveOneOut(input.episodes, input.groups, attribute, input.seed);
  if ('undefinedBecause' in folding) {
    return input.landmarks.map((spec): Figure => ({
      stage: 'forecast',
      target: input.target.name,
      condition: input.condition,
      population: leadOf(input),
      landmark: landmarkName(spec),
      position: spec.positions.length > 1 ? 'selected' : spec.positions[0],
      reader: headlineReader(input.estimators),
      tap: 'selected',
      metric: 'auroc_within_fold',
      value: folding,
      model: input.model,
      split,
      ...(input.horizon === null ? {} : { horizon: input.horizon }),
    }));
  }
  // Only AUROCs are kept, so nothing is spent on monitors, random directions, further texts or readers of all worlds.
  const result = await evaluate({
    ...input,
    foldings: [folding],
    split,
    trainOn: [leadOf(input) === 'x-' ? 'x-' : 'all'],
    alphas: [],
    textScopes: input.textScopes.slice(0, 1),
    textAnalyzers: input.textAnalyzers.slice(0, 1),
    randomDirections: 0,
  });
  return result.figures.filter(
    ({ metric, at, tap }) =>
      metric.startsWith('auroc') &&
      metric !== 'auroc_split_seed_spread' &&
      at?.['search'] === undefined &&
      (tap === null || tap === 'selected'),
  );
}
