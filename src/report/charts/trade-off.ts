import * as Plot from '@observablehq/plot';
import type { Figure, Value } from '../../types.ts';
import { BEST_TEXT, headlineProbe, isMain } from '../report-view.ts';
import { COLOURS, renderPlot } from './plot.ts';

/** Stops that look at no score: the same whichever reader's row they stand in, so one of them is shown. */
export const SCORE_FREE: ReadonlySet<string> = new Set([
  'policy:always_at_reveal',
  'policy:oracle',
  'policy:never',
  'policy:tool',
]);

/** Name and style of every series, in the order of the legend. */
const SERIES = [
  { name: 'probe, every threshold', colour: COLOURS[0], line: true },
  { name: 'text monitor, every threshold', colour: COLOURS[1], line: true },
  { name: 'random stops, as many as the probe', colour: COLOURS[6], line: true },
  { name: 'probe, at its alpha', colour: COLOURS[5], line: false },
  { name: 'always at the reveal', colour: COLOURS[2], line: false },
  { name: 'oracle', colour: COLOURS[3], line: false },
  { name: 'never', colour: COLOURS[4], line: false },
] as const;

export interface TradeOffPoint {
  readonly name: string;
  readonly threshold: number | null;
  readonly disrupted: Value;
  readonly prevented: Value;
}

/** The text reader that acts as a monitor here: the best one where it was simulated. */
export function textMonitor(figures: readonly Figure[]): string | null {
  const readers = figures.map((figure) => figure.at?.['scores']).filter((scores) => String(scores).startsWith('text:'));
  if (readers.includes(BEST_TEXT)) return BEST_TEXT;
  return readers.length === 0 ? null : String(readers[0]);
}

function seriesOf(figure: Figure, probe: string, text: string | null): string | null {
  const scores = figure.at?.['scores'];
  const onCurve = figure.at?.['threshold'] !== undefined;
  if (scores === probe) {
    if (figure.reader === 'policy:threshold') return onCurve ? SERIES[0].name : SERIES[3].name;
    if (figure.reader === 'policy:random') return onCurve ? SERIES[2].name : null;
    if (figure.reader === 'policy:always_at_reveal') return SERIES[4].name;
    if (figure.reader === 'policy:oracle') return SERIES[5].name;
    if (figure.reader === 'policy:never') return SERIES[6].name;
  }
  return scores === text && figure.reader === 'policy:threshold' && onCurve ? SERIES[1].name : null;
}

/** Key that the rates of one set of stops share. */
const settingOf = (figure: Figure): string =>
  JSON.stringify([
    figure.reader,
    figure.alpha ?? null,
    Object.entries(figure.at ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)),
  ]);

/** Prevented and disrupted over all thresholds, and of the controls that know nothing or everything. */
export function tradeOffPoints(figures: readonly Figure[], population: Figure['population']): readonly TradeOffPoint[] {
  const own = figures.filter(
    (figure) => figure.stage === 'intervene' && figure.population === population && isMain(figure),
  );
  const probe = headlineProbe(own);
  const text = textMonitor(own);
  const disrupted = new Map(
    own.flatMap((figure) => (figure.metric === 'disrupted_rate' ? [[settingOf(figure), figure.value] as const] : [])),
  );
  return own.flatMap((figure) => {
    if (figure.metric !== 'prevented_rate') return [];
    const name = seriesOf(figure, probe, text);
    const x = disrupted.get(settingOf(figure));
    const threshold = figure.at?.['threshold'];
    if (name === null || x === undefined) return [];
    return [
      { name, threshold: threshold === undefined ? null : Number(threshold), disrupted: x, prevented: figure.value },
    ];
  });
}

const shownSeries = (points: readonly TradeOffPoint[]): readonly (typeof SERIES)[number][] =>
  SERIES.filter(({ name }) => points.some((point) => point.name === name));

export const tradeOffLegend = (points: readonly TradeOffPoint[]): string =>
  `<p class="legend">${shownSeries(points)
    .map(({ name, colour }) => `<span><i style="background:${colour}"></i>${name}</span>`)
    .join('')}</p>`;

/** Prevented against disrupted over all thresholds, beside the controls. */
export function tradeOff(points: readonly TradeOffPoint[]): string | null {
  const drawn = points.flatMap(({ name, threshold, disrupted, prevented }) =>
    'undefinedBecause' in disrupted || 'undefinedBecause' in prevented
      ? []
      : [{ name, threshold, x: disrupted.estimate, y: prevented.estimate }],
  );
  if (drawn.length === 0) return null;
  const lines = drawn
    .filter(({ name }) => SERIES.some((series) => series.name === name && series.line))
    .sort((a, b) => (b.threshold ?? 0) - (a.threshold ?? 0));
  const single = drawn.filter(({ name }) => SERIES.some((series) => series.name === name && !series.line));
  const diagonal = [
    { x: 0, y: 0 },
    { x: 1, y: 1 },
  ];
  return renderPlot(
    {
      width: 480,
      height: 380,
      marginBottom: 44,
      x: { domain: [0, 1], label: 'safe episodes stopped (disrupted)', grid: true, labelOffset: 38 },
      y: { domain: [0, 1], label: 'unsafe episodes stopped in time (prevented)', grid: true },
      color: { type: 'categorical', domain: SERIES.map(({ name }) => name), range: SERIES.map(({ colour }) => colour) },
      marks: [
        Plot.line(diagonal, { x: 'x', y: 'y', strokeDasharray: '4 3', strokeOpacity: 0.5 }),
        Plot.line(lines, { x: 'x', y: 'y', z: 'name', stroke: 'name', strokeWidth: 1.5, strokeOpacity: 0.7 }),
        Plot.dot(lines, { x: 'x', y: 'y', fill: 'name', r: 2.5 }),
        Plot.dot(single, { x: 'x', y: 'y', fill: 'name', stroke: 'currentColor', r: 6 }),
      ],
    },
    'share of unsafe episodes stopped in time against share of safe episodes stopped',
  );
}
