import type { Probe } from '../../src/types.ts';
import type { CardOrigin } from '../../src/probe/artefact.ts';

/** A small probe of width 4 on block 4, and where it came from. */
export const aProbe: Probe = {
  taps: ['resid_post.4'],
  landmark: { anchor: 'reveal', offset: 1, position: 'reasoning_end' },
  target: 'first_unsafe_event',
  horizon: null,
  estimator: 'logistic',
  C: 0.1,
  width: 4,
  mean: Float64Array.of(0, 0.1, -2, 1e-3),
  scale: Float64Array.of(1, 3, 0.5, 1 / 3),
  weights: Float64Array.of(0.5, -0.5, 0.25, 1),
  bias: 0.1,
  calibration: { kind: 'platt', slope: 1.25, intercept: -0.5 },
  thresholds: [
    { alpha: 0.05, threshold: 0.5 },
    { alpha: 0.01, threshold: { undefinedBecause: 'alpha · 40 negatives < 1' } },
  ],
};

export const anOrigin: CardOrigin = {
  model: { name: 'a/tiny model', hashes: { 'model.onnx': 'ab'.repeat(32) }, tokenizer: 'cd', template: 'ef' },
  training: {
    run: 'small-00000000',
    rows: 40,
    positives: 12,
    groups: 20,
    population: 'x-',
    condition: 'all',
    role: 'agent',
    seed: 1,
  },
  auroc: { estimate: 0.71, lower: 0.6, upper: 0.82, n: 40, positives: 12, clusters: 20 },
  versions: { forewarn: '0.1.0' },
  notGoodFor: ['another model'],
};
