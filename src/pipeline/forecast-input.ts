/** What a forecast is handed besides the states: tokens read, texts, scores made elsewhere, landmarks. */
import { readFile } from 'node:fs/promises';
import type { Config } from '../config/schema.ts';
import { UserError } from '../errors.ts';
import { textAt } from '../forecast/episode-text.ts';
import { landmarkName } from '../forecast/landmarks.ts';
import type { ExternalScores, LandmarkSpec, ReadTexts } from '../forecast/types.ts';
import { isJsonObject, parseJson } from '../lib/json.ts';
import { type PlanFile, readPlanShard } from '../store/plan-shards.ts';
import type { Episode, FeatureKey } from '../types.ts';
import type { OpenedRun } from './open-run.ts';

/** One string per place, for maps. */
export const keyText = (key: FeatureKey): string => `${key.episode}\u0000${key.turn}\u0000${key.position}`;

/** Where the tokens of a captured position lie in its sequence. */
export interface TokenPlace {
  /** Tokens the model had read there, those cut out of the middle included: the token_count baseline. */
  readonly count: number;
  /** Index of its last token in the sequence as it was replayed. */
  readonly last: number;
}

/** Places of every captured position of a run, by `keyText`. */
export async function tokenPlaces(run: OpenedRun, plan: PlanFile): Promise<ReadonlyMap<string, TokenPlace>> {
  const places = new Map<string, TokenPlace>();
  for (const shard of plan.shards) {
    for (const sequence of await readPlanShard(run.folder.path, shard)) {
      for (const { turn, position, end } of sequence.captures) {
        const count = end + (sequence.cut?.count ?? 0);
        places.set(keyText({ episode: sequence.episode, turn, position }), { count, last: end - 1 });
      }
    }
  }
  return places;
}

/** Score columns made elsewhere, joined by (episode, landmark): JSON lines with `episode`, `landmark` and the column. */
export async function readExternal(run: OpenedRun): Promise<readonly ExternalScores[]> {
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
    checkJoin(run, file, values);
    out.push({ name, value: (key, landmark) => values.get(`${key.episode}\u0000${landmark}`) ?? null });
  }
  return out;
}

/** A file none of whose rows meets an episode and a landmark of the run would be a baseline without a number. */
function checkJoin(run: OpenedRun, file: string, values: ReadonlyMap<string, number>): void {
  const landmarks = landmarkSpecs(run.config.landmarks).map(landmarkName);
  const known = new Set(run.metas.flatMap(({ key }) => landmarks.map((landmark) => `${key}\u0000${landmark}`)));
  const [first] = values.keys();
  if ([...values.keys()].some((key) => known.has(key))) return;
  const got =
    first === undefined ? 'no row' : `${values.size} others, such as "${first.split('\u0000').join('" at "')}"`;
  throw new UserError(
    `${file}: expected rows of this run's episodes and landmarks, such as "${run.metas[0]?.key}" at "${landmarks[0]}", got ${got}. Name them as scores.parquet does`,
  );
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

/** Every episode in memory: texts are read for every landmark and scope. */
export async function readWhole(run: OpenedRun): Promise<ReadonlyMap<string, Episode>> {
  const episodes = new Map<string, Episode>();
  for await (const episode of run.episodes()) episodes.set(episode.key, episode);
  return episodes;
}

/** Text of an episode up to a position. */
export function textReader(episodes: ReadonlyMap<string, Episode>): ReadTexts {
  return (keys, scope) =>
    Promise.resolve(
      keys.map((key) => {
        const episode = episodes.get(key.episode);
        if (!episode) throw new Error(`no episode ${key.episode} for its text`);
        return textAt(episode, key.turn, key.position, scope);
      }),
    );
}
