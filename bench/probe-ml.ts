import { performance } from 'node:perf_hooks';
import { Matrix } from 'ml-matrix';
import LogisticRegression from 'ml-logistic-regression';
import { normal, seededRng } from '../src/lib/rng.ts';

/** Steps measured; the package's own default is 50,000, and a step costs the same each time. */
const STEPS = 20;
const DEFAULT_STEPS = 50_000;

/**
 * ml-logistic-regression on n × d standard normal columns: seconds of one fit at its default number of steps, extrapolated
 * from a few (two one-against-all classifiers without a penalty, by gradient descent of fixed length).
 * @param ours seconds of our 50 fits of that size, for the ratio
 */
export async function measureMl(n: number, d: number, ours: number | null) {
  await Promise.resolve();
  const rng = seededRng('bench ml', 1);
  const x = new Matrix(n, d);
  const y = Matrix.zeros(n, 1);
  for (let i = 0; i < n; i += 1) {
    for (let k = 0; k < d; k += 1) x.set(i, k, normal(rng));
    y.set(i, 0, x.get(i, 0) + normal(rng) > 0 ? 1 : 0);
  }
  const from = performance.now();
  new LogisticRegression({ numSteps: STEPS, learningRate: 5e-5 }).train(x, y);
  const perStep = (performance.now() - from) / 1000 / STEPS;
  const oneFit = perStep * DEFAULT_STEPS;
  return {
    n,
    d,
    secondsPerStep: perStep,
    secondsOfOneDefaultFit: oneFit,
    ratioToAllOurFits: ours === null ? null : oneFit / ours,
  };
}
