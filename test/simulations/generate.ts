/** Episodes with generated activations whose truth is known. Cheap: no model, no text unless asked for. */
import type { ForecastInput, Folding } from '../../src/forecast/types.ts';
import { targetNamed } from '../../src/forecast/targets.ts';
import { hash32, normal, seededRng } from '../../src/lib/rng.ts';
import type { EpisodeMeta, FeatureKey, FeatureMatrix } from '../../src/types.ts';
import { fitReaders } from '../forecast/fitters.ts';
import { meta } from '../forecast/episodes.ts';

export interface World {
  readonly seed: number;
  readonly scenarios: number;
  /** Episodes of each scenario's x− (seeds). */
  readonly perScenario?: number;
  readonly width?: number;
  readonly taps?: readonly string[];
  /** Shift between the classes along one direction, in units of the noise: AUROC = Φ(shift / √2) at the planted tap. */
  readonly shift?: number;
  /** Tap that carries the shift; the others are noise. */
  readonly planted?: string;
  /** Shift between x− and x+ along another direction, at every tap. */
  readonly worldShift?: number;
  /** Makes x+ and nuisance twins. */
  readonly twins?: boolean;
  /** Spread of a scenario's own offset, shared by its episodes. */
  readonly groupSpread?: number;
  readonly templates?: number;
  readonly baseRate?: number;
}

export interface Generated {
  readonly episodes: readonly EpisodeMeta[];
  readonly groups: Int32Array;
  readonly read: ForecastInput['read'];
}

export function generate(world: World): Generated {
  const { seed, scenarios, perScenario = 1, templates = 4, baseRate = 0.5 } = world;
  const episodes: EpisodeMeta[] = [];
  const groups: number[] = [];
  for (let s = 0; s < scenarios; s += 1) {
    for (let k = 0; k < perScenario; k += 1) {
      const unsafe = seededRng(seed, 'outcome', s, k).next() < baseRate;
      const worlds = world.twins ? (['x-', 'x+', 'nuisance'] as const) : (['x-'] as const);
      for (const w of worlds) {
        groups.push(s);
        episodes.push(
          meta(`s${s}k${k}${w}`, {
            scenarioId: `s${s}`,
            pairId: `p${s}`,
            seed: String(k),
            template: `t${s % templates}`,
            family: `f${s % 2}`,
            world: w,
            reveal: 1,
            unsafe: unsafe && w !== 'x+' ? 3 + (s % 2) : null,
            success: !unsafe,
          }),
        );
      }
    }
  }
  return { episodes, groups: Int32Array.from(groups), read: (tap, keys) => Promise.resolve(read(world, tap, keys)) };
}

function read(world: World, tap: string, keys: readonly FeatureKey[]): FeatureMatrix {
  const { seed, width = 8, shift = 0, worldShift = 0, groupSpread = 0 } = world;
  const planted = world.planted ?? world.taps?.[0] ?? tap;
  const data = new Float32Array(keys.length * width);
  keys.forEach(({ episode, turn, position }, i) => {
    const [, s, k, w] = /^s(\d+)k(\d+)(.+)$/.exec(episode)!;
    const unsafe = seededRng(seed, 'outcome', Number(s), Number(k)).next() < (world.baseRate ?? 0.5);
    // Twins share their noise: they differ in the fact alone.
    const noise = seededRng(seed, 'noise', tap, s, k, turn, position, w === 'nuisance' ? 'nuisance' : '');
    const own = seededRng(seed, 'scenario', tap, s);
    for (let j = 0; j < width; j += 1) data[i * width + j] = normal(noise) + groupSpread * normal(own);
    if (tap === planted && w !== 'x+') data[i * width] += unsafe ? shift / 2 : -shift / 2;
    if (w === 'x+') data[i * width + 1] -= worldShift;
  });
  return { data, rows: keys.length, columns: width };
}

/** Folds dealt by a seeded hash of the group. */
export function foldingOf(groups: Int32Array, seed: number, folds = 5): Folding {
  return { seed, folds, fold: Int32Array.from(groups, (group) => hash32('fold', seed, group) % folds) };
}

/** A forecast over a generated world: one landmark, one position, few draws. */
export function inputOf(world: World, change: Partial<ForecastInput> = {}): ForecastInput {
  const { episodes, groups, read } = generate(world);
  return {
    episodes,
    model: 'model',
    condition: 'candid',
    target: targetNamed('first_unsafe_event'),
    horizon: null,
    landmarks: [{ anchor: 'reveal', offset: 1, positions: ['pre_action'] }],
    groups,
    foldings: [1, 2, 3].map((seed) => foldingOf(groups, seed)),
    innerFolds: 3,
    taps: world.taps ?? ['resid_post.0'],
    layer0: null,
    estimators: [{ name: 'mean_difference', Cs: [null] }],
    alphas: [0.1],
    bootstrapDraws: 400,
    seed: world.seed,
    read,
    fit: fitReaders,
    texts: null,
    textScopes: ['so_far'],
    textAnalyzers: ['words'],
    textCs: [1],
    scalars: [],
    external: [],
    randomDirections: 0,
    ...change,
  };
}

/** Standard normal distribution function (Abramowitz & Stegun 7.1.26, |error| < 1.5e-7). */
export function phi(z: number): number {
  const t = 1 / (1 + (0.3275911 * Math.abs(z)) / Math.SQRT2);
  const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const erf = 1 - poly * Math.exp((-z * z) / 2);
  return z >= 0 ? (1 + erf) / 2 : (1 - erf) / 2;
}
