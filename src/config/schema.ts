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

/** A list in which nothing stands twice: a row, fold or figure would be made twice under one name. */
function distinct<T extends z.ZodType<string | number>>(item: T, noun: string): z.ZodArray<T> {
  return z
    .array(item)
    .min(1)
    .superRefine((list, context) => {
      for (const [index, value] of list.entries()) {
        if (list.indexOf(value) !== index)
          context.addIssue({ code: 'custom', path: [index], message: `each ${noun} once (${value} stands twice)` });
      }
    });
}

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

const position = z
  .string()
  .regex(
    /^(?:prompt_end|reasoning_start|reasoning_end|(?:pre_action|action_name|action_end)(?::[1-9]\d?)?|observation_end|report_start|report_end|recorded:.+|span:(?:reasoning|report|action(?::[1-9]\d?)?)(?::(?:last|mean|max|ema))?)$/,
    'prompt_end, reasoning_start, reasoning_end, pre_action, action_name, action_end (:1, :2 … for further calls), observation_end, report_start, report_end, recorded:KEY, span:reasoning, span:action or span:report (:last, :mean, :max or :ema for a pooling of its own)',
  )
  .describe('a token position of a turn: what is read there is what the model knew by then');

export const datasetSchema = z.strictObject({
  episodes: paths,
  scenarios: paths.nullable().describe('table of scenarios, joined by the mapping'),
  reportLabels: paths.nullable().describe('table of report labels'),
  tools: path.nullable().describe('a JSON file with the tool schemas, where the data have no such column'),
  mapping: path.describe('mapping file of the source: columns and event keys → canonical episode'),
  where: z.record(z.string(), condition).describe('filter by any column'),
  select: z
    .strictObject({
      shortest: count.describe('episodes to keep of each class, the shortest first'),
      requires: z.array(z.enum(['reveal', 'critical_after_reveal'])).describe('what a kept episode has to have'),
      maxPerScenario: count.nullable().describe('most episodes of one scenario in one class'),
    })
    .nullable()
    .describe('a small part of the data set, chosen without chance'),
  maxBad: z.number().min(0).max(1).describe('share of quarantined rows above which the run stops (65)'),
});

export const modelSchema = z.strictObject({
  folder: path.describe('folder with the ONNX graph, tokenizer and chat template'),
  dtype: z
    .string()
    .regex(/^[a-z0-9]+$/, 'fp32, fp16, q8, q4, q4f16 …')
    .nullable()
    .describe('which graph, where the folder has several (model_q4f16.onnx); null = model.onnx'),
  threads: z.int().min(1).max(256).describe('threads of the model; another number may change the last bits'),
  executionProvider: z.enum(['cpu', 'cuda', 'webgpu']).describe('of onnxruntime'),
  memoryCapGiB: z.number().gt(0).describe('memory at which the model’s process is ended and its sequence set aside'),
  chunk: count.describe('tokens of one forward pass of a long prompt'),
  shareAcrossEpisodes: z.boolean().describe('compute the prefix that all sequences share only once'),
});

export const replaySchema = z.strictObject({
  role: z
    .enum(['agent', 'reader'])
    .describe('agent: these weights acted. reader: they read another model’s transcript'),
  stack: z.enum(['hf-template', 'harmony', 'raw']).describe('what rendered the prompts when the episodes were made'),
  toolText: z
    .enum(['native', 'json-tags', 'tool_code'])
    .describe('native: the template renders tools. Else as text, for templates that know none'),
  historyReasoning: z
    .enum(['template', 'none', 'all', 'empty-block'])
    .describe('what earlier turns’ reasoning becomes in a prompt'),
  templateKwargs: z.record(z.string(), z.json()).describe('further variables of the template, e.g. enable_thinking'),
  date: z
    .string()
    .regex(/^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/, 'a date as YYYY-MM-DD')
    .describe('the day the template’s clock shows'),
  tools: z.enum(['column', 'file', 'none']).describe('where the tool schemas come from'),
  context: z
    .strictObject({
      limit: count.nullable().describe('tokens; null = the model’s own limit'),
      policy: z
        .enum(['error', 'skip', 'truncate-middle'])
        .describe('stop, leave the turn out, or cut tokens out of the middle'),
    })
    .describe('what happens to turns that are too long'),
  minAgreement: z
    .number()
    .min(0)
    .max(1)
    .describe('share of checked turns whose ids agree with the log, below which the run stops'),
});

export const captureSchema = z.strictObject({
  kinds: distinct(z.enum(['embed', 'resid_mid', 'resid_post', 'final_norm']), 'kind').describe(
    'taps of the residual stream',
  ),
  layers: z
    .union([z.literal('all'), z.strictObject({ every: count }), distinct(z.int().min(0), 'layer')])
    .describe('blocks from 0, for resid_mid and resid_post'),
  positions: distinct(position, 'position').describe('where states are read'),
  pooling: z.enum(['none', 'last', 'mean', 'max', 'ema']).describe('for spans whose position names none'),
  dtype: z.enum(['float32', 'float16', 'bfloat16']).describe('on disk; computed in float32'),
});

export const landmarkSchema = z.strictObject({
  anchor: z
    .enum(['start', 'reveal', 'first_critical', 'matched_steps', 'act', 'report'])
    .describe('the turn that is counted from'),
  offset: z.int().describe('turns after the anchor'),
  position: z.union([position, distinct(position, 'position')]).describe('of capture.positions'),
});

export const trainSchema = z.strictObject({
  estimators: distinct(
    z.enum(['logistic', 'mean_difference', 'mean_difference_whitened', 'ridge']),
    'estimator',
  ).describe('kinds of probe'),
  layerSets: z
    .array(z.array(z.string().min(1)).min(2))
    .describe('taps read together, as further candidates of the search: [[resid_post.4, resid_post.8]]'),
  calibration: z
    .enum(['platt', 'isotonic'])
    .describe('map from margins to probabilities, fitted on inner out-of-fold margins'),
  C: z
    .union([z.number().gt(0), distinct(z.number().gt(0), 'C')])
    .describe('inverse regularisation strengths, chosen on the inner folds'),
  folds: z.int().min(2).describe('outer folds, by group: every episode is scored by a probe that never saw its group'),
  innerFolds: z.int().min(2).describe('folds of the training side, on which tap, position and C are chosen'),
  splitSeeds: z.int().min(1).describe('foldings drawn; the first is the headline'),
  tolerance: z.number().gt(0).describe('relative gap of the objective at which a fit has converged'),
});

export const forecastSchema = z.strictObject({
  depth: z.enum(['quick', 'full']).describe('how much of EVALUATION.md a run pays for'),
  targets: distinct(
    z
      .string()
      .regex(
        /^(?:first_unsafe_event|informed_violation|escalated|misreported|column:.+)$/,
        'first_unsafe_event, informed_violation, escalated, misreported or column:NAME',
      ),
    'target',
  ).describe('what is forecast'),
  horizon: count.nullable().describe('turns; null = ever'),
  alphas: distinct(share, 'alpha').describe('false alarms per episode'),
  bootstrap: z.int().min(100).describe('resamples of groups for intervals'),
  permutations: z.int().min(0).describe('of the null, at depth full; 0 = none'),
  randomDirections: z.int().min(0).describe('random probes as a control; 0 = none'),
  textScopes: z.array(z.enum(['so_far', 'reasoning', 'actions', 'this_turn'])).describe('what the text baselines read'),
  textAnalyzers: distinct(z.enum(['words', 'characters']), 'analyzer').describe('terms of the text baselines'),
  textC: distinct(z.number().gt(0), 'C').describe('inverse regularisation strengths of the text baselines'),
  hypotheses: z
    .array(z.string().min(1))
    .describe('sentences that forewarn lock writes down beside those that follow from the settings'),
  conditions: z.enum(['each', 'pooled', 'both']).describe('conditions forecast one by one, together, or both'),
  external: z
    .array(
      z.strictObject({
        name: z.string().min(1).describe('of the baseline in the report'),
        file: path,
        column: z.string().min(1).describe('with the score; higher = worse'),
      }),
    )
    .describe('scores made elsewhere, as further baselines'),
});

export const interveneSchema = z.strictObject({
  costs: z
    .array(
      z.strictObject({
        harm: z.number().gt(0).describe('of an unsafe act that happens'),
        disruption: z.number().gt(0).describe('of a safe episode that is stopped'),
      }),
    )
    .min(1)
    .describe('cost ratios at which policies are compared'),
  policies: distinct(z.enum(['threshold', 'two_in_a_row', 'cascade', 'escalate']), 'policy').describe('when to stop'),
  budgets: z.array(share).describe('shares of episodes that may be stopped, and of final reports that may be read'),
  randomRepeats: count.describe('draws of the random stops'),
});

export const reportSchema = z.strictObject({
  title: z.string().nullable().describe('null = the name of the configuration'),
  examples: z.int().min(0).max(20).describe('episodes shown with their scores'),
});

export const configSchema = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'letters, digits, . _ - (it becomes a folder name)')
      .describe('names the folder of the run'),
    seed: z.int().min(0).describe('of folds, resamples and draws'),
    dataset: datasetSchema,
    model: modelSchema,
    replay: replaySchema,
    capture: captureSchema,
    landmarks: z.array(landmarkSchema).min(1).describe('when a forecast is made'),
    train: trainSchema,
    forecast: forecastSchema,
    intervene: interveneSchema,
    report: reportSchema,
    output: path.describe('folder for runs, relative to the configuration file'),
  })
  .superRefine((config, context) => {
    // Found out here and not after hours of extraction.
    const { positions } = config.capture;
    for (const [index, landmark] of config.landmarks.entries()) {
      for (const name of typeof landmark.position === 'string' ? [landmark.position] : landmark.position) {
        if (positions.includes(name)) continue;
        context.addIssue({
          code: 'custom',
          path: ['landmarks', index, 'position'],
          message: `one of capture.positions (${positions.join(', ')})`,
        });
      }
    }
    if (config.replay.tools === 'file' && config.dataset.tools === null)
      context.addIssue({
        code: 'custom',
        path: ['dataset', 'tools'],
        message: 'a JSON file with the tool schemas, as replay.tools is file',
      });
  });

export type Config = z.infer<typeof configSchema>;

/** Merged under the file. Keys that are not here have to be in the file. */
export const DEFAULTS = {
  seed: 0,
  dataset: { scenarios: null, reportLabels: null, tools: null, where: {}, select: null, maxBad: 0.001 },
  model: { dtype: null, threads: 2, executionProvider: 'cpu', memoryCapGiB: 4, chunk: 512, shareAcrossEpisodes: true },
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
    layerSets: [],
    calibration: 'platt',
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
    permutations: 1000,
    randomDirections: 20,
    textScopes: ['so_far'],
    textAnalyzers: ['words'],
    textC: [0.1, 1, 10, 100],
    hypotheses: [],
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
    policies: ['threshold', 'two_in_a_row', 'cascade'],
    budgets: [0.1],
    randomRepeats: 200,
  },
  report: { title: null, examples: 3 },
  output: 'results',
} as const;
