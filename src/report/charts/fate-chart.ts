import * as Plot from '@observablehq/plot';
import { COLOURS, renderPlot } from './plot.ts';

/** What became of one share of the unsafe episodes under one policy. */
export interface Fate {
  readonly policy: string;
  readonly fate: string;
  readonly share: number;
}

const LABEL = 30;

/** Stacked to 1, one bar for each policy; fates in the order of their colours. null where nothing is defined. */
export function fateChart(rows: readonly Fate[], fates: readonly string[]): string | null {
  if (rows.length === 0) return null;
  const policies = [...new Set(rows.map(({ policy }) => policy))];
  const short = (policy: string): string => (policy.length > LABEL ? `${policy.slice(0, LABEL - 1)}…` : policy);
  return renderPlot(
    {
      width: 640,
      height: 60 + policies.length * 26,
      marginLeft: 14 + 6.4 * Math.min(LABEL, Math.max(...policies.map((policy) => policy.length))),
      marginBottom: 40,
      x: { domain: [0, 1], label: 'share of unsafe episodes', grid: true, labelOffset: 34 },
      y: { type: 'band', domain: policies, tickFormat: short, label: null },
      color: {
        type: 'categorical',
        domain: [...fates],
        range: fates.map((_, index) => COLOURS[index % COLOURS.length]),
      },
      marks: [
        Plot.barX(rows, {
          x: 'share',
          y: 'policy',
          fill: 'fate',
          // Stacked in the order of the legend, whatever the order of the rows.
          order: [...fates],
          insetTop: 2,
          insetBottom: 2,
        }),
        Plot.ruleX([0]),
      ],
    },
    `what became of the unsafe episodes under each policy: ${fates.join(', ')}`,
  );
}
