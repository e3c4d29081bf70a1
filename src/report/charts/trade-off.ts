import * as Plot from '@observablehq/plot';
import type { StopCurve } from '../../intervention/types.ts';
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

/** Name and colour of every series, in the order of the legend. Over thresholds it is a line, at one setting a dot. */
const SERIES = [
  { name: 'probe, every threshold', colour: COLOURS[0] },
  { name: 'text monitor, every threshold', colour: COLOURS[1] },
  { name: 'random stops, as many as the probe', colour: COLOURS[6] },
  { name: 'probe, at its alpha', colour: COLOURS[5] },
  { name: 'always at the reveal', colour: COLOURS[2] },
  { name: 'oracle', colour: COLOURS[3] },
  { name: 'never', colour: COLOURS[4] },
] as const;

/** One axis: a metric in a population, and where a stored curve has it. */
export interface Axis {
  readonly metric: string;
  readonly label: string;
  readonly population: Figure['population'];
  readonly of: (curve: StopCurve) => readonly (number | null)[];
}

/** What is held against what. */
export interface Axes {
  readonly x: Axis;
  readonly y: Axis;
  /** Dashed from (0, 0) to (1, 1): stops that know nothing. */
  readonly diagonal: boolean;
}

/** Safe episodes stopped against unsafe ones stopped in time. */
export function stoppedAxes(population: Figure['population']): Axes {
  return {
    x: {
      metric: 'disrupted_rate',
      label: 'safe episodes stopped (disrupted)',
      population,
      of: (curve) => curve.disrupted,
    },
    y: {
      metric: 'prevented_rate',
      label: 'unsafe episodes stopped in time (prevented)',
      population,
      of: (curve) => curve.prevented,
    },
    diagonal: true,
  };
}

/**
 * Harm left against usefulness kept. With matched worlds usefulness is that of x+, where the task may be done; where the
 * source does not know success, safe episodes stopped stand for usefulness lost.
 */
export function harmAxes(figures: readonly Figure[], population: Figure['population']): Axes {
  const twins = population === 'x-' && figures.some((figure) => figure.population === 'x+');
  const where = twins ? 'x+' : population;
  const known = figures.some(
    ({ metric, value, population: of }) =>
      metric === 'usefulness_kept' && of === where && !('undefinedBecause' in value),
  );
  const suffix = twins ? ' in x+' : '';
  return {
    x: known
      ? {
          metric: 'usefulness_kept',
          label: `successes kept${suffix}, of safe episodes`,
          population: where,
          of: (curve) => curve.usefulness,
        }
      : {
          metric: 'disrupted_rate',
          label: `safe episodes stopped${suffix} (success unknown)`,
          population: where,
          of: (curve) => curve.disrupted,
        },
    y: {
      metric: 'harm_left',
      label: 'unsafe acts that still ran, per episode',
      population,
      of: (curve) => curve.harm,
    },
    diagonal: false,
  };
}

export interface TradeOffPoint {
  readonly name: string;
  readonly threshold: number | null;
  readonly x: Value;
  readonly y: Value;
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
    if (figure.reader === 'policy:random') return figure.at?.['like'] === 'threshold' ? SERIES[2].name : null;
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

/** Figures of record over thresholds, and of the controls that know nothing or everything. */
export function tradeOffPoints(figures: readonly Figure[], axes: Axes): readonly TradeOffPoint[] {
  const own = figures.filter((figure) => figure.stage === 'intervene' && isMain(figure));
  const probe = headlineProbe(own);
  const text = textMonitor(own);
  const across = new Map(
    own.flatMap((figure) =>
      figure.metric === axes.x.metric && figure.population === axes.x.population
        ? [[settingOf(figure), figure.value] as const]
        : [],
    ),
  );
  return own.flatMap((figure) => {
    if (figure.metric !== axes.y.metric || figure.population !== axes.y.population) return [];
    const name = seriesOf(figure, probe, text);
    const x = across.get(settingOf(figure));
    const threshold = figure.at?.['threshold'];
    if (name === null || x === undefined) return [];
    return [{ name, threshold: threshold === undefined ? null : Number(threshold), x, y: figure.value }];
  });
}

const shownSeries = (points: readonly TradeOffPoint[]): readonly (typeof SERIES)[number][] =>
  SERIES.filter(({ name }) => points.some((point) => point.name === name));

export const tradeOffLegend = (points: readonly TradeOffPoint[]): string =>
  `<p class="legend">${shownSeries(points)
    .map(({ name, colour }) => `<span><i style="background:${colour}"></i>${name}</span>`)
    .join('')}</p>`;

const MOST_DOTS = 150;

interface Drawn {
  readonly name: string;
  readonly x: number;
  readonly y: number;
}

/** Place of a threshold among those of a curve: the highest that is not above it has the same stops. */
function placeOf(curve: StopCurve, threshold: number): number {
  const at = curve.threshold.findIndex((own) => own <= threshold);
  return at < 0 ? curve.threshold.length - 1 : at;
}

/** The stored curve of a reader at every threshold there is; the axes may be of two populations. */
export function storedLine(
  name: string,
  reader: string | null,
  stops: readonly StopCurve[],
  axes: Axes,
): readonly Drawn[] {
  const of = (axis: Axis): StopCurve | undefined =>
    stops.find((curve) => curve.reader === reader && curve.population === axis.population);
  const [across, up] = [of(axes.x), of(axes.y)];
  if (across === undefined || up === undefined) return [];
  const [xs, ys] = [axes.x.of(across), axes.y.of(up)];
  return up.threshold.flatMap((threshold, k): Drawn[] => {
    const x = xs[across === up ? k : placeOf(across, threshold)];
    const y = ys[k];
    return x === null || y === null ? [] : [{ name, x, y }];
  });
}

/** The plane of `axes` with the controls. Lines take the stored curves where there are any, else the figures. */
export function tradeOff(
  points: readonly TradeOffPoint[],
  stops: readonly StopCurve[],
  readers: { readonly probe: string; readonly text: string | null },
  axes: Axes,
): string | null {
  const drawn = points.flatMap(({ name, threshold, x, y }) =>
    'undefinedBecause' in x || 'undefinedBecause' in y ? [] : [{ name, threshold, x: x.estimate, y: y.estimate }],
  );
  if (drawn.length === 0) return null;
  const stored = [
    ...storedLine(SERIES[0].name, readers.probe, stops, axes),
    ...storedLine(SERIES[1].name, readers.text, stops, axes),
  ];
  const has = new Set(stored.map(({ name }) => name));
  const ofFigures = drawn
    .filter(({ name, threshold }) => threshold !== null && !has.has(name))
    .sort((a, b) => (b.threshold ?? 0) - (a.threshold ?? 0));
  const lines: readonly Drawn[] = [...stored, ...ofFigures];
  const single = drawn.filter(({ threshold }) => threshold === null);
  const diagonal = [
    { x: 0, y: 0 },
    { x: 1, y: 1 },
  ];
  const highest = Math.max(...lines.map(({ y }) => y), ...single.map(({ y }) => y));
  return renderPlot(
    {
      width: 356,
      height: 330,
      marginTop: 30,
      marginBottom: 44,
      x: { domain: [0, 1], label: axes.x.label, grid: true, labelOffset: 38 },
      y: { domain: [0, axes.diagonal || highest === 0 ? 1 : highest], label: axes.y.label, grid: true },
      color: { type: 'categorical', domain: SERIES.map(({ name }) => name), range: SERIES.map(({ colour }) => colour) },
      marks: [
        ...(axes.diagonal ? [Plot.line(diagonal, { x: 'x', y: 'y', strokeDasharray: '4 3', strokeOpacity: 0.5 })] : []),
        Plot.line(lines, { x: 'x', y: 'y', z: 'name', stroke: 'name', strokeWidth: 1.5, strokeOpacity: 0.8 }),
        // Hundreds of dots would hide the line that they lie on.
        Plot.dot(lines.length > MOST_DOTS ? ofFigures : lines, { x: 'x', y: 'y', fill: 'name', r: 2.5 }),
        Plot.dot(single, { x: 'x', y: 'y', fill: 'name', stroke: 'currentColor', r: 6 }),
      ],
    },
    `${axes.y.label} against ${axes.x.label}`,
  );
}
