import { parseHTML } from 'linkedom';
import { describe, expect, it } from 'vitest';
import { formatHeadline } from '../../src/report/headline.ts';
import { renderReport } from '../../src/report/page.ts';
import type { ReportView } from '../../src/report/report-view.ts';
import type { EpisodeMeta, Figure, Value } from '../../src/types.ts';

const HOSTILE = '<img src=x onerror=alert(1)> \u202eevil\u001b[31m & "quoted"';
const value = (estimate: number): Value => ({
  estimate,
  lower: estimate - 0.1,
  upper: estimate + 0.1,
  n: 60,
  positives: 25,
  clusters: 30,
});

function figure(over: Partial<Figure>): Figure {
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
const view: ReportView = {
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
      figure({
        metric: 'auroc_minus',
        at: { minus: 'text:best' },
        value: { estimate: 0.1, lower: -0.05, upper: 0.25, n: 60, positives: 25, clusters: 30 },
      }),
      figure({ landmark: 'matched_steps', value: { undefinedBecause: 'too few groups' } }),
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

describe('the report page', () => {
  const html = renderReport(view);
  const { document } = parseHTML(html);

  it('loads nothing and runs nothing', () => {
    expect(document.querySelectorAll('script, link, iframe, img, object, embed')).toHaveLength(0);
    expect(html.match(/(?:src|href|action|data)\s*=\s*["']?https?:/gi)).toBeNull();
    expect(html).toContain("default-src 'none'");
  });

  it('shows text of the data as text', () => {
    expect(html).not.toContain('<img src=x');
    expect(html).toContain('&lt;img src=x onerror=alert(1)&gt;');
    // oxlint-disable-next-line no-control-regex -- that they are gone is the point
    expect(html).not.toMatch(/[\u0000-\u0008\u001b\u202e]/);
  });

  it('has every section', () => {
    const headings = [...document.querySelectorAll('h2')].map((node) => node.textContent);
    expect(headings).toEqual([
      'Data and model',
      'Exclusions',
      'Forecast',
      'Curves, alarms, pairs',
      'Interventions',
      'Examples',
      'Limits of the labels',
      'How to read this',
      'How to reproduce',
    ]);
  });

  it('never shows a number that is none', () => {
    expect(document.body.textContent).not.toMatch(/\bNaN\b|\[object Object\]|\bundefined\b(?!:| because)/);
  });

  it('says when the probe is no better than text, when a figure is undefined, and that a reader did not act', () => {
    const text = document.body.textContent ?? '';
    expect(text).toContain('no better than the best text reader');
    expect(text).toContain('no figure, because too few groups');
    expect(text).toContain('the replayed weights did not act');
  });

  it('draws the charts with a label for those who do not see them', () => {
    const charts = [...document.querySelectorAll('svg[role=img]')];
    expect(charts.length).toBeGreaterThanOrEqual(4);
    for (const chart of charts) expect(chart.getAttribute('aria-label')).toBeTruthy();
  });
});

describe('the headline', () => {
  it('gives interval, n and clusters, or the reason', () => {
    const lines = formatHeadline(view.metrics).join('\n');
    expect(lines).toContain('probe 0.700 [0.600, 0.800], n 60, 25 positive, 30 clusters');
    expect(lines).toContain('undefined: too few groups');
    expect(lines).toContain('prevents 0.500');
  });
});
