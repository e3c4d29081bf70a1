/**
 * Does the evaluation say no when it should? Each study knows the truth of what it generates. The tests run them short;
 * `npm run simulate` runs them at full length.
 */
import { evaluate } from '../../src/forecast/evaluate.ts';
import { landmarkRows } from '../../src/forecast/landmarks.ts';
import { type ClaimedRow, type Leak, positionLeaks, splitLeaks, textLeaks } from '../../src/forecast/leaks.ts';
import { permutationNull } from '../../src/forecast/permutation-null.ts';
import { targetNamed } from '../../src/forecast/targets.ts';
import { normal, seededRng } from '../../src/lib/rng.ts';
import { drawClusters, estimateConcordance } from '../../src/math/bootstrap.ts';
import { rankRows, weightedConcordance } from '../../src/math/ranking.ts';
import type { EpisodeMeta, Figure, Value } from '../../src/types.ts';
import { foldingOf, generate, inputOf, phi } from './generate.ts';

function estimateOf(value: Value): number {
  if ('undefinedBecause' in value) throw new Error(value.undefinedBecause);
  return value.estimate;
}

/** p-values of the max-statistic null on data without any signal: three taps, 40 scenarios. */
export async function nullPValues(runs: number, permutations: number, seed: number): Promise<readonly number[]> {
  const p: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const taps = ['resid_post.0', 'resid_post.1', 'resid_post.2'];
    const input = inputOf({ seed: seed * 100_003 + run, scenarios: 40, width: 6, taps });
    const [spec] = input.landmarks;
    const figures = await permutationNull({ input, spec, population: 'x-', permutations, landmarksClaimed: 1 });
    p.push(estimateOf(figures.find((f) => f.metric === 'p_value')!.value));
  }
  return p;
}

/**
 * p-value of the Kolmogorov–Smirnov test that `values` are uniform on the grid 1/(B+1) … 1: the asymptotic distribution
 * of √n·D, with the grid's own step taken off so that a discrete but valid p-value is not held against it.
 */
export function uniformKsP(values: readonly number[], permutations: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const n = sorted.length;
  const step = 1 / (permutations + 1);
  const distance = sorted.reduce((d, value, i) => Math.max(d, (i + 1) / n - value, value - step - i / n), 0);
  const t = (Math.sqrt(n) + 0.12 + 0.11 / Math.sqrt(n)) * distance;
  if (t < 0.2) return 1;
  let sum = 0;
  for (let k = 1; k <= 100; k += 1) sum += 2 * (-1) ** (k - 1) * Math.exp(-2 * k * k * t * t);
  return Math.min(1, Math.max(0, sum));
}

/**
 * Share of clustered data sets whose 95 % interval holds the true within-fold AUROC. Rows of a group share an offset, so
 * a pair inside a group is won with another probability than one between groups; the truth weighs both by their pairs.
 */
export function coverage(dataSets: number, draws: number, seed: number): number {
  const [groups, perGroup, shift, spread] = [50, 4, 1.2, 0.8];
  const between = phi(shift / Math.sqrt(2 * (1 + spread ** 2)));
  const inside = phi(shift / Math.SQRT2);
  const intervals: { readonly lower: number; readonly upper: number }[] = [];
  let insidePairs = 0;
  let allPairs = 0;
  for (let set = 0; set < dataSets; set += 1) {
    const rng = seededRng(seed, 'coverage', set);
    const clusters: number[] = [];
    const labels: number[] = [];
    const scores: number[] = [];
    // Folds are dealt by a hash, as in a run, so their sizes vary between data sets as they do between draws.
    const fold = Array.from({ length: groups }, () => rng.below(5));
    for (let g = 0; g < groups; g += 1) {
      const offset = spread * normal(rng);
      for (let k = 0; k < perGroup; k += 1) {
        const label = rng.next() < 0.4 ? 1 : 0;
        clusters.push(g);
        labels.push(label);
        scores.push(label * shift + offset + normal(rng));
      }
    }
    const ranked = rankRows({ scores, labels, strata: clusters.map((g) => fold[g]) });
    allPairs += weightedConcordance(ranked).pairs;
    insidePairs += weightedConcordance(rankRows({ scores, labels, strata: clusters })).pairs;
    const value = estimateConcordance({ ranked, labels, clusters }, drawClusters(groups, draws, rng));
    if ('undefinedBecause' in value) throw new Error(value.undefinedBecause);
    intervals.push({ lower: value.lower!, upper: value.upper! });
  }
  const truth = between + (insidePairs / allPairs) * (inside - between);
  return intervals.filter(({ lower, upper }) => lower <= truth && truth <= upper).length / dataSets;
}

export interface PlantedRun {
  readonly estimate: number;
  readonly inside: boolean;
  /** Share of outer folds that chose the tap with the signal. */
  readonly rightTap: number;
}

/** A direction of known strength at one of three taps: the whole nested search has to find it. */
export async function plantedRuns(runs: number, seed: number): Promise<readonly PlantedRun[]> {
  const results: PlantedRun[] = [];
  for (let run = 0; run < runs; run += 1) {
    const shift = 1.5;
    const taps = ['resid_post.0', 'resid_post.1', 'resid_post.2'];
    const world = { seed: seed * 1009 + run, scenarios: 300, width: 6, taps, planted: 'resid_post.1', shift };
    const input = inputOf(world);
    const result = await evaluate({
      ...input,
      foldings: input.foldings.slice(0, 1),
      bootstrapDraws: 1000,
      trainOn: ['x-'],
    });
    const figure = result.figures.find((f) => f.metric === 'auroc_within_fold' && f.tap === 'selected')!;
    const { value } = figure;
    if ('undefinedBecause' in value) throw new Error(value.undefinedBecause);
    // 300 rows do not pin the direction down quite: the fitted one keeps this share of the planted shift.
    const kept = Math.sqrt(shift ** 2 / (shift ** 2 + ((world.width - 1) * 4) / (0.8 * world.scenarios)));
    const truth = phi((shift * kept) / Math.SQRT2);
    results.push({
      estimate: value.estimate,
      inside: value.lower! <= truth && truth <= value.upper!,
      rightTap: result.choices.filter((c) => c.tap === 'resid_post.1').length / result.choices.length,
    });
  }
  return results;
}

/** What a run would check before it trains: split, positions, text. */
function allLeaks(
  episodes: readonly EpisodeMeta[],
  fold: Int32Array,
  rows: readonly ClaimedRow[],
  texts: readonly string[],
): readonly Leak[] {
  const labels = episodes.map((e) => (e.unsafe === null ? 0 : 1));
  return [
    ...splitLeaks(episodes, { seed: 0, folds: 5, fold }),
    ...positionLeaks(episodes, targetNamed('first_unsafe_event'), rows),
    ...textLeaks(
      texts,
      labels,
      episodes.map(({ key }) => key),
    ),
  ];
}

export interface LeakStudy {
  readonly planted: number;
  readonly caught: number;
  readonly names: readonly string[];
  /** Share of clean seeds with any finding. */
  readonly cleanFlagged: number;
}

/** Plants each leak once per seed in data that is clean otherwise, and looks at the clean data too. */
export function leakStudy(seeds: number, seed: number): LeakStudy {
  const names = new Set<string>();
  let planted = 0;
  let caught = 0;
  let flagged = 0;
  for (let s = 0; s < seeds; s += 1) {
    const rng = seededRng(seed, 'leaks', s);
    const { episodes, groups } = generate({ seed: seed * 7919 + s, scenarios: 60, twins: true });
    const { fold } = foldingOf(groups, s);
    const words = Array.from({ length: 300 }, (_, i) => `word${i}`);
    const texts = episodes.map(() => Array.from({ length: 40 }, () => words[rng.below(words.length)]).join(' '));
    const spec = { anchor: 'reveal', offset: 1, positions: ['pre_action'] } as const;
    const target = targetNamed('first_unsafe_event');
    const landmark = landmarkRows({ episodes, target, horizon: null, spec, seed: s });
    const rows = landmark.rows
      .filter((_, i) => landmark.positions[0].atRisk[i] === 1)
      .map((row): ClaimedRow => ({ index: row.index, turn: row.turn, position: 'pre_action' }));
    if (allLeaks(episodes, fold, rows, texts).length > 0) flagged += 1;

    const elsewhere = (i: number): Int32Array => {
      const moved = Int32Array.from(fold);
      moved[i] = (fold[i] + 1) % 5;
      return moved;
    };
    const scenario = rng.below(60);
    const member = episodes.findIndex((e) => e.scenarioId === `s${scenario}` && e.world === 'x+');
    const alone = episodes.map((e): EpisodeMeta => ({
      ...e,
      scenarioId: e.key,
      pairId: e.world === 'nuisance' ? null : e.pairId,
    }));
    const duplicates = episodes.map((e, i): EpisodeMeta =>
      fold[i] === fold[0] || i % 30 !== 0 ? e : { ...e, duplicateKey: 'same task' },
    );
    duplicates[0] = { ...episodes[0], duplicateKey: 'same task' };
    const unsafeRow = rows.findIndex(({ index }) => episodes[index].unsafe !== null);
    const late = rows.map((row, i) =>
      i === unsafeRow ? { ...row, turn: episodes[row.index].unsafe!, position: 'action_end' } : row,
    );
    const twins = episodes.map((e, i): EpisodeMeta =>
      i === member ? { ...e, condition: 'obfuscate', pairId: null } : e,
    );
    const tell = episodes.map((e, i) => (e.unsafe === null ? texts[i] : `${texts[i]} forbidden`));
    for (const [name, leaks] of [
      ['pair_across_folds', allLeaks(alone, elsewhere(member), rows, texts)],
      ['duplicate_across_folds', allLeaks(duplicates, fold, rows, texts)],
      ['twin_across_folds', allLeaks(twins, elsewhere(member), rows, texts)],
      ['position_after_act', allLeaks(episodes, fold, late, texts)],
      ['label_in_text', allLeaks(episodes, fold, rows, tell)],
    ] as const) {
      planted += 1;
      // By name and nothing else: a check that fires on everything catches nothing.
      if (leaks.length === 1 && leaks[0].name === name) {
        caught += 1;
        names.add(name);
      }
    }
  }
  return { planted, caught, names: [...names].sort(), cleanFlagged: flagged / seeds };
}

/** A state that decodes the world and nothing about the act: AUROC over all worlds and within x−. */
export async function situationOnly(seed: number): Promise<{ readonly pooled: Value; readonly within: Value }> {
  const input = inputOf({ seed, scenarios: 200, twins: true, worldShift: 3 });
  const result = await evaluate({ ...input, trainOn: ['all'] });
  const of = (population: Figure['population']): Value =>
    result.figures.find((f) => f.metric === 'auroc_within_fold' && f.tap === 'selected' && f.population === population)!
      .value;
  return { pooled: of('all'), within: of('x-') };
}
