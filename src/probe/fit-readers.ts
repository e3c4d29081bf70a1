import type { FitProblem, LinearReader } from '../forecast/types.ts';
import type { FeatureMatrix, Undefined } from '../types.ts';
import { estimators, type EstimatorTools } from './estimators.ts';

/** Names that configurations may use. */
export const estimatorNames = Object.keys(estimators);

/**
 * The fitter that selection and evaluation are handed: all problems of one matrix in one call, each by its estimator.
 * A fit that did not converge is undefined, with its iterations and gap: a reader that is not the optimum it claims to be
 * never gets a score.
 * @throws TypeError naming an estimator that does not exist
 */
export function createFitReaders(
  tools: EstimatorTools,
): (x: FeatureMatrix, problems: readonly FitProblem[]) => Promise<readonly (LinearReader | Undefined)[]> {
  return async (x, problems) => {
    const out: (LinearReader | Undefined)[] = [];
    const byEstimator = new Map<string, number[]>();
    problems.forEach(({ estimator }, index) => {
      const members = byEstimator.get(estimator);
      if (members === undefined) byEstimator.set(estimator, [index]);
      else members.push(index);
    });
    for (const [name, members] of byEstimator) {
      const fit = estimators[name];
      if (fit === undefined) throw new TypeError(`no estimator ${name}; there are ${estimatorNames.join(', ')}`);
      const fitted = await fit(
        x,
        members.map((index) => problems[index]),
        tools,
      );
      fitted.forEach((reader, at) => {
        out[members[at]] = reader;
        if ('undefinedBecause' in reader || reader.convergence === null || reader.convergence.converged) return;
        const { iterations, relativeGap } = reader.convergence;
        out[members[at]] = {
          undefinedBecause: `the ${name} fit did not converge in ${iterations} steps (relative gap ${relativeGap.toExponential(1)})`,
        };
      });
    }
    return out;
  };
}
