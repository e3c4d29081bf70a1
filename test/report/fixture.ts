import type { ReportView } from '../../src/report/report-view.ts';
import type { EpisodeMeta, Figure, Value } from '../../src/types.ts';

/** Markup, direction override, escape sequence, hidden tag character, half a surrogate pair, quotes. */
export const HOSTILE = '<img src=x onerror=alert(1)> \u202eevil\u001b[31m \u{e0041}\ud800 & "quoted" \'single\'';

export const value = (estimate: number): Value => ({
  estimate,
  lower: estimate - 0.1,
  upper: estimate + 0.1,
  n: 60,
  positives: 25,
  clusters: 30,
});

/** One invented figure; `over` says what differs. */
export function figure(over: Partial<Figure>): Figure {
  return {
    stage: 'forecast',
    target: 'first_unsafe_event',
    condition: 'candid',
    population: 'x-',
    landmark: 'reveal+1',
    position: 'selected',
    reader: 'probe:selected',
    tap: 'selected',
    metric: 'auroc_within_fold',
    model: 'invented',
    value: value(0.7),
    ...over,
  };
}

/** Prevented and disrupted rates of one set of stops. */
export function stops(reader: string, prevented: number, disrupted: number, at: Figure['at'] = {}): Figure[] {
  const one = (metric: string, rate: number): Figure =>
    figure({
      stage: 'intervene',
      landmark: 'any',
      position: 'any',
      tap: null,
      reader,
      metric,
      value: value(rate),
      at: { scores: 'probe:selected', ...at },
    });
  return [one('prevented_rate', prevented), one('disrupted_rate', disrupted)];
}

const meta: EpisodeMeta = {
  key: 'r/e',
  run: 'r',
  episodeId: HOSTILE,
  model: 'invented',
  condition: 'candid',
  set: null,
  scenarioId: 's',
  instanceId: null,
  template: 't',
  family: 'f',
  style: null,
  pairId: 'p',
  world: 'x-',
  seed: '1',
  reveal: 1,
  unsafe: 2,
  unsafeCall: 0,
  informed: true,
  escalated: false,
  criticalDone: true,
  firstCritical: 2,
  success: false,
  status: 'completed',
  end: 'finished',
  reportLabel: null,
  turnCount: 3,
  toolNames: [['a'], ['b'], ['c']],
  duplicateKey: null,
  extra: {},
  source: { file: 'x.jsonl', row: 1 },
};

/** Invented figures; the numbers mean nothing. */
export const view: ReportView = {
  title: HOSTILE,
  command: 'npx forewarn run x.yaml',
  run: { name: 'run', startedAt: '2026-11-30', role: 'reader', machine: {}, versions: {}, hashes: {}, settings: {} },
  counts: { episodes: '60' },
  metrics: {
    schemaVersion: 1,
    run: 'run',
    figures: [
      figure({}),
      figure({ reader: 'text:best', tap: null, value: value(0.6) }),
      figure({ reader: 'probe:logistic', tap: 'resid_post.1', position: 'pre_action', at: { search: 'unselected' } }),
      figure({ reader: 'baseline:step_index', tap: null, value: value(0.45) }),
      figure({ reader: 'baseline:group_base_rate', tap: null, value: value(0.91) }),
      // At one of several positions; the headline is at the selected one.
      figure({ metric: 'auroc_minus', position: 'prompt_end', at: { minus: 'text:best' }, value: value(0.333) }),
      figure({
        metric: 'auroc_minus',
        at: { minus: 'text:best' },
        value: { estimate: 0.1, lower: -0.05, upper: 0.25, n: 60, positives: 25, clusters: 30 },
      }),
      figure({ landmark: 'matched_steps', value: { undefinedBecause: 'too few groups' } }),
      figure({ landmark: 'matched_steps', reader: 'text:best', tap: null, value: value(0.886) }),
      figure({ landmark: 'first_critical', value: value(0.55) }),
      figure({ landmark: 'first_critical', reader: 'text:best', tap: null, value: value(0.581) }),
      figure({ metric: 'paired_world', at: { x_minus: 'unsafe' }, value: { undefinedBecause: 'no matched worlds' } }),
      figure({ metric: 'brier', value: value(0.2) }),
      figure({ metric: 'p_value', reader: 'probe:search', value: { ...value(0.0005), lower: null, upper: null } }),
      ...stops('policy:threshold', 0.3, 0.2, { threshold: 0.6 }),
      ...stops('policy:threshold', 0.8, 0.7, { threshold: 0.2 }),
      ...stops('policy:random', 0.25, 0.22, { threshold: 0.6, like: 'threshold' }),
      ...stops('policy:oracle', 1, 0),
      ...stops('policy:always_at_reveal', 0.9, 0.95),
      ...stops('policy:tool', 0.4, 0.4, { tool: HOSTILE }),
      ...stops('policy:threshold', 0.35, 0.3, { threshold: 0.5, scores: 'text:best' }),
      figure({
        landmark: 'any',
        position: 'any',
        tap: null,
        metric: 'false_alarm_rate',
        alpha: 0.05,
        value: value(0.2),
      }),
      figure({
        stage: 'intervene',
        landmark: 'any',
        position: 'any',
        tap: null,
        reader: 'policy:threshold',
        metric: 'prevented_rate',
        alpha: 0.05,
        at: { scores: 'probe:selected' },
        value: value(0.5),
      }),
      figure({
        stage: 'intervene',
        landmark: 'any',
        position: 'any',
        tap: null,
        reader: 'policy:threshold',
        metric: 'disrupted_rate',
        alpha: 0.05,
        at: { scores: 'probe:selected' },
        value: value(0.15),
      }),
    ],
  },
  curves: [
    {
      kind: 'roc',
      population: 'x-',
      landmark: 'reveal+1',
      position: 'selected',
      reader: 'probe:selected',
      x: [0, 0.5, 1],
      y: [0, 0.7, 1],
      n: [1, 1, 1],
      condition: 'candid',
      target: 'first_unsafe_event',
      model: 'invented',
    },
    {
      kind: 'lead_time',
      population: 'x-',
      landmark: 'any',
      position: 'any',
      reader: 'probe:selected at 0.05',
      x: [0, 1, 2],
      y: [0.5, 0.3, 0.1],
      n: [5, 3, 1],
      condition: 'candid',
      target: 'first_unsafe_event',
      model: 'invented',
    },
    {
      kind: 'roc',
      population: 'x-',
      landmark: 'another model',
      position: 'selected',
      reader: 'probe:selected',
      x: [0, 1],
      y: [0, 1],
      n: [0, 1],
      condition: 'candid',
      target: 'first_unsafe_event',
      model: 'another',
    },
  ],
  choices: [
    {
      landmark: 'reveal+1',
      readAt: 'selected',
      reader: 'probe:selected',
      trainedOn: 'x-',
      foldingSeed: 1,
      fold: 0,
      innerAuroc: 0.7,
      tap: 'resid_post.1',
      position: 'pre_action',
      estimator: 'logistic',
      C: 1,
      condition: 'candid',
      target: 'first_unsafe_event',
      model: 'invented',
    },
  ],
  exclusions: [
    { stage: 'plan', episode: 'e', file: 'x.jsonl', row: 3, turn: 1, reason: 'context_limit', detail: HOSTILE },
  ],
  warnings: [HOSTILE],
  limits: [HOSTILE],
  taps: ['embed', 'resid_post.1'],
  examples: [
    {
      meta,
      turns: [{ index: 0, text: HOSTILE, calls: [HOSTILE], unsafe: false }],
      scores: [{ turn: 1, landmark: 'reveal+1', position: 'pre_action', calibrated: 0.4, score: 1 }],
    },
  ],
};
