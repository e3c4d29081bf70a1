import { readFile } from 'node:fs/promises';
import type { Config } from '../config/schema.ts';
import { UserError } from '../errors.ts';
import { parseJson, isJsonObject } from '../lib/json.ts';
import { assignFolds } from '../dataset/split.ts';
import { textAt } from '../forecast/episode-text.ts';
import { evaluate } from '../forecast/evaluate.ts';
import { permutationNull } from '../forecast/permutation-null.ts';
import { splitLeaks } from '../forecast/leaks.ts';
import { targetNamed } from '../forecast/targets.ts';
import { leaveOneOut } from '../forecast/transfer.ts';
import type {
  ExternalScores,
  FitReaders,
  Folding,
  ForecastInput,
  ForecastResult,
  LandmarkSpec,
  ReadTexts,
} from '../forecast/types.ts';
import type { Features } from '../store/features.ts';
import { type PlanFile, readPlanShard } from '../store/plan-shards.ts';
import type { Episode, EpisodeMeta, FeatureKey, Figure, Gemm } from '../types.ts';
import type { PipelineContext } from './context.ts';
import type { OpenedRun } from './open-run.ts';

/** The forecast of one model under one condition. */
export interface ForecastPart {
  readonly model: string;
  readonly condition: string;
  readonly target: string;
  readonly episodes: readonly EpisodeMeta[];
  readonly result: ForecastResult;
}

const keyText = (key: FeatureKey): string => `${key.episode}\u0000${key.turn}\u0000${key.position}`;

/** Tokens the model had read at each captured position: the token_count baseline. */
async function tokenCounts(run: OpenedRun, plan: PlanFile): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const shard of plan.shards) {
    for (const sequence of await readPlanShard(run.folder.path, shard)) {
      for (const capture of sequence.captures) {
        counts.set(
          keyText({ episode: sequence.episode, turn: capture.turn, position: capture.position }),
          capture.end + (sequence.cut?.count ?? 0),
        );
      }
    }
  }
  return counts;
}

/** Score columns made elsewhere, joined by (episode, landmark): JSON lines with `episode`, `landmark` and the column. */
async function readExternal(run: OpenedRun): Promise<readonly ExternalScores[]> {
  const out: ExternalScores[] = [];
  for (const { name, file, column } of run.config.forecast.external) {
    const values = new Map<string, number>();
    const text = await readFile(file, 'utf8').catch((error: unknown) => {
      throw new UserError(
        `forecast.external: expected a readable file ${file}, got ${(error as NodeJS.ErrnoException).code}. Check the path`,
      );
    });
    for (const [index, line] of text.split('\n').entries()) {
      if (line.trim() === '') continue;
      const row = parseJson(line);
      const [episode, landmark, value] = isJsonObject(row)
        ? [row.get('episode'), row.get('landmark'), row.get(column)]
        : [];
      const number =
        value !== null && typeof value === 'object' && 'lexeme' in value ? Number(value.lexeme) : Number.NaN;
      if (typeof episode !== 'string' || typeof landmark !== 'string' || !Number.isFinite(number)) {
        throw new UserError(
          `${file}:${index + 1}: expected {"episode": …, "landmark": …, "${column}": number}, got ${line.slice(0, 60)}. Correct the line`,
        );
      }
      values.set(`${episode}\u0000${landmark}`, number);
    }
    out.push({ name, value: (key, landmark) => values.get(`${key.episode}\u0000${landmark}`) ?? null });
  }
  return out;
}

/** Entries of one anchor and offset are one landmark whose position is selected inside the folds. */
export function landmarkSpecs(landmarks: Config['landmarks']): LandmarkSpec[] {
  const specs = new Map<string, { anchor: LandmarkSpec['anchor']; offset: number; positions: string[] }>();
  for (const { anchor, offset, position } of landmarks) {
    const spec = specs.get(`${anchor} ${offset}`) ?? { anchor, offset, positions: [] };
    specs.set(`${anchor} ${offset}`, spec);
    for (const name of typeof position === 'string' ? [position] : position) {
      if (!spec.positions.includes(name)) spec.positions.push(name);
    }
  }
  return [...specs.values()];
}

/** Text of an episode up to a position. Episodes are held in memory: their text is read for every landmark and scope. */
async function textReader(run: OpenedRun): Promise<ReadTexts> {
  const episodes = new Map<string, Episode>();
  for await (const episode of run.episodes()) episodes.set(episode.key, episode);
  return (keys, scope) =>
    Promise.resolve(
      keys.map((key) => {
        const episode = episodes.get(key.episode);
        if (!episode) throw new Error(`no episode ${key.episode} for its text`);
        return textAt(episode, key.turn, key.position, scope);
      }),
    );
}

/** Conditions to report: each on its own, all pooled, or both; one condition is never shown twice. */
export function conditionsOf(run: OpenedRun, metas: readonly EpisodeMeta[]): readonly (string | null)[] {
  const names = [...new Set(metas.map((meta) => meta.condition))].sort();
  if (names.length === 1) return [names[0]];
  const { conditions } = run.config.forecast;
  return conditions === 'pooled' ? [null] : conditions === 'each' ? names : [...names, null];
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
  const texts = await textReader(run);
  const tokens = await tokenCounts(run, plan);
  const external = await readExternal(run);
  const landmarks = landmarkSpecs(config.landmarks);
  const layer0 = run.taps.includes('embed') ? 'embed' : run.taps.includes('resid_post.0') ? 'resid_post.0' : null;
  const Cs = typeof config.train.C === 'number' ? [config.train.C] : config.train.C;
  const foldings = Array.from({ length: config.train.splitSeeds }, (_, index): Folding => {
    const seed = config.seed + index;
    return { seed, folds: config.train.folds, fold: assignFolds(run.groupNames, run.groups, seed, config.train.folds) };
  });
  // One step for each tap × position searched, and one for each text baseline; the count is only known as it goes.
  let searched = 0;
  context.progress.start('train and forecast', 0, 'searches');
  const parts: ForecastPart[] = [];
  const figures: Figure[] = [];
  for (const model of [...new Set(run.metas.map((meta) => meta.model))].sort()) {
    const ofModel = run.metas.flatMap((meta, index) => (meta.model === model ? [index] : []));
    for (const condition of conditionsOf(
      run,
      ofModel.map((index) => run.metas[index]),
    )) {
      const indices = ofModel.filter((index) => condition === null || run.metas[index].condition === condition);
      const episodes = indices.map((index) => run.metas[index]);
      for (const name of config.forecast.targets) {
        context.signal.throwIfAborted();
        const input: ForecastInput = {
          episodes,
          model,
          condition: condition ?? 'all',
          target: targetNamed(name),
          horizon: config.forecast.horizon,
          landmarks,
          groups: Int32Array.from(indices, (index) => run.groups[index]),
          foldings: foldings.map((folding) => ({
            ...folding,
            fold: Int32Array.from(indices, (index) => folding.fold[index]),
          })),
          innerFolds: config.train.innerFolds,
          taps: run.taps,
          layer0,
          estimators: config.train.estimators.map((estimator) => ({
            name: estimator,
            Cs: estimator === 'logistic' || estimator === 'ridge' ? Cs : [null],
          })),
          alphas: config.forecast.alphas,
          bootstrapDraws: config.forecast.bootstrap,
          seed: config.seed,
          read: (tap, keys) => features.read(tap, keys),
          available: (key) => features.has(key),
          fit,
          texts,
          textScopes: config.forecast.textScopes,
          textAnalyzers: config.forecast.textAnalyzers,
          textCs: config.forecast.textC,
          scalars: [{ name: 'token_count', value: (key) => tokens.get(keyText(key)) ?? null }],
          external,
          randomDirections: config.forecast.randomDirections,
          progress: { ...context.progress, note: () => context.progress.advance((searched += 1)) },
        };
        const leaks = input.foldings.flatMap((folding) => splitLeaks(episodes, folding));
        if (leaks.length > 0) throw new Error(`the split leaks: ${leaks.map((leak) => leak.name).join(', ')}`);
        const result = await evaluate(input);
        parts.push({ model, condition: input.condition, target: name, episodes, result });
        figures.push(...result.figures);
        if (config.forecast.depth === 'full')
          figures.push(...(await deepFigures(input, gemm, config.forecast.permutations)));
      }
    }
  }
  context.progress.end();
  return { parts, figures };
}

/** The part of the contract that costs many refits: the null of the whole search and the leave-one-out splits. */
async function deepFigures(input: ForecastInput, gemm: Gemm, permutations: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  const population = input.episodes.some((meta) => meta.world !== 'none') ? 'x-' : 'all';
  for (const spec of input.landmarks) {
    figures.push(
      ...(await permutationNull({
        input,
        spec,
        population,
        permutations,
        landmarksClaimed: input.landmarks.length,
        gemm,
      })),
    );
  }
  for (const attribute of ['template', 'family', 'style'] as const) {
    const folding = leaveOneOut(input.episodes, input.groups, attribute, input.seed);
    if ('undefinedBecause' in folding) continue;
    const result = await evaluate({ ...input, foldings: [folding], split: `leave_one_${attribute}` });
    figures.push(...result.figures.filter((figure) => figure.metric.startsWith('auroc')));
  }
  return figures;
}
