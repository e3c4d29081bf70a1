import fc from 'fast-check';
import { parseHTML } from 'linkedom';
import { describe, expect, it } from 'vitest';
import { stoppedAxes, tradeOffPoints } from '../../src/report/charts/trade-off.ts';
import { escapeHtml } from '../../src/report/escape.ts';
import { formatHeadline } from '../../src/report/headline.ts';
import { renderReport } from '../../src/report/page.ts';
import type { ReportView } from '../../src/report/report-view.ts';
import { value, view } from './fixture.ts';

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
    expect(html).not.toMatch(/[\u0000-\u0008\u001b\u202e\u{e0041}]|\p{Cs}/u);
    expect(document.querySelectorAll('[onerror]')).toHaveLength(0);
  });

  it('has every section', () => {
    const headings = [...document.querySelectorAll('h2')].map((node) => node.textContent);
    expect(headings).toEqual([
      'Data and model',
      'Preregistration',
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
    expect(document.body.textContent).not.toContain('warning. Please check the console');
    expect(document.body.textContent).not.toMatch(/\bNaN\b|\[object Object\]|\bundefined\b(?!:| because)/);
  });

  it('says when the probe is no better than text, when a figure is undefined, and that a reader did not act', () => {
    const text = document.body.textContent ?? '';
    expect(text).toContain('no better than the best text reader');
    expect(text).toContain('no figure, because too few groups');
    expect(text).toContain('the replayed weights did not act');
  });

  it('compares with text at the position that the headline reads, and with the strongest simple baseline', () => {
    const lead = document.querySelector('.lead')?.textContent;
    expect(lead).toContain('difference 0.100 [-0.050, 0.250]');
    expect(lead).not.toContain('0.333');
    expect(lead).toContain('Highest of 2 simple baselines: group base rate 0.910');
  });

  it('draws every baseline of the curve with its own colour and shape', () => {
    const [legend] = [...document.querySelectorAll('.legend')];
    const entries = [...legend.querySelectorAll('span')];
    expect(entries.map((node) => node.textContent)).toEqual([
      'probe',
      'text (best)',
      'step index',
      'base rate of the template',
    ]);
    expect(new Set(entries.map((node) => node.innerHTML)).size).toBe(entries.length);
  });

  it('puts the careless cut beside the matched decision', () => {
    const row = [...document.querySelectorAll('tr')].find(
      (node) => node.textContent.startsWith('text:best') && node.textContent.includes('0.886'),
    );
    expect(row?.textContent).toContain('0.581');
    expect(document.body.textContent).toContain('Why the careless cut flatters');
  });

  it('draws stops that read no score apart from those of the probe', () => {
    const named = new Map(
      tradeOffPoints(view.metrics.figures, stoppedAxes('x-')).map((point) => [point.name, point.y]),
    );
    expect(named.get('oracle')).toEqual(value(1));
    expect(named.get('always at the reveal')).toEqual(value(0.9));
    expect(named.get('random stops, as many as the probe')).toEqual(value(0.25));
    expect(named.get('text monitor, every threshold')).toEqual(value(0.35));
    const probe = tradeOffPoints(view.metrics.figures, stoppedAxes('x-')).filter(
      ({ name }) => name === 'probe, every threshold',
    );
    expect(probe.map(({ y }) => y)).toEqual([value(0.3), value(0.8)]);
  });

  it('draws lead time, whose curves carry their alpha, and no curve of another model', () => {
    const labels = [...document.querySelectorAll('svg[role=img]')].map((node) => node.getAttribute('aria-label'));
    expect(labels.some((label) => label?.includes('probe:selected at 0.05'))).toBe(true);
    expect(document.body.textContent).not.toContain('another model:');
  });

  it('marks in the map what the folds chose', () => {
    const row = [...document.querySelectorAll('tr')].find((node) =>
      node.textContent.startsWith('resid_post.1pre_action'),
    );
    expect(row?.querySelectorAll('td')[2]?.textContent).toBe('1');
  });

  it('says once why figures are undefined, and never prints a small p-value as 0', () => {
    expect(document.body.textContent.match(/no matched worlds/g)).toHaveLength(1);
    expect(document.body.textContent).toContain('0.00050');
  });

  it('has the numbers of every picture in a table', () => {
    for (const node of document.querySelectorAll('figure')) expect(node.querySelector('details')).not.toBeNull();
  });

  it('draws the charts with a label for those who do not see them', () => {
    const charts = [...document.querySelectorAll('svg[role=img]')];
    expect(charts.length).toBeGreaterThanOrEqual(4);
    for (const chart of charts) expect(chart.getAttribute('aria-label')).toBeTruthy();
  });
});

describe('a run with one estimator', () => {
  const renamed: ReportView = JSON.parse(JSON.stringify(view).replaceAll('probe:selected', 'probe:logistic'));

  it('is led by that estimator, as a run with several is by the selected one', () => {
    expect(formatHeadline(renamed.metrics)).toEqual(formatHeadline(view.metrics));
    const lead = (html: string): string => /<div class="lead">.*?<\/div>/s.exec(html)![0];
    const html = renderReport(renamed);
    expect(lead(html)).toBe(lead(renderReport(view)));
    const { document } = parseHTML(html);
    const labels = [...document.querySelectorAll('svg[role=img]')].map((node) => node.getAttribute('aria-label'));
    expect(labels.some((label) => label?.includes('probe:logistic at 0.05'))).toBe(true);
    expect(document.body.textContent).toContain('probe, every threshold');
  });
});

describe('the page as a whole', () => {
  it('shows what was locked and every change after it, escaped', () => {
    const preregistration = {
      hash: 'ab'.repeat(32),
      lockedAt: '2026-01-01T00:00:00.000Z',
      rows: 1234,
      hypotheses: ['probe > 0.5 <b>at</b> reveal+1'],
      thresholds: { 'false alarms per episode (0.05)': 0.05 },
      folder: null,
      changes: [{ field: 'config.analysis.train.C', locked: '0.01', now: '<1>' }],
    };
    const html = renderReport({ ...view, metrics: { ...view.metrics, preregistration } });
    expect(html).toContain('1,234 rows, sha256 <code>abab');
    expect(html).toContain('probe &gt; 0.5 &lt;b&gt;at&lt;/b&gt; reveal+1');
    expect(html).toContain('1 changed after the lock');
    expect(html).toContain('&lt;1&gt;');
  });

  it('is the golden one, numbers rounded (`vitest -u` after a look in the browser)', async () => {
    const rounded = renderReport(view).replace(/-?\d+\.\d{3,}/g, (number) => String(Number(Number(number).toFixed(2))));
    await expect(rounded.replaceAll('><', '>\n<')).toMatchFileSnapshot('../golden/report/page.html');
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

describe('the text of a log', () => {
  it('is shown with nothing unseen left and nothing lost, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const escaped = escapeHtml(text);
        expect(escaped).not.toMatch(/[<>"']|[\u200b-\u200f\u202a-\u202e\u2066-\u2069]|\p{Cs}/u);
        expect(escaped.length).toBeGreaterThanOrEqual(text.length);
      }),
    );
  });
});
