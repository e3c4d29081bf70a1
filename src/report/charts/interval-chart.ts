import * as Plot from '@observablehq/plot';
import type { Value } from '../../types.ts';
import { COLOURS, renderPlot } from './plot.ts';

/** One number with its interval; rows of one label stand under each other, coloured by series. */
export interface IntervalRow {
  readonly label: string;
  readonly series: string;
  readonly value: Value;
}

/** Letters that fit beside the plot; the whole label is in the table under it. */
const LABEL = 26;

/**
 * Dots with intervals, one line for each label and series, in the order given. null where nothing is defined.
 * @param names series in the order of their colours, as in the legend
 */
export function intervalChart(rows: readonly IntervalRow[], names: readonly string[], what: string): string | null {
  const labels = [...new Set(rows.map(({ label }) => label))];
  const points = rows.flatMap(({ label, series, value }) => {
    if ('undefinedBecause' in value) return [];
    const { estimate, lower, upper } = value;
    // Series of one label do not cover each other.
    const y = labels.indexOf(label) + (names.indexOf(series) - (names.length - 1) / 2) * (0.7 / names.length);
    return [{ y, series, x: estimate, lower: lower ?? estimate, upper: upper ?? estimate }];
  });
  if (points.length === 0) return null;
  const highest = Math.max(...points.map(({ upper }) => upper));
  const lowest = Math.min(0, ...points.map(({ lower }) => lower));
  return renderPlot(
    {
      width: 356,
      height: 60 + labels.length * Math.max(24, names.length * 12),
      marginLeft: 14 + 6.4 * Math.min(LABEL, Math.max(...labels.map((label) => label.length))),
      marginBottom: 40,
      x: { domain: [lowest, highest > 0 ? highest : 1], label: what, grid: true, ticks: 4, labelOffset: 34 },
      y: {
        domain: [labels.length - 0.5, -0.5],
        ticks: labels.map((_, index) => index),
        tickFormat: (index: number) => {
          const label = labels[index] ?? '';
          return label.length > LABEL ? `${label.slice(0, LABEL - 1)}…` : label;
        },
        label: null,
      },
      color: {
        type: 'categorical',
        domain: [...names],
        range: names.map((_, index) => COLOURS[index % COLOURS.length]),
      },
      marks: [
        Plot.ruleY(points, { y: 'y', x1: 'lower', x2: 'upper', stroke: 'series', strokeWidth: 1.5 }),
        Plot.dot(points, { x: 'x', y: 'y', fill: 'series', r: 4 }),
      ],
    },
    what,
  );
}
