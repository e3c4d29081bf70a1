/**
 * Does a reader carry over (EVALUATION.md 14)? Ordered matrix train → test over templates, families, styles, conditions
 * or models of equal width, and the folds of leave-one-out evaluations.
 *
 * In every cell the reader learns from episodes of `train` in the other outer folds and is tested on episodes of `test`
 * in the fold left out, so that cells of the diagonal and off it differ in the value alone and no scenario is on both
 * sides, even where its twins stand in several conditions.
 */
import type { EpisodeMeta, Figure, Undefined, Value } from '../types.ts';
import { aurocWithinFold, drawCache, measuredRows, type Opened } from './auroc-figures.ts';
import { inPopulation, landmarkRows } from './landmarks.ts';
import { headlinePosition, headlineReader, type LandmarkData, probeReaders } from './readers.ts';
import { openOuterSide, splitRows } from './sides.ts';
import type { Folding, ForecastInput, LandmarkSpec, Population } from './types.ts';

export type Attribute = 'template' | 'family' | 'style' | 'condition' | 'model';

export interface TransferInput {
  /** For `by: 'model'` the episodes of several models; `read` must then answer one width for all of them. */
  readonly input: ForecastInput;
  readonly spec: LandmarkSpec;
  readonly population: Population;
  readonly by: Attribute;
}

/** Figures `auroc_transfer` and `transfer_lift` (AUROC − ½, negative lifts included) for every ordered pair. */
export async function transferMatrix({ input, spec, population, by }: TransferInput): Promise<readonly Figure[]> {
  const landmark = landmarkRows({ ...input, spec });
  const valueOf = (row: number): string | null => input.episodes[landmark.rows[row].index][by];
  const values = [...new Set(landmark.rows.map((_, row) => valueOf(row)))].filter((v) => v !== null).sort();
  const [folding] = input.foldings;
  const every = (mask: 'atRisk' | 'exists'): Uint8Array =>
    Uint8Array.from(landmark.rows, (_, row) => (landmark.positions.every((p) => p[mask][row] === 1) ? 1 : 0));
  const data: LandmarkData = {
    landmark,
    jointAtRisk: every('atRisk'),
    jointExists: every('exists'),
    sides: values.map((train) =>
      splitRows({
        landmark,
        trainable: Uint8Array.from(landmark.rows, ({ index }, row) =>
          valueOf(row) === train && inPopulation(input.episodes[index], population) ? 1 : 0,
        ),
        groups: input.groups,
        folding,
        innerFolds: input.innerFolds,
        release: false,
      }),
    ),
  };
  const { readers } = await probeReaders({ ...input, layer0: null }, data);
  const reader = readers.find(
    (r) => r.name === headlineReader(input.estimators) && r.position === headlinePosition(landmark.positions),
  )!;
  // Every choice is made: open the outer sides of all training values.
  const labels = new Int8Array(landmark.rows.length);
  for (const sides of data.sides) {
    for (const side of sides.outer) {
      const outcome = openOuterSide(side);
      side.rows.forEach((row, k) => (labels[row] = outcome[k]));
    }
  }
  const folds = Int32Array.from(landmark.rows, ({ index }) => folding.fold[index]);
  const opened: Opened = {
    rows: landmark.rows,
    episodes: input.episodes,
    labels,
    folds: values.map(() => folds),
    foldCounts: values.map(() => folding.folds),
    groups: Int32Array.from(landmark.rows, ({ index }) => input.groups[index]),
    drawsFor: drawCache(input.bootstrapDraws, input.seed),
  };
  return values.flatMap((train, f) =>
    values.flatMap((test): readonly Figure[] => {
      const rows = measuredRows(
        opened,
        reader,
        (row) => valueOf(row) === test && inPopulation(input.episodes[landmark.rows[row].index], population),
        f,
      );
      const value: Value =
        rows.length === 0
          ? { undefinedBecause: `no row of ${test} is scored by a reader that learnt from ${train}` }
          : aurocWithinFold(opened, reader, rows, f);
      const figure = (metric: string, of: Value): Figure => ({
        stage: 'forecast',
        target: input.target.name,
        condition: by === 'condition' ? test : input.condition,
        population,
        landmark: landmark.landmark,
        position: reader.position,
        reader: reader.name,
        tap: reader.tap,
        metric,
        value: of,
        model: by === 'model' ? test : input.model,
        ...(input.horizon === null ? {} : { horizon: input.horizon }),
        at: { by, train, test },
      });
      return [figure('auroc_transfer', value), figure('transfer_lift', overHalf(value))];
    }),
  );
}

function overHalf(value: Value): Value {
  if ('undefinedBecause' in value) return value;
  const { estimate, lower, upper } = value;
  return {
    ...value,
    estimate: estimate - 0.5,
    lower: lower === null ? null : lower - 0.5,
    upper: upper === null ? null : upper - 0.5,
  };
}

/**
 * One outer fold per value of the attribute, for `evaluate` with `split: leave_one_<attribute>`.
 * @returns undefined, with the reason, when a group holds several values: leaving one out would leave its twin in
 */
export function leaveOneOut(
  episodes: readonly EpisodeMeta[],
  groups: Int32Array,
  attribute: Attribute,
  seed: number,
): (Folding & { readonly values: readonly string[] }) | Undefined {
  const values: string[] = [];
  const fold = new Int32Array(episodes.length);
  const ofGroup = new Map<number, string>();
  for (const [i, episode] of episodes.entries()) {
    const value = episode[attribute] ?? 'none';
    const other = ofGroup.get(groups[i]) ?? value;
    if (other !== value) {
      return {
        undefinedBecause: `group ${groups[i]} holds ${attribute} ${other} and ${value}, so one cannot be left out`,
      };
    }
    ofGroup.set(groups[i], value);
    if (!values.includes(value)) values.push(value);
    fold[i] = values.indexOf(value);
  }
  if (values.length < 2) return { undefinedBecause: `all episodes have ${attribute} ${values[0] ?? 'none'}` };
  return { seed, fold, folds: values.length, values };
}
