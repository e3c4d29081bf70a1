/**
 * What a forecast of full depth costs, by phase, on generated activations and texts of the size of a data set. The states
 * are those of test/simulations; fitter and matrix product are the ones a run uses.
 *
 *   npm run bench:forecast -- [--json] [--scenarios 200] [--width 128] [--taps 9] [--landmarks 6] [--positions 1]
 *                             [--words 600] [--permutations 1000] [--conditions 2]
 *
 * A scenario makes three episodes (x−, x+, nuisance) in each condition. Seconds are of this process's CPU (user and
 * system, all threads), since the machine may be shared; wall time stands beside them.
 */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { evaluate } from '../src/forecast/evaluate.ts';
import { permutationNull } from '../src/forecast/permutation-null.ts';
import type { ForecastInput } from '../src/forecast/types.ts';
import { seededRng } from '../src/lib/rng.ts';
import { createGemm } from '../src/model/gemm.ts';
import { deepFigures } from '../src/pipeline/forecast-depth.ts';
import { createFitReaders } from '../src/probe/fit-readers.ts';
import { inputOf } from '../test/simulations/generate.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    scenarios: { type: 'string', default: '200' },
    width: { type: 'string', default: '128' },
    taps: { type: 'string', default: '9' },
    landmarks: { type: 'string', default: '6' },
    words: { type: 'string', default: '600' },
    permutations: { type: 'string', default: '1000' },
    positions: { type: 'string', default: '1' },
    conditions: { type: 'string', default: '2' },
  },
});
const size = (name: keyof typeof values): number => {
  const value = Number(values[name]);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name}: expected a whole number from 1, got ${String(values[name])}`);
  return value;
};
const taps = Array.from({ length: size('taps') }, (_, i) => `resid_post.${i}`);

/** Text of an episode: words drawn from a vocabulary, the same for the twins of a scenario. */
function textOf(episode: string, words: number): string {
  const rng = seededRng(1, 'text', episode.replace(/x.?$|nuisance$/, ''));
  return Array.from({ length: words }, () => `w${Math.floor(4000 * rng.next() ** 3)}`).join(' ');
}

const { gemm, gemm64, close } = await createGemm({ threads: 2 });
const fit = createFitReaders({ gemm, gemm64, tolerance: 1e-6 });
const read = new Map<string, Awaited<ReturnType<ForecastInput['read']>>>();
const base = inputOf({
  seed: 1,
  scenarios: size('scenarios'),
  width: size('width'),
  taps,
  planted: taps[1],
  shift: 1,
  twins: true,
  templates: 6,
});
const texts = new Map(base.episodes.map(({ key }) => [key, textOf(key, size('words'))]));
const input: ForecastInput = {
  ...base,
  landmarks: Array.from({ length: size('landmarks') }, (_, i) => ({
    anchor: i % 2 === 0 ? 'reveal' : 'start',
    offset: Math.floor(i / 2),
    positions: ['prompt_end', 'pre_action'].slice(0, size('positions')),
  })),
  estimators: [
    { name: 'logistic', Cs: [1e-4, 1e-3, 1e-2, 1e-1, 1] },
    { name: 'mean_difference', Cs: [null] },
  ],
  layer0: taps[0],
  bootstrapDraws: 2000,
  randomDirections: 20,
  textCs: [0.1, 1, 10, 100],
  textScopes: ['so_far', 'reasoning', 'actions', 'this_turn'],
  texts: (keys) => Promise.resolve(keys.map(({ episode }) => texts.get(episode)!)),
  // Generated states are slow to make: each is kept, as those of a run are.
  read: async (tap, keys) => {
    const id = JSON.stringify([tap, keys]);
    const known = read.get(id) ?? (await base.read(tap, keys));
    read.set(id, known);
    return known;
  },
  fit,
};

const phases: { phase: string; cpuSeconds: number; wallSeconds: number }[] = [];
async function timed<T>(phase: string, work: () => Promise<T>): Promise<T> {
  const [cpu, wall] = [process.cpuUsage(), performance.now()];
  const result = await work();
  const used = process.cpuUsage(cpu);
  phases.push({ phase, cpuSeconds: (used.user + used.system) / 1e6, wallSeconds: (performance.now() - wall) / 1e3 });
  if (!values.json)
    process.stderr.write(
      `${phase}: ${phases.at(-1)!.cpuSeconds.toFixed(1)} s of CPU, ${phases.at(-1)!.wallSeconds.toFixed(1)} s\n`,
    );
  return result;
}

await timed('states made', async () => {
  await evaluate({
    ...input,
    texts: null,
    foldings: input.foldings.slice(0, 1),
    estimators: [input.estimators[1]],
    bootstrapDraws: 100,
    randomDirections: 0,
  });
});
await timed('evaluate without text', () => evaluate({ ...input, texts: null }));
await timed('evaluate', () => evaluate(input));
const population = 'x-' as const;
await timed('permutation null', async () => {
  for (const spec of input.landmarks) {
    const landmarksClaimed = input.landmarks.length;
    await permutationNull({ input, spec, population, permutations: size('permutations'), landmarksClaimed, gemm });
  }
});
await timed('the rest of depth full', () => deepFigures(input, gemm, 0));
await close();
const parts = size('conditions');
const total = phases.slice(2).reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0) * parts;
if (values.json)
  console.log(JSON.stringify({ episodes: input.episodes.length * parts, phases, totalCpuSeconds: total }));
else console.log(`${input.episodes.length * parts} episodes, ${parts} conditions: ${total.toFixed(0)} s of CPU`);
