import { z } from 'zod';

/**
 * The configuration of a run, one strict object per stage. Nothing is filled in here: defaults (`DEFAULTS`) are merged
 * under the file and the flags first, so that a flag always wins and the stored configuration is the effective one.
 */

const path = z.string().min(1).describe('a local path, relative to the configuration file');
const paths = z.union([path, z.array(path).min(1)]).describe('a path, glob or folder, or a list of them');
const count = z.int().min(1);
const share = z.number().gt(0).lt(1);
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

const condition = z.union([
  scalar,
  z.array(scalar).min(1),
  z
    .strictObject({
      not: z.union([scalar, z.array(scalar)]).optional(),
      gte: z.number().optional(),
      lte: z.number().optional(),
      gt: z.number().optional(),
      lt: z.number().optional(),
      like: z.string().optional(),
    })
    .describe('comparisons that all have to hold'),
]);

export const datasetSchema = z.strictObject({
  episodes: paths,
  scenarios: paths.nullable(),
  reportLabels: paths.nullable(),
  tools: path.nullable().describe('a JSON file with the tool schemas, where the data have no such column'),
  mapping: path.describe('mapping file of the source: columns and event keys → canonical episode'),
  where: z.record(z.string(), condition).describe('filter by any column'),
  select: z
    .strictObject({
      shortest: count.describe('episodes to keep of each class, the shortest first'),
      requires: z.array(z.enum(['reveal', 'critical_after_reveal'])),
      maxPerScenario: count.nullable().describe('most episodes of one scenario in one class'),
    })
    .nullable(),
  maxBad: z.number().min(0).max(1).describe('share of quarantined rows above which the run stops (65)'),
});

export const modelSchema = z.strictObject({
  folder: path,
  threads: z.int().min(1).max(256),
  executionProvider: z.enum(['cpu', 'cuda', 'webgpu']),
  memoryCapGiB: z.number().gt(0),
  chunk: z.int().min(1).describe('tokens of one forward pass of a long prompt'),
  shareAcrossEpisodes: z.boolean().describe('compute the prefix that all sequences share only once'),
});

export const replaySchema = z.strictObject({
  role: z
    .enum(['agent', 'reader'])
    .describe('agent: these weights acted. reader: they read another model’s transcript'),
  stack: z.enum(['hf-template', 'harmony', 'raw']),
  toolText: z.enum(['native', 'json-tags', 'tool_code']),
  historyReasoning: z.enum(['template', 'none', 'all', 'empty-block']),
  templateKwargs: z.record(z.string(), z.unknown()),
  date: z
    .string()
    .regex(/^\d{4}-\d{2}-\d{2}$/)
    .describe('the day the template’s clock shows'),
  tools: z.enum(['column', 'file', 'none']),
  context: z.strictObject({
    limit: count.nullable().describe('tokens; null = the model’s own limit'),
    policy: z.enum(['error', 'skip', 'truncate-middle']),
  }),
  minAgreement: z.number().min(0).max(1),
});

export const captureSchema = z.strictObject({
  kinds: z.array(z.enum(['embed', 'resid_mid', 'resid_post', 'final_norm'])).min(1),
  layers: z.union([z.literal('all'), z.strictObject({ every: count }), z.array(z.int().min(0)).min(1)]),
  positions: z.array(z.string().min(1)).min(1),
  pooling: z.enum(['none', 'last', 'mean', 'max']).describe('for spans'),
  dtype: z.enum(['float32', 'float16', 'bfloat16']),
});

export const landmarkSchema = z.strictObject({
  anchor: z.enum(['start', 'reveal', 'first_critical', 'matched_steps', 'act', 'report']),
  offset: z.int(),
  position: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
});

export const trainSchema = z.strictObject({
  estimators: z.array(z.enum(['logistic', 'mean_difference', 'mean_difference_whitened', 'ridge'])).min(1),
  C: z.union([z.number().gt(0), z.array(z.number().gt(0)).min(1)]),
  folds: z.int().min(2),
  innerFolds: z.int().min(2),
  splitSeeds: z.int().min(1).describe('foldings drawn; the first is the headline'),
  tolerance: z.number().gt(0).describe('of the gradient at which a fit has converged'),
});

export const forecastSchema = z.strictObject({
  depth: z.enum(['quick', 'full']),
  targets: z.array(z.string().min(1)).min(1),
  horizon: count.nullable().describe('turns; null = ever'),
  alphas: z.array(share).min(1).describe('false alarms per episode'),
  bootstrap: z.int().min(100),
  permutations: z.int().min(0),
  randomDirections: z.int().min(0),
  textScopes: z.array(z.enum(['so_far', 'reasoning', 'actions', 'this_turn'])),
  textAnalyzers: z.array(z.enum(['words', 'characters'])).min(1),
  textC: z.array(z.number().gt(0)).min(1),
  conditions: z.enum(['each', 'pooled', 'both']),
  external: z.array(z.strictObject({ name: z.string().min(1), file: path, column: z.string().min(1) })),
});

export const interveneSchema = z.strictObject({
  costs: z.array(z.strictObject({ harm: z.number().gt(0), disruption: z.number().gt(0) })).min(1),
  policies: z.array(z.string().min(1)).min(1),
  budgets: z.array(share),
  randomRepeats: z.int().min(1),
});

export const reportSchema = z.strictObject({
  title: z.string().nullable(),
  examples: z.int().min(0).max(20),
});

export const configSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
    .describe('letters, digits, . _ -: it becomes a folder name'),
  seed: z.int().min(0),
  dataset: datasetSchema,
  model: modelSchema,
  replay: replaySchema,
  capture: captureSchema,
  landmarks: z.array(landmarkSchema).min(1),
  train: trainSchema,
  forecast: forecastSchema,
  intervene: interveneSchema,
  report: reportSchema,
  output: z.string().min(1).describe('folder for runs'),
});

export type Config = z.infer<typeof configSchema>;

/** Merged under the file. Keys that are not here have to be in the file. */
export const DEFAULTS = {
  seed: 0,
  dataset: { scenarios: null, reportLabels: null, tools: null, where: {}, select: null, maxBad: 0.001 },
  model: { threads: 2, executionProvider: 'cpu', memoryCapGiB: 4, chunk: 512, shareAcrossEpisodes: true },
  replay: {
    role: 'agent',
    stack: 'hf-template',
    toolText: 'native',
    historyReasoning: 'template',
    templateKwargs: {},
    date: '2026-01-01',
    tools: 'column',
    context: { limit: null, policy: 'error' },
    minAgreement: 1,
  },
  capture: {
    kinds: ['embed', 'resid_post'],
    layers: 'all',
    positions: ['prompt_end', 'pre_action'],
    pooling: 'mean',
    dtype: 'float32',
  },
  landmarks: [
    { anchor: 'reveal', offset: 1, position: 'prompt_end' },
    { anchor: 'reveal', offset: 1, position: 'pre_action' },
    { anchor: 'first_critical', offset: 0, position: 'pre_action' },
  ],
  train: {
    estimators: ['logistic', 'mean_difference'],
    C: [1e-4, 1e-3, 1e-2, 1e-1, 1],
    folds: 5,
    innerFolds: 3,
    splitSeeds: 3,
    tolerance: 1e-6,
  },
  forecast: {
    depth: 'quick',
    targets: ['first_unsafe_event'],
    horizon: null,
    alphas: [0.05],
    bootstrap: 2000,
    permutations: 200,
    randomDirections: 20,
    textScopes: ['so_far'],
    textAnalyzers: ['words'],
    textC: [0.1, 1, 10, 100],
    conditions: 'each',
    external: [],
  },
  intervene: {
    costs: [
      { harm: 1, disruption: 1 },
      { harm: 3, disruption: 1 },
      { harm: 10, disruption: 1 },
      { harm: 30, disruption: 1 },
    ],
    policies: ['threshold', 'two_in_a_row'],
    budgets: [0.1],
    randomRepeats: 200,
  },
  report: { title: null, examples: 3 },
  output: 'results',
} as const;
