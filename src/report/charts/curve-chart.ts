import * as Plot from '@observablehq/plot';
import type { Curve } from '../../forecast/types.ts';
import { COLOURS, renderPlot } from './plot.ts';

export interface NamedCurve {
  readonly name: string;
  readonly curve: Curve;
}

/** One curve for each reader, at the selected position where several were searched. */
export function curvesOf(curves: readonly Curve[], kind: Curve['kind'], readers: readonly string[]): NamedCurve[] {
  return readers.flatMap((name) => {
    const own = curves.filter((curve) => curve.kind === kind && curve.reader === name);
    const curve = own.find(({ position }) => position === 'selected') ?? own[0];
    return curve === undefined ? [] : [{ name, curve }];
  });
}

/** Curves of one kind, the colours in the order given. null where there is none. */
export function curveChart(
  shown: readonly NamedCurve[],
  axes: { readonly x: string; readonly y: string },
  names: readonly string[],
): string | null {
  if (shown.length === 0) return null;
  const kind = shown[0].curve.kind;
  const points = shown.flatMap(({ name, curve }) => curve.x.map((x, index) => ({ x, y: curve.y[index], name })));
  const turns = kind === 'lead_time' ? [...new Set(points.map((point) => point.x))].sort((a, b) => a - b) : null;
  const diagonal = [
    { x: 0, y: 0 },
    { x: 1, y: 1 },
  ];
  return renderPlot(
    {
      width: 360,
      height: 320,
      marginBottom: 42,
      x:
        turns === null
          ? { label: axes.x, domain: [0, 1], grid: true, labelOffset: 36 }
          : {
              label: axes.x,
              ticks: turns.filter((_, i) => i % Math.ceil(turns.length / 8) === 0),
              tickFormat: 'd',
              labelOffset: 36,
            },
      y: { label: axes.y, domain: [0, 1], grid: true },
      color: {
        type: 'categorical',
        domain: [...names],
        range: names.map((_, index) => COLOURS[index % COLOURS.length]),
      },
      marks: [
        ...(turns === null
          ? [Plot.line(diagonal, { x: 'x', y: 'y', strokeDasharray: '4 3', strokeOpacity: 0.5 })]
          : []),
        Plot.line(points, {
          x: 'x',
          y: 'y',
          // Said, since curves of few points look like numbers to the library's guess.
          z: 'name',
          stroke: 'name',
          strokeWidth: 2,
          strokeOpacity: 0.85,
          curve: kind === 'roc' ? 'step-after' : 'linear',
        }),
        ...(kind === 'roc' ? [] : [Plot.dot(points, { x: 'x', y: 'y', fill: 'name', r: 3 })]),
      ],
    },
    `${axes.y} against ${axes.x}: ${shown.map(({ name }) => name).join(', ')}`,
  );
}
