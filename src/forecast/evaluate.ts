/**
 * The forecast of one model (EVALUATION.md 1–12): landmarks × training populations, the per-episode monitor over all of
 * them, and the probes to release. Rows of different landmarks never share a fit.
 */
import { UserError } from '../errors.ts';
import type { Exclusion, Figure, ScoreRow } from '../types.ts';
import { drawCache, type Opened } from './auroc-figures.ts';
import { conformalFigures, conformalThresholds } from './conformal-figures.ts';
import { evaluateLandmark, type LandmarkResult } from './evaluate-landmark.ts';
import { count } from './figures.ts';
import { hasWorlds, inPopulation, landmarkName, landmarkRows, type LandmarkRows } from './landmarks.ts';
import {
  developmentMaxima,
  developmentThresholds,
  HINDSIGHT,
  monitorFigures,
  type MonitorInput,
  monitorTraces,
} from './monitor.ts';
import { headlineReader } from './readers.ts';
import { releaseProbes, type ReleaseThresholds } from './release.ts';
import { checkFolding } from './sides.ts';
import type { Choice, Curve, ForecastInput, ForecastResult, Population, Release, Traces } from './types.ts';

/**
 * @throws UserError when folds do not fit the episodes or the groups
 * @throws Error when a handed function breaks its contract (wrong number of rows, non-finite score)
 */
export async function evaluate(input: ForecastInput): Promise<ForecastResult> {
  checkInput(input);
  const worlds = hasWorlds(input.episodes);
  const trainOn = trainingPopulations(input, worlds);
  const drawsFor = drawCache(input.bootstrapDraws, input.seed);
  const figures: Figure[] = [];
  const scores: ScoreRow[] = [];
  const exclusions: Exclusion[] = [];
  const choices: Choice[] = [];
  const curves: Curve[] = [];
  const traces: Traces[] = [];
  const releases: Release[] = [];

  const landmarks = input.landmarks.map((spec) => ({
    spec,
    rows: landmarkRows({ ...input, spec }),
  }));
  for (const { rows } of landmarks) {
    exclusions.push(...rows.exclusions);
    figures.push(...exclusionFigures(input, rows, worlds));
  }
  for (const population of trainOn) {
    const lead = population !== 'all' || !worlds;
    const results: LandmarkResult[] = [];
    const watched: LandmarkResult[] = [];
    for (const { spec, rows } of landmarks) {
      if (worlds && population === 'x-' && spec.anchor === 'first_critical') {
        figures.push(undefinedFirstCritical(input, spec.positions));
        continue;
      }
      const result = await evaluateLandmark({
        input: lead ? input : controlInput(input),
        landmark: rows,
        trainOn: population,
        populations: populationsOf(input, population, worlds),
        worlds,
        drawsFor,
      });
      figures.push(...result.figures);
      scores.push(...result.scores);
      choices.push(...result.choices);
      curves.push(...result.curves);
      results.push(result);
      if (!HINDSIGHT.has(spec.anchor)) watched.push(result);
    }
    if (!lead) continue;
    const monitors = watchAll(input, watched, population, worlds, drawsFor);
    figures.push(...monitors.figures);
    curves.push(...monitors.curves);
    traces.push(...monitors.traces);
    releases.push(...(await releaseProbes(input, results, monitors.releaseThresholds, figures)));
  }
  return { headline: headlineReader(input.estimators), figures, scores, exclusions, choices, curves, traces, releases };
}

function need(field: string, ok: boolean, expected: string, got: unknown): void {
  if (!ok) throw new UserError(`forecast.${field}: expected ${expected}, got ${JSON.stringify(got)}. Set it`);
}

function checkInput(input: ForecastInput): void {
  for (const folding of input.foldings) checkFolding(folding, input.groups, input.episodes);
  need('foldings', input.foldings.length > 0, 'at least one folding', input.foldings.length);
  need('innerFolds', input.innerFolds >= 2, 'at least 2 inner folds', input.innerFolds);
  need('taps', input.taps.length > 0, 'at least one tap', input.taps);
  need('estimators', input.estimators.length > 0, 'at least one estimator', input.estimators);
  for (const { name, Cs } of input.estimators) need(`estimators.${name}`, Cs.length > 0, 'at least one C', Cs);
  for (const spec of input.landmarks) {
    need(`landmarks.${landmarkName(spec)}`, spec.positions.length > 0, 'at least one position', spec.positions);
  }
  const names = input.landmarks.map(landmarkName);
  need('landmarks', new Set(names).size === names.length, 'each anchor and offset once', names);
  const models = new Set(input.episodes.map(({ model }) => model));
  need('episodes', models.size <= 1, 'episodes of one model', [...models]);
}

/**
 * Readers that learn from all worlds are a control: one folding and one text reader are enough to show what they read, and
 * a kernel of three times as many texts costs ten times as much.
 */
function controlInput(input: ForecastInput): ForecastInput {
  return {
    ...input,
    foldings: input.foldings.slice(0, 1),
    textScopes: input.textScopes.slice(0, 1),
    textAnalyzers: input.textAnalyzers.slice(0, 1),
    randomDirections: 0,
  };
}

/** Readers of all worlds say something of their own only where an x+ could be read. */
function trainingPopulations(input: ForecastInput, worlds: boolean): readonly ('x-' | 'all')[] {
  if (!worlds) return ['all'];
  const twins = input.episodes.some(({ world }) => world === 'x+');
  return input.trainOn ?? (twins ? ['x-', 'all'] : ['x-']);
}

/** x− readers also score the worlds they never learnt from; readers of all worlds are also looked at within x−. */
function populationsOf(input: ForecastInput, trainOn: Population, worlds: boolean): readonly Population[] {
  if (!worlds) return ['all'];
  const wanted: readonly Population[] = trainOn === 'all' ? ['all', 'x-'] : ['x-', 'nuisance', 'x+'];
  return wanted.filter((population) => input.episodes.some((episode) => inPopulation(episode, population)));
}

function figureBase(input: ForecastInput, landmark: string, population: Population, position: string) {
  return {
    stage: 'forecast',
    target: input.target.name,
    condition: input.condition,
    population,
    landmark,
    position,
    tap: null,
    model: input.model,
    ...(input.split ? { split: input.split } : {}),
    ...(input.horizon === null ? {} : { horizon: input.horizon }),
  } as const;
}

function exclusionFigures(input: ForecastInput, landmark: LandmarkRows, worlds: boolean): readonly Figure[] {
  const byKey = new Map(input.episodes.map((episode) => [episode.key, episode]));
  const populations: readonly Population[] = worlds ? ['x-', 'nuisance', 'x+'] : ['all'];
  return populations.flatMap((population) => {
    const counts = new Map<string, Set<string>>();
    for (const { reason, episode } of landmark.exclusions) {
      if (episode === null || !inPopulation(byKey.get(episode)!, population)) continue;
      counts.set(reason, (counts.get(reason) ?? new Set()).add(episode));
    }
    return [...counts].map(([reason, episodes]): Figure => ({
      ...figureBase(input, landmark.landmark, population, 'any'),
      reader: 'baseline:majority',
      metric: 'excluded',
      value: count(episodes.size),
      at: { reason },
    }));
  });
}

function undefinedFirstCritical(input: ForecastInput, positions: readonly string[]): Figure {
  return {
    ...figureBase(input, 'first_critical', 'x-', positions.length > 1 ? 'selected' : positions[0]),
    reader: headlineReader(input.estimators),
    tap: 'selected',
    metric: 'auroc_within_fold',
    value: {
      undefinedBecause: 'in x− the critical action is never allowed, so first_critical has one class (use reveal+k)',
    },
  };
}

interface Watch {
  readonly figures: readonly Figure[];
  readonly curves: readonly Curve[];
  readonly traces: readonly Traces[];
  /** Thresholds of the headline readers on the side of the released probe, per alpha. */
  readonly releaseThresholds: ReleaseThresholds;
}

/** One monitor per reader name that watches at positions of its own (a selected position is one of them already). */
function watchAll(
  input: ForecastInput,
  results: readonly LandmarkResult[],
  trainedOn: Population,
  worlds: boolean,
  drawsFor: Opened['drawsFor'],
): Watch {
  const figures: Figure[] = [];
  const curves: Curve[] = [];
  const traces: Traces[] = [];
  let releaseThresholds: Watch['releaseThresholds'] = [];
  if (input.target.kind === 'outcome') return { figures, curves, traces, releaseThresholds };
  const names = new Set(
    results
      .flatMap(({ monitors }) => monitors.map(({ reader }) => reader.name))
      .filter((n) => !n.startsWith('baseline:')),
  );
  for (const name of names) {
    const parts = results.flatMap(({ data, monitors }) =>
      monitors
        .filter(({ reader }) => reader.name === name && reader.position !== 'selected')
        .map(({ reader, calibrated }) => ({ data, position: reader.position, calibrated })),
    );
    const monitor: MonitorInput = { ...input, folding: input.foldings[0], reader: name, trainedOn, parts };
    const maxima = developmentMaxima(monitor);
    const thresholds = developmentThresholds(monitor, maxima);
    const watched = monitorTraces(monitor, thresholds);
    const { landmark: _l, population: _p, position: _q, ...base } = figureBase(input, 'any', 'all', 'any');
    const made = monitorFigures(monitor, watched, populationsOf(input, trainedOn, worlds), base, drawsFor);
    figures.push(...made.figures);
    curves.push(...made.curves);
    traces.push(watched);
    if (name !== headlineReader(input.estimators)) continue;
    figures.push(...conformalFigures(monitor, maxima, watched, base, drawsFor));
    const conformal = conformalThresholds(input.alphas, maxima.at(-1) ?? new Float64Array(0));
    releaseThresholds = (thresholds.at(-1) ?? []).map((threshold, k) => ({ threshold, conformal: conformal[k] }));
  }
  return { figures, curves, traces, releaseThresholds };
}
