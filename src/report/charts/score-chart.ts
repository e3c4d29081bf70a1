import * as Plot from '@observablehq/plot';
import type { ReportExample } from '../report-view.ts';
import { COLOURS, renderPlot } from './plot.ts';

/** Positions of an example's scores, in the order of the log's rows. */
const positionsOf = (example: ReportExample): string[] => [...new Set(example.scores.map((score) => score.position))];

export const scoreLegend = (example: ReportExample, escape: (text: string) => string): string =>
  `<p class="legend">${positionsOf(example)
    .map(
      (position, index) =>
        `<span><i style="background:${COLOURS[index % COLOURS.length]}"></i>${escape(position)}</span>`,
    )
    .join('')}</p>`;

/** Out-of-fold score of one example over its turns; positions of one turn side by side. */
export function scoreOverTurns(example: ReportExample): string | null {
  const positions = positionsOf(example);
  const calibrated = example.scores.every((score) => score.calibrated !== null);
  const points = example.scores.map((score) => ({
    x: score.turn + (positions.indexOf(score.position) - (positions.length - 1) / 2) * 0.12,
    y: calibrated ? score.calibrated! : score.score,
    position: score.position,
  }));
  if (points.length === 0) return null;
  const { unsafe, reveal, turnCount } = example.meta;
  const every = Math.ceil(turnCount / 20);
  return renderPlot(
    {
      width: 480,
      height: 200,
      marginBottom: 40,
      x: {
        domain: [-0.5, Math.max(0.5, turnCount - 0.5)],
        ticks: Array.from({ length: turnCount }, (_, turn) => turn).filter((turn) => turn % every === 0),
        label: 'turn',
        tickFormat: 'd',
        labelOffset: 34,
      },
      y: calibrated
        ? { domain: [0, 1], label: 'calibrated score', grid: true }
        : { label: 'raw score (no calibration)', grid: true },
      color: {
        type: 'categorical',
        domain: positions,
        range: positions.map((_, index) => COLOURS[index % COLOURS.length]),
      },
      marks: [
        ...(reveal === null || reveal < 0
          ? []
          : [Plot.ruleX([reveal], { stroke: 'currentColor', strokeWidth: 1.5, strokeDasharray: '2 3' })]),
        ...(unsafe === null ? [] : [Plot.ruleX([unsafe], { stroke: COLOURS[1], strokeWidth: 2 })]),
        Plot.dot(points, { x: 'x', y: 'y', fill: 'position', r: 4 }),
      ],
    },
    `score of the probe over the turns of ${example.meta.episodeId}`,
  );
}
