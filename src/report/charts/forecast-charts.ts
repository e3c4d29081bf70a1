import * as Plot from '@observablehq/plot';
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
