import { assignFolds } from '../dataset/split.ts';
import { checkFigure, duplicateCheck, structureChecks, textChecks } from '../forecast/checks.ts';
import { evaluate } from '../forecast/evaluate.ts';
import { targetNamed } from '../forecast/targets.ts';
import type { FitReaders, Folding, ForecastInput, ForecastResult } from '../forecast/types.ts';
import type { Features } from '../store/features.ts';
import type { PlanFile } from '../store/plan-shards.ts';
import type { Episode, EpisodeMeta, Figure, Gemm } from '../types.ts';
import type { PipelineContext } from './context.ts';
import { acrossFigures, deepFigures } from './forecast-depth.ts';
import { keyText, landmarkSpecs, readExternal, readWhole, textReader, tokenPlaces } from './forecast-input.ts';
import type { OpenedRun } from './open-run.ts';
import { checkStates, type StateCheck } from './state-check.ts';

/** The forecast of one model under one condition. */
export interface ForecastPart {
  readonly model: string;
  readonly condition: string;
  readonly target: string;
  readonly episodes: readonly EpisodeMeta[];
  readonly result: ForecastResult;
}

/** Conditions to report: each on its own, all pooled, or both; one condition is never shown twice. */
export function conditionsOf(run: OpenedRun, metas: readonly EpisodeMeta[]): readonly (string | null)[] {
  const names = [...new Set(metas.map((meta) => meta.condition))].sort();
  if (names.length === 1) return [names[0]];
  const { conditions } = run.config.forecast;
  return conditions === 'pooled' ? [null] : conditions === 'each' ? names : [...names, null];
}

/** Which episodes one forecast is about. */
interface Part {
  /** Indices into the run's episodes. */
  readonly indices: readonly number[];
  readonly model: string;
  readonly condition: string;
  readonly target: string;
}

/** Everything EVALUATION.md asks for, per model × condition × target. */
export async function forecastStage(
  run: OpenedRun,
  plan: PlanFile,
  features: Features,
  fit: FitReaders,
  gemm: Gemm,
  context: PipelineContext,
): Promise<{ readonly parts: readonly ForecastPart[]; readonly figures: readonly Figure[] }> {
  const { config } = run;
  const { targets, depth, permutations } = config.forecast;
  const states = await checkStates(run, plan, features);
  const { inputOf, tokenOf, whole } = await openInputs(run, plan, features, fit, context);
  const parts: ForecastPart[] = [];
  const figures: Figure[] = [];
  const full = depth === 'full';
  const models = [...new Set(run.metas.map((meta) => meta.model))].sort();
  context.progress.start('train and forecast', 0, 'searches');
  for (const model of models) {
    const ofModel = run.metas.flatMap((meta, index) => (meta.model === model ? [index] : []));
    const metas = ofModel.map((index) => run.metas[index]);
    const together = { indices: ofModel, model, condition: 'all' };
    for (const condition of conditionsOf(run, metas)) {
      const indices = ofModel.filter((index) => condition === null || run.metas[index].condition === condition);
      for (const target of targets) {
        context.signal.throwIfAborted();
        const input = inputOf({ indices, model, condition: condition ?? 'all', target });
        // Rows after an act or groups on both sides end the run before anything is fitted.
        figures.push(...structureChecks(input, tokenOf), ...stateFigures(input, states));
        figures.push(duplicateCheck(input, (key) => taskText(whole.get(key))));
        const result = await evaluate(input);
        parts.push({ model, condition: input.condition, target, episodes: input.episodes, result });
        figures.push(...result.figures, ...(await textChecks(input)));
        if (full) figures.push(...(await deepFigures(input, gemm, permutations)));
      }
    }
    for (const target of full ? targets : []) {
      figures.push(...(await acrossFigures(inputOf({ ...together, target }), 'condition')));
    }
  }
  if (full && models.length > 1) {
    const indices = [...run.metas.keys()];
    for (const target of targets) {
      figures.push(...(await acrossFigures(inputOf({ indices, model: 'all', condition: 'all', target }), 'model')));
    }
  }
  context.progress.end();
  return { parts, figures };
}

/** Reads once what every part is handed. */
async function openInputs(
  run: OpenedRun,
  plan: PlanFile,
  features: Features,
  fit: FitReaders,
  context: PipelineContext,
): Promise<{
  readonly inputOf: (part: Part) => ForecastInput;
  readonly tokenOf: Parameters<typeof structureChecks>[1];
  readonly whole: ReadonlyMap<string, Episode>;
}> {
  const { train, forecast, landmarks, seed } = run.config;
  const whole = await readWhole(run);
  const places = await tokenPlaces(run, plan);
  const shared = {
    horizon: forecast.horizon,
    landmarks: landmarkSpecs(landmarks),
    innerFolds: train.innerFolds,
    taps: run.searchTaps,
    calibration: run.config.train.calibration,
    layer0: run.taps.includes('embed') ? 'embed' : run.taps.includes('resid_post.0') ? 'resid_post.0' : null,
    estimators: train.estimators.map((name) => ({
      name,
      Cs: name === 'logistic' || name === 'ridge' ? (typeof train.C === 'number' ? [train.C] : train.C) : [null],
    })),
    alphas: forecast.alphas,
    bootstrapDraws: forecast.bootstrap,
    seed,
    texts: textReader(whole),
    textScopes: forecast.textScopes,
    textAnalyzers: forecast.textAnalyzers,
    textCs: forecast.textC,
    external: await readExternal(run),
    randomDirections: forecast.randomDirections,
    fit,
  } satisfies Partial<ForecastInput>;
  const foldings = Array.from({ length: train.splitSeeds }, (_, index): Folding => {
    const own = seed + index;
    return { seed: own, folds: train.folds, fold: assignFolds(run.groupNames, run.groups, own, train.folds) };
  });
  // One step for each tap × position searched, and one for each text baseline; the count is only known as it goes.
  let searched = 0;
  const inputOf = ({ indices, model, condition, target }: Part): ForecastInput => ({
    ...shared,
    episodes: indices.map((index) => run.metas[index]),
    model,
    condition,
    target: targetNamed(target),
    groups: Int32Array.from(indices, (index) => run.groups[index]),
    foldings: foldings.map((folding) => ({
      ...folding,
      fold: Int32Array.from(indices, (index) => folding.fold[index]),
    })),
    read: (tap, keys) => features.read(tap, keys),
    available: (key) => features.has(key),
    scalars: [{ name: 'token_count', value: (key) => places.get(keyText(key))?.count ?? null }],
    progress: { ...context.progress, note: () => context.progress.advance((searched += 1)) },
  });
  return { inputOf, tokenOf: (key) => places.get(keyText(key))?.last ?? null, whole };
}

/** The check of the replay, repeated in every part so that its report shows it. */
function stateFigures(input: ForecastInput, states: StateCheck | null): readonly Figure[] {
  if (states === null) {
    const undefinedBecause = 'no matched worlds share a captured place before their first differing token';
    return [checkFigure(input, 'states_identical', { undefinedBecause })];
  }
  const { compared, identical, largest } = states;
  const rest = { lower: null, upper: null, n: compared, positives: null, clusters: null };
  return [
    checkFigure(input, 'states_identical', { estimate: identical / compared, ...rest }),
    checkFigure(input, 'states_difference', { estimate: largest, ...rest }),
  ];
}

/** What the user asked for, without the system prompt, which scenarios share. */
function taskText(episode: Episode | undefined): string | null {
  const asked = episode?.opening.filter(({ role }) => role !== 'system').map(({ content }) => content);
  return asked?.map((content) => (typeof content === 'string' ? content : '')).join('\n') ?? null;
}
