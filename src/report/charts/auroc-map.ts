import * as Plot from '@observablehq/plot';
import type { Figure } from '../../types.ts';
import { renderPlot } from './plot.ts';

export interface MapCell {
  readonly tap: string;
  readonly position: string;
  readonly figure: Figure;
  /** Outer folds whose training side chose this tap and position. */
  readonly chosen: number;
}

/** More taps than this have no room for digits; the table beside the picture has them. */
const TAPS_WITH_DIGITS = 20;

/** Cells of the unselected search at one landmark: the logistic readers where there are any. */
export function mapCells(
  figures: readonly Figure[],
  population: Figure['population'],
  landmark: string,
  chosen: (tap: string, position: string) => number,
): readonly MapCell[] {
  const cells = figures.filter(
    (figure) =>
      figure.metric === 'auroc_within_fold' &&
      figure.landmark === landmark &&
      figure.population === population &&
      figure.at?.['search'] === 'unselected' &&
      figure.reader.startsWith('probe:') &&
      figure.tap !== null &&
      figure.group === undefined &&
      figure.split === undefined &&
      figure.at['trained_on'] === undefined,
  );
  const readers = [...new Set(cells.map((figure) => figure.reader))];
  const reader = readers.includes('probe:logistic') ? 'probe:logistic' : readers[0];
  return cells
    .filter((figure) => figure.reader === reader)
    .map((figure) => ({
      tap: figure.tap!,
      position: figure.position,
      figure,
      chosen: chosen(figure.tap!, figure.position),
    }));
}

/** Layer × position map of the unselected search at one landmark. null where no cell is defined. */
export function aurocMap(cells: readonly MapCell[], landmark: string, taps: readonly string[]): string | null {
  const drawn = cells.flatMap((cell) =>
    'undefinedBecause' in cell.figure.value ? [] : [{ ...cell, auroc: cell.figure.value.estimate }],
  );
  if (drawn.length === 0) return null;
  const positions = [...new Set(cells.map((cell) => cell.position))];
  const shown = taps.filter((tap) => cells.some((cell) => cell.tap === tap));
  const every = Math.ceil(shown.length / 24);
  return renderPlot(
    {
      width: 760,
      height: 100 + positions.length * 32,
      marginTop: 10,
      marginLeft: 120,
      marginBottom: 90,
      x: {
        type: 'band',
        domain: shown,
        ticks: shown.filter((_, index) => index % every === 0),
        tickRotate: -45,
        label: null,
      },
      y: { type: 'band', domain: positions, label: null },
      color: { type: 'diverging', scheme: 'PuOr', domain: [0, 1], pivot: 0.5 },
      marks: [
        Plot.cell(drawn, { x: 'tap', y: 'position', fill: 'auroc', inset: 0.5 }),
        Plot.cell(
          drawn.filter((cell) => cell.chosen > 0),
          { x: 'tap', y: 'position', fill: 'none', stroke: 'currentColor', strokeWidth: 2, inset: 1 },
        ),
        ...(shown.length > TAPS_WITH_DIGITS
          ? []
          : [
              Plot.text(drawn, {
                x: 'tap',
                y: 'position',
                text: (cell: { auroc: number }) => cell.auroc.toFixed(2),
                fill: (cell: { auroc: number }) => (Math.abs(cell.auroc - 0.5) > 0.3 ? 'white' : 'black'),
                fontSize: 11,
              }),
            ]),
      ],
    },
    `AUROC of every layer and position at ${landmark}; a search, nothing selected`,
  );
}
