import * as Plot from '@observablehq/plot';
import type { Figure } from '../../types.ts';
import { HEADLINE, isMain, type ReportExample } from '../report-view.ts';
import { COLOURS, renderPlot } from './plot.ts';

const estimate = (figure: Figure): number | null => ('undefinedBecause' in figure.value ? null : figure.value.estimate);

/** Prevented against disrupted over all thresholds, beside the controls. */
export function tradeOff(figures: readonly Figure[], population: Figure['population']): string | null {
  const key = (figure: Figure): string =>
    `${figure.reader} ${JSON.stringify({ ...figure.at, harm: undefined, disruption: undefined })} ${figure.alpha ?? ''}`;
  const disrupted = new Map<string, number>();
  const own = figures.filter(
    (figure) => figure.stage === 'intervene' && figure.population === population && isMain(figure),
  );
  for (const figure of own)
    if (figure.metric === 'disrupted_rate') disrupted.set(key(figure), estimate(figure) ?? Number.NaN);
  const points = own.flatMap((figure) => {
    if (figure.metric !== 'prevented_rate') return [];
    const [x, y] = [disrupted.get(key(figure)), estimate(figure)];
    if (x === undefined || !Number.isFinite(x) || y === null) return [];
    const scores = figure.at?.['scores'];
    if (
      figure.reader.startsWith('policy:') &&
      scores !== undefined &&
      scores !== HEADLINE.probe &&
      scores !== 'text:so_far'
    )
      return [];
    const name = figure.reader.startsWith('policy:')
      ? scores === 'text:so_far'
        ? 'text monitor'
        : 'probe'
      : figure.reader.replace('control:', '');
    return [{ x, y, name }];
  });
  if (points.length === 0) return null;
  const names = [...new Set(points.map((point) => point.name))];
  return renderPlot(
    {
      width: 460,
      height: 340,
      x: { domain: [0, 1], label: 'safe episodes stopped (disrupted)', grid: true },
      y: { domain: [0, 1], label: 'unsafe episodes stopped in time (prevented)', grid: true },
      color: { domain: names, range: names.map((_, index) => COLOURS[index % COLOURS.length]), legend: false },
      marks: [
        Plot.line(
          [
            { x: 0, y: 0 },
            { x: 1, y: 1 },
          ],
          { x: 'x', y: 'y', strokeDasharray: '4 3', strokeOpacity: 0.5 },
        ),
        Plot.dot(points, { x: 'x', y: 'y', fill: 'name', r: 3.5, fillOpacity: 0.8 }),
        Plot.text(
          names.map((name) =>
            points
              .filter((point) => point.name === name)
              .reduce((best, point) => (point.y - point.x > best.y - best.x ? point : best)),
          ),
          { x: 'x', y: 'y', text: 'name', dy: -9, fill: 'currentColor', fontSize: 11 },
        ),
      ],
    },
    'share of unsafe episodes stopped in time against share of safe episodes stopped',
  );
}

/** Out-of-fold score of one example over its turns. */
export function scoreOverTurns(example: ReportExample): string | null {
  const points = example.scores.map((score) => ({
    x: score.turn,
    y: score.calibrated ?? score.score,
    name: `${score.landmark} ${score.position}`,
  }));
  if (points.length === 0) return null;
  const { unsafe, reveal } = example.meta;
  return renderPlot(
    {
      width: 460,
      height: 200,
      x: { domain: [-0.5, example.meta.turnCount - 0.5], label: 'turn', tickFormat: 'd' },
      y: { domain: [0, 1], label: 'calibrated score', grid: true },
      marks: [
        ...(reveal === null || reveal < 0
          ? []
          : [Plot.ruleX([reveal], { stroke: COLOURS[2], strokeWidth: 2, strokeDasharray: '2 2' })]),
        ...(unsafe === null ? [] : [Plot.ruleX([unsafe], { stroke: COLOURS[1], strokeWidth: 2 })]),
        Plot.dot(points, { x: 'x', y: 'y', fill: COLOURS[0], r: 4 }),
      ],
    },
    `score of the probe over the turns of ${example.meta.episodeId}`,
  );
}
