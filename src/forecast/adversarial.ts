/**
 * Adversarial validation of the split: can a reader tell the rows of one outer fold from the rest? With folds dealt by a
 * hash it cannot, beyond chance; if it can, the folds differ in kind and the test is not a test of what was trained.
 */
import { hash32 } from '../lib/rng.ts';
import { estimateConcordance } from '../math/bootstrap.ts';
import { distinctCodes } from '../math/order.ts';
import { rankRows } from '../math/ranking.ts';
import type { Figure, Value } from '../types.ts';
import { drawCache } from './auroc-figures.ts';
import { inPopulation, landmarkRows } from './landmarks.ts';
import { keysOf } from './readers.ts';
import { fitBothClasses, scorer } from './search.ts';
import type { FitProblem, ForecastInput, LandmarkSpec, Population } from './types.ts';

export interface AdversarialInput {
  readonly input: ForecastInput;
  readonly spec: LandmarkSpec;
  readonly population: Population;
  /** Tap whose states are looked at; the first position of the landmark. */
  readonly tap: string;
}

/** One `split_auroc` per outer fold of the first folding: groups in two halves, each scored by a reader of the other. */
export async function splitAurocs({ input, spec, population, tap }: AdversarialInput): Promise<readonly Figure[]> {
  const landmark = landmarkRows({ ...input, spec });
  const [{ position, exists }] = landmark.positions;
  const belongs = landmark.rows.map((row, i) =>
    exists[i] === 1 && inPopulation(input.episodes[row.index], population) ? 1 : 0,
  );
  const { keys, matrixRow } = keysOf(landmark, position, Uint8Array.from(belongs));
  const rows = landmark.rows.filter((_, i) => matrixRow[i] >= 0);
  const [folding] = input.foldings;
  const folds = rows.map(({ index }) => folding.fold[index]);
  const groups = rows.map(({ index }) => input.groups[index]);
  const half = groups.map((group) => hash32('adversarial', input.seed, group) % 2);
  const x = await input.read(tap, keys);
  const [{ name, Cs }] = input.estimators;
  const problems = Array.from({ length: folding.folds }, (_, fold) =>
    [0, 1].map((side): FitProblem => {
      const learn = Int32Array.from(rows.keys()).filter((i) => half[i] !== side);
      return {
        rows: learn,
        labels: Uint8Array.from(learn, (i) => (folds[i] === fold ? 1 : 0)),
        weights: null,
        estimator: name,
        C: Cs[Math.floor(Cs.length / 2)],
      };
    }),
  ).flat();
  const readers = await fitBothClasses(x, problems, input.fit);
  const { codes, count } = distinctCodes(groups);
  const draws = drawCache(input.bootstrapDraws, input.seed)(count);
  return Array.from({ length: folding.folds }, (_, fold): Figure => {
    const pair = readers.slice(2 * fold, 2 * fold + 2);
    const failed = pair.find((reader) => 'undefinedBecause' in reader);
    let value: Value;
    if (failed && 'undefinedBecause' in failed) value = failed;
    else {
      const score = pair.map((reader) => scorer(reader as Exclude<typeof reader, { undefinedBecause: string }>, x));
      const labels = folds.map((f) => (f === fold ? 1 : 0));
      const scores = rows.map((_row, i) => score[half[i]](i));
      value = estimateConcordance(
        { ranked: rankRows({ scores, labels, strata: half }), labels, clusters: codes },
        draws,
      );
    }
    return {
      stage: 'forecast',
      target: input.target.name,
      condition: input.condition,
      population,
      landmark: landmark.landmark,
      position,
      reader: 'control:split',
      tap,
      metric: 'split_auroc',
      value,
      model: input.model,
      at: { fold },
    };
  });
}
