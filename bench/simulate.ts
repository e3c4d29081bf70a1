/**
 * Does the evaluation say no when it should? Long form of test/simulations, on generated activations with known truth.
 *
 *   npm run simulate -- [--json] [--seed 1] [--quick]
 *
 * null       500 data sets without a signal: p-values of the max-statistic null against uniform (Kolmogorov–Smirnov)
 * coverage   2,000 clustered data sets: share of 95 % intervals that hold the true AUROC
 * planted    20 data sets with a direction of known strength: `insideInterval` is true when at least 17 intervals hold it
 *            (a 95 % interval fails that with probability 0.016)
 * leaks      five kinds planted in 100 data sets: caught by name alone; share of the 100 clean ones that were flagged
 * situation  a state that decodes the world and not the act: AUROC over all worlds, and within x−
 *
 * With --json one JSON document on stdout. Exit 1 when a study fails its bound.
 */
import { parseArgs } from 'node:util';
import {
  coverage,
  leakStudy,
  nullPValues,
  plantedRuns,
  situationOnly,
  uniformKsP,
} from '../test/simulations/studies.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
  },
});
const seed = Number(values.seed);
if (!Number.isSafeInteger(seed)) throw new Error(`--seed: expected a whole number, got ${values.seed}`);
const size = values.quick
  ? { nulls: 60, sets: 200, planted: 20, leaks: 10 }
  : { nulls: 500, sets: 2000, planted: 20, leaks: 100 };
const PERMUTATIONS = 199;
const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

say(`null: ${size.nulls} data sets × ${PERMUTATIONS} permutations`);
const p = await nullPValues(size.nulls, PERMUTATIONS, seed);
const ksP = uniformKsP(p, PERMUTATIONS);
say(`coverage: ${size.sets} data sets`);
const covered = coverage(size.sets, 2000, seed);
say(`planted: ${size.planted} data sets`);
const runs = await plantedRuns(size.planted, seed);
const inside = runs.filter((run) => run.inside).length;
say(`leaks: ${size.leaks} data sets`);
const leaks = leakStudy(size.leaks, seed);
const situation = await situationOnly(seed + 1);

const result = {
  seed,
  null: { ksP, runs: p.length, belowFivePercent: p.filter((value) => value <= 0.05).length / p.length },
  coverage: covered,
  planted: { insideInterval: inside >= 17, inside, runs: runs.length },
  leaks,
  situation,
};
if (values.json) process.stdout.write(`${JSON.stringify(result)}\n`);
else {
  line(
    'null',
    `KS p ${ksP.toFixed(3)}; ${(100 * result.null.belowFivePercent).toFixed(1)} % of p-values at or below 0.05`,
  );
  line('coverage', `${(100 * covered).toFixed(1)} % of nominal 95 % intervals`);
  line('planted', `${inside} of ${runs.length} intervals hold the truth`);
  line(
    'leaks',
    `${leaks.caught} of ${leaks.planted} caught by name; ${(100 * leaks.cleanFlagged).toFixed(1)} % of clean data flagged`,
  );
  line('situation', `all worlds ${show(situation.pooled)}, within x− ${show(situation.within)}`);
}
const sound =
  ksP > 0.01 &&
  covered >= 0.93 &&
  covered <= 0.97 &&
  inside >= 17 &&
  leaks.caught === leaks.planted &&
  leaks.cleanFlagged <= 0.05;
if (!sound) process.exitCode = 1;

function line(name: string, text: string): void {
  process.stdout.write(`${name.padEnd(10)} ${text}\n`);
}

function show(value: Awaited<ReturnType<typeof situationOnly>>['pooled']): string {
  if ('undefinedBecause' in value) return value.undefinedBecause;
  return `${value.estimate.toFixed(3)} [${value.lower?.toFixed(3)}, ${value.upper?.toFixed(3)}]`;
}
