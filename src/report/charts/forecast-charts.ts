import * as Plot from '@observablehq/plot';
import type { Curve } from '../../forecast/types.ts';
import type { Figure } from '../../types.ts';
import { aurocAt, landmarksOf } from '../report-view.ts';
import { COLOURS, renderPlot } from './plot.ts';

/** Readers of the forecast curve, in the order of the legend. */
const READERS: readonly (readonly [string, string])[] = [
  ['probe:selected', 'probe'],
  ['text:best', 'text (best)'],
  ['baseline:layer_0', 'layer 0'],
  ['baseline:step_index', 'step index'],
  ['baseline:token_count', 'token count'],
  ['control:random_direction', 'random direction'],
];

const LEGEND = { domain: READERS.map(([, name]) => name), range: COLOURS.slice(0, READERS.length) };

/** AUROC by landmark with intervals, every reader beside the probe. null where nothing is defined. */
export function forecastCurve(figures: readonly Figure[], population: Figure['population']): string | null {
  const landmarks = landmarksOf(figures);
  const points = landmarks.flatMap((landmark, at) =>
    READERS.flatMap(([reader, name], index) => {
      const value = aurocAt(figures, population, landmark, reader)?.value;
      if (value === undefined || 'undefinedBecause' in value) return [];
      return [
        {
          x: at + (index - (READERS.length - 1) / 2) * 0.12,
          name,
          y: value.estimate,
          lower: value.lower ?? value.estimate,
          upper: value.upper ?? value.estimate,
        },
      ];
    }),
  );
  if (points.length === 0) return null;
  return renderPlot(
    {
      width: 720,
      height: 320,
      marginBottom: 44,
      x: {
        domain: [-0.5, landmarks.length - 0.5],
        ticks: landmarks.map((_, index) => index),
        tickFormat: (index: number) => landmarks[index] ?? '',
        label: null,
      },
      y: { domain: [0, 1], label: 'AUROC within folds', grid: true },
      color: LEGEND,
      marks: [
        Plot.ruleY([0.5], { strokeDasharray: '4 3', strokeOpacity: 0.6 }),
        Plot.ruleX(points, { x: 'x', y1: 'lower', y2: 'upper', stroke: 'name', strokeWidth: 1.5 }),
        Plot.dot(points, { x: 'x', y: 'y', fill: 'name', r: 4 }),
      ],
    },
    'AUROC of every reader at every landmark, with 95 % intervals',
  );
}

export const legend = (): string =>
  `<p class="legend">${READERS.map(([, name], index) => `<span><i style="background:${COLOURS[index]}"></i>${name}</span>`).join('')}</p>`;

/** Layer × position map of the unselected search at one landmark. */
export function aurocMap(
  figures: readonly Figure[],
  population: Figure['population'],
  landmark: string,
  taps: readonly string[],
): string | null {
  const cells = figures.flatMap((figure) => {
    if (figure.metric !== 'auroc_within_fold' || figure.landmark !== landmark || figure.population !== population)
      return [];
    if (
      figure.at?.['search'] !== 'unselected' ||
      figure.reader !== 'probe:logistic' ||
      figure.tap === null ||
      'undefinedBecause' in figure.value
    )
      return [];
    if (figure.group !== undefined || figure.at['trained_on'] !== undefined) return [];
    return [{ tap: figure.tap, position: figure.position, auroc: figure.value.estimate }];
  });
  if (cells.length === 0) return null;
  const positions = [...new Set(cells.map((cell) => cell.position))];
  return renderPlot(
    {
      width: 720,
      height: 60 + positions.length * 40,
      marginLeft: 110,
      marginBottom: 70,
      x: { domain: taps.filter((tap) => cells.some((cell) => cell.tap === tap)), tickRotate: -45, label: null },
      y: { domain: positions, label: null },
      color: { type: 'diverging', scheme: 'PuOr', domain: [0, 1], pivot: 0.5 },
      marks: [
        Plot.cell(cells, { x: 'tap', y: 'position', fill: 'auroc', inset: 0.5 }),
        Plot.text(cells, {
          x: 'tap',
          y: 'position',
          text: (cell: { auroc: number }) => cell.auroc.toFixed(2),
          fill: (cell: { auroc: number }) => (Math.abs(cell.auroc - 0.5) > 0.3 ? 'white' : 'black'),
          fontSize: 10,
        }),
      ],
    },
    `AUROC of every layer and position at ${landmark}; a search, nothing selected`,
  );
}

/** Curves of one kind, one line a reader. */
export function curveChart(
  curves: readonly Curve[],
  kind: Curve['kind'],
  readers: readonly string[],
  axes: { readonly x: string; readonly y: string },
): string | null {
  // One line a reader: at the selected position where several were searched.
  const points = readers.flatMap((reader) => {
    const own = curves.filter((curve) => curve.kind === kind && curve.reader === reader);
    const shown = own.find((curve) => curve.position === 'selected') ?? own[0];
    return shown === undefined ? [] : shown.x.map((x, index) => ({ x, y: shown.y[index], name: reader }));
  });
  if (points.length === 0) return null;
  return renderPlot(
    {
      width: 360,
      height: 320,
      x: { label: axes.x, domain: kind === 'lead_time' ? undefined : [0, 1], grid: true },
      y: { label: axes.y, domain: kind === 'lead_time' ? undefined : [0, 1], grid: true },
      color: { domain: [...readers], range: COLOURS.slice(0, readers.length) },
      marks: [
        ...(kind === 'lead_time'
          ? []
          : [
              Plot.line(
                [
                  { x: 0, y: 0 },
                  { x: 1, y: 1 },
                ],
                { x: 'x', y: 'y', strokeDasharray: '4 3', strokeOpacity: 0.5 },
              ),
            ]),
        Plot.line(points, {
          x: 'x',
          y: 'y',
          stroke: 'name',
          strokeWidth: 2,
          curve: kind === 'reliability' ? 'linear' : 'step-after',
        }),
      ],
    },
    `${axes.y} against ${axes.x}, ${readers.join(' and ')}`,
  );
}
