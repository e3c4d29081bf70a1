import * as Plot from '@observablehq/plot';
import type { Figure } from '../../types.ts';
import { aurocAt, BEST_TEXT, headlineProbe, landmarksOf } from '../report-view.ts';
import { COLOURS, legendOf, renderPlot } from './plot.ts';

/** Readers beside the probe, in the order of the legend. The majority class is ½ by construction: the dashed line. */
const BESIDE: readonly (readonly [string, string])[] = [
  [BEST_TEXT, 'text (best)'],
  ['baseline:layer_0', 'layer 0'],
  ['baseline:step_index', 'step index'],
  ['baseline:token_count', 'token count'],
  ['control:random_direction', 'random direction'],
  ['baseline:tool_name', 'tool names'],
  ['baseline:group_base_rate', 'base rate of the template'],
];

const NAMES = ['probe', ...BESIDE.map(([, name]) => name)];
/** Dots of neighbours in turn as discs and squares: eight colours alone are too many to tell apart. */
const SYMBOLS = NAMES.map((_, index) => (index % 2 === 0 ? 'circle' : 'square'));

interface CurvePoint {
  readonly x: number;
  readonly name: string;
  readonly y: number;
  readonly lower: number;
  readonly upper: number;
}

function curvePoints(figures: readonly Figure[], population: Figure['population']): readonly CurvePoint[] {
  const readers = [[headlineProbe(figures), 'probe'] as const, ...BESIDE];
  return landmarksOf(figures).flatMap((landmark, at) =>
    readers.flatMap(([reader, name], index) => {
      const value = aurocAt(figures, population, landmark, reader)?.value;
      if (value === undefined || 'undefinedBecause' in value) return [];
      const { estimate, lower, upper } = value;
      const x = at + (index - (readers.length - 1) / 2) * 0.1;
      return [{ x, name, y: estimate, lower: lower ?? estimate, upper: upper ?? estimate }];
    }),
  );
}

/** AUROC by landmark with intervals, every reader beside the probe. null where nothing is defined. */
export function forecastCurve(figures: readonly Figure[], population: Figure['population']): string | null {
  const landmarks = landmarksOf(figures);
  const points = curvePoints(figures, population);
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
      color: { domain: NAMES, range: [...COLOURS] },
      symbol: { domain: NAMES, range: SYMBOLS },
      marks: [
        Plot.ruleY([0.5], { strokeDasharray: '4 3', strokeOpacity: 0.6 }),
        Plot.ruleX(points, { x: 'x', y1: 'lower', y2: 'upper', stroke: 'name', strokeWidth: 1.5 }),
        Plot.dot(points, { x: 'x', y: 'y', fill: 'name', symbol: 'name', r: 4 }),
      ],
    },
    'AUROC of every reader at every landmark, with 95 % intervals',
  );
}

/** The readers that are drawn. */
export function legend(figures: readonly Figure[], population: Figure['population']): string {
  const drawn = new Set(curvePoints(figures, population).map(({ name }) => name));
  return legendOf(
    NAMES,
    (name) => drawn.has(name),
    (index) => SYMBOLS[index] === 'square',
  );
}
