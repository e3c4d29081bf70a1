/**
 * States of matched worlds before their first differing token (EVALUATION.md 11): both have read the same tokens there, so
 * a replay that gives them different states is wrong, whatever it says about anything else.
 */
import { DataError } from '../errors.ts';
import { comparedStates, type StatePair } from '../forecast/leaks.ts';
import { type PlanFile, readPlanShard } from '../store/plan-shards.ts';
import type { Features } from '../store/features.ts';
import type { FeatureKey, SequencePlan } from '../types.ts';
import type { OpenedRun } from './open-run.ts';

/** Places compared at most; spread evenly over all there are. */
const MOST_PLACES = 2000;

/** Token ids kept while their twins are looked for: 160 MB. */
const MOST_TOKENS = 4e7;

/**
 * Difference, relative to the state's norm, up to which two states count as rounded differently: the same row in a chunk of
 * another length, and on disk half a unit in the last place of the format. A wrong prefix differs by tenths.
 */
const ROUNDING: Readonly<Record<'float32' | 'float16' | 'bfloat16', number>> = {
  float32: 1e-3,
  float16: 1e-2,
  bfloat16: 3e-2,
};

export interface SharedPlace {
  readonly a: FeatureKey;
  readonly b: FeatureKey;
}

export interface StateCheck {
  /** States compared: places × taps. */
  readonly compared: number;
  /** Of those, bit for bit equal. */
  readonly identical: number;
  /** Largest difference, ‖x − y‖ / ‖x‖. */
  readonly largest: number;
}

/** Positions of one turn that two sequences captured on tokens both have read. */
export function sharedPlaces(a: SequencePlan, b: SequencePlan): readonly SharedPlace[] {
  let same = 0;
  while (same < a.ids.length && same < b.ids.length && a.ids[same] === b.ids[same]) same += 1;
  const inA = new Map(a.captures.map((capture) => [`${capture.turn} ${capture.position}`, capture]));
  return b.captures.flatMap((capture): SharedPlace[] => {
    const twin = inA.get(`${capture.turn} ${capture.position}`);
    if (!twin || twin.start !== capture.start || twin.end !== capture.end || capture.end > same) return [];
    const { turn, position } = capture;
    return [
      {
        a: { episode: a.episode, turn, position },
        b: { episode: b.episode, turn, position },
      },
    ];
  });
}

/** Every place that an x− episode shares with its matched worlds, of the same model, condition and sampling seed. */
async function placesOf(run: OpenedRun, plan: PlanFile): Promise<readonly SharedPlace[]> {
  const metas = new Map(run.metas.map((meta) => [meta.key, meta]));
  const leaders = new Map<string, SequencePlan>();
  const waiting = new Map<string, SequencePlan[]>();
  const places: SharedPlace[] = [];
  let held = 0;
  for (const shard of plan.shards) {
    for (const sequence of await readPlanShard(run.folder.path, shard)) {
      const meta = metas.get(sequence.episode);
      if (!meta || meta.pairId === null || meta.world === 'none') continue;
      // Twins stand near each other, so those that wait longest for theirs can go when memory runs out.
      held += sequence.ids.length;
      if (held > MOST_TOKENS) {
        leaders.clear();
        waiting.clear();
        held = 0;
      }
      const key = [meta.model, meta.pairId, meta.condition, meta.seed ?? '', sequence.turn].join('\u0000');
      const leader = leaders.get(key);
      if (leader) places.push(...sharedPlaces(leader, sequence));
      else if (meta.world === 'x-') {
        leaders.set(key, sequence);
        for (const other of waiting.get(key) ?? []) places.push(...sharedPlaces(sequence, other));
      } else waiting.set(key, [...(waiting.get(key) ?? []), sequence]);
    }
  }
  return places;
}

function spread<T>(list: readonly T[], most: number): readonly T[] {
  if (list.length <= most) return list;
  return Array.from({ length: most }, (_, i) => list[Math.floor((i * list.length) / most)]);
}

/**
 * @returns null where no pair shares a captured place (no worlds, or worlds that differ from their first token)
 * @throws DataError (65) naming two episodes, turn, position and tap whose states differ by more than rounding
 */
export async function checkStates(run: OpenedRun, plan: PlanFile, features: Features): Promise<StateCheck | null> {
  const stored = (await placesOf(run, plan)).filter(({ a, b }) => features.has(a) && features.has(b));
  const places = spread(stored, MOST_PLACES);
  if (places.length === 0) return null;
  let [identical, largest] = [0, 0];
  const tolerance = ROUNDING[run.config.capture.dtype];
  for (const tap of features.taps) {
    const [x, y] = [
      await features.read(
        tap,
        places.map(({ a }) => a),
      ),
      await features.read(
        tap,
        places.map(({ b }) => b),
      ),
    ];
    const row = (matrix: typeof x, i: number): Float32Array =>
      matrix.data.subarray(i * matrix.columns, (i + 1) * matrix.columns);
    const pairs = places.map(({ a, b }, i): StatePair => ({ a: a.episode, b: b.episode, x: row(x, i), y: row(y, i) }));
    const made = comparedStates(pairs, tolerance);
    identical += made.identical;
    largest = Math.max(largest, made.largest);
    if (made.worst === null) continue;
    const { a, b } = places[made.worst];
    throw new DataError(
      `activations: expected the same state at ${tap}, ${a.position} of turn ${a.turn}, in ${a.episode} and ${b.episode}, which have read the same tokens there, got a difference of ${(100 * made.largest).toFixed(1)} % of its norm. The replay is wrong: remove the folder activations of this run and extract again; if it stays, use a model without quantised activations`,
    );
  }
  return { compared: places.length * features.taps.length, identical, largest };
}
