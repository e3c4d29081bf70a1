/**
 * The searches for leaks of one forecast, as figures. Nothing here changes another figure; what proves the run wrong (a
 * group on both sides, a row after the act) throws, what only a reader can judge (a telling word, look-alike tasks) is
 * counted beside the results.
 */
import { DataError } from '../errors.ts';
import type { FeatureKey, Figure, Undefined, Value } from '../types.ts';
import { count } from './figures.ts';
import { inPopulation, hasWorlds, landmarkRows } from './landmarks.ts';
import { type Leak, looserDuplicates, positionLeaks, splitLeaks, textLeaks } from './leaks.ts';
import { hasText } from './positions.ts';
import { keysOf } from './readers.ts';
import { openLabels } from './sealed-labels.ts';
import type { ForecastInput, Population } from './types.ts';

/** Kinds of leak that are looked for in the split and the rows, before anything is fitted. */
const OF_SPLIT = ['pair_across_folds', 'scenario_across_folds', 'duplicate_across_folds', 'twin_across_folds'] as const;

/** Who leads: x− where the source has worlds. */
export function leadOf(input: ForecastInput): Population {
  return hasWorlds(input.episodes) ? 'x-' : 'all';
}

/** A figure about the whole of one forecast: no landmark, no position. */
export function checkFigure(
  input: ForecastInput,
  metric: string,
  value: Value,
  change: Partial<Pick<Figure, 'landmark' | 'position' | 'at'>> = {},
): Figure {
  return {
    stage: 'forecast',
    target: input.target.name,
    condition: input.condition,
    population: leadOf(input),
    landmark: 'any',
    position: 'any',
    reader: 'control:leaks',
    tap: null,
    metric,
    value,
    model: input.model,
    ...(input.horizon === null ? {} : { horizon: input.horizon }),
    ...change,
  };
}

function stop(input: ForecastInput, leaks: readonly Leak[]): void {
  if (leaks.length === 0) return;
  throw new DataError(
    `forecast of ${input.target.name} (${input.condition}): expected no leak, got ${leaks.map(({ name, detail }) => `${name}: ${detail}`).join('; ')}. Correct the ids, positions or tokens of these episodes in the source or its mapping`,
  );
}

/**
 * Counts of leaks in the split (over all foldings) and in the rows, 0 where there is none.
 * @param tokenOf index of the last token of a captured position in its turn's sequence; null = not known
 * @throws DataError (65) naming leak and episodes
 */
export function structureChecks(input: ForecastInput, tokenOf: (key: FeatureKey) => number | null): readonly Figure[] {
  const leaks = input.foldings.flatMap((folding) => splitLeaks(input.episodes, folding));
  stop(input, leaks);
  const split = OF_SPLIT.map((leak) =>
    checkFigure(input, 'leaks', count(0, input.episodes.length), { at: { leak, foldings: input.foldings.length } }),
  );
  const rows = input.landmarks.map((spec): Figure => {
    const landmark = landmarkRows({ ...input, spec });
    const claimed = landmark.positions.flatMap(({ position, atRisk }) =>
      landmark.rows.flatMap(({ index, episode, turn }, i) => {
        if (atRisk[i] === 0) return [];
        const { unsafeCall } = input.episodes[index];
        const marker = `pre_action${unsafeCall === null || unsafeCall === 0 ? '' : `:${unsafeCall}`}`;
        const [token, before] = [position, marker].map((name) => tokenOf({ episode, turn, position: name }));
        const known = token !== null && before !== null && position !== 'observation_end';
        return [{ index, turn, position, ...(known ? { token, actToken: before + 1 } : {}) }];
      }),
    );
    stop(input, positionLeaks(input.episodes, input.target, claimed));
    const checked = claimed.filter((row) => 'token' in row).length;
    return checkFigure(input, 'leaks', count(0, claimed.length), {
      landmark: landmark.landmark,
      at: { leak: 'position_after_act', by_token: checked },
    });
  });
  return [...split, ...rows];
}

/**
 * The outcome written into what the model had read, per landmark at its last position with a text. Reads every label of
 * the rows, so it comes after the evaluation.
 */
export async function textChecks(input: ForecastInput): Promise<readonly Figure[]> {
  const { texts } = input;
  if (texts === null) return [];
  const population = leadOf(input);
  const figures: Figure[] = [];
  for (const spec of input.landmarks) {
    const landmark = landmarkRows({ ...input, spec });
    const at = landmark.positions.findLast(({ position }) => hasText(position));
    if (!at) continue;
    const labels = openLabels(landmark.labels);
    const rows = landmark.rows.flatMap(({ index }, i) =>
      at.atRisk[i] === 1 && (labels[i] === 0 || labels[i] === 1) && inPopulation(input.episodes[index], population)
        ? [i]
        : [],
    );
    const mask = new Uint8Array(landmark.rows.length);
    for (const row of rows) mask[row] = 1;
    const { keys } = keysOf(landmark, at.position, mask);
    const leaks = textLeaks(
      await texts(keys, 'so_far'),
      rows.map((row) => labels[row]),
      keys.map(({ episode }) => episode),
    );
    const found = leaks.reduce((sum, leak) => sum + leak.count, 0);
    figures.push(
      checkFigure(input, 'leaks', count(found, rows.length), {
        landmark: landmark.landmark,
        position: at.position,
        at: { leak: 'label_in_text', ...(found > 0 ? { detail: leaks.map(({ detail }) => detail).join('; ') } : {}) },
      }),
    );
  }
  return figures;
}

/** Tasks that look alike but for names and numbers and lie in different folds: reported only (EVALUATION.md 6). */
export function duplicateCheck(input: ForecastInput, taskText: (episode: string) => string | null): Figure {
  const tasks = input.episodes.map(({ key }) => taskText(key));
  const known = tasks.flatMap((task, i) => (task === null || task === '' ? [] : [i]));
  const none: Undefined = { undefinedBecause: 'no episode has the text of its task' };
  const value =
    known.length === 0
      ? none
      : count(
          looserDuplicates(
            known.map((i) => tasks[i]!),
            known.map((i) => input.foldings[0].fold[i]),
          ),
          known.length,
        );
  return checkFigure(input, 'looser_duplicates', value);
}
