import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';
import { escapeHtml, showUnseen } from '../escape.ts';

/** Colours that stay apart for colour-blind readers (Okabe and Ito 2008). */
export const COLOURS = [
  '#0072b2',
  '#d55e00',
  '#009e73',
  '#cc79a7',
  '#e69f00',
  '#56b4e9',
  '#7f7f7f',
  'currentColor',
] as const;

/** Names with the colours of their place in `COLOURS`; those not `shown` keep their colour and are left out. */
export function legendOf(
  names: readonly string[],
  shown: (name: string) => boolean = () => true,
  square: (index: number) => boolean = () => false,
): string {
  const entry = (name: string, index: number): string =>
    `<span><i${square(index) ? ' class="square"' : ''} style="background:${COLOURS[index % COLOURS.length]}"></i>${escapeHtml(name)}</span>`;
  return `<p class="legend">${names.map((name, index) => (shown(name) ? entry(name, index) : '')).join('')}</p>`;
}

/** Renders a plot on the server. `label` is what a screen reader says. */
export function renderPlot(options: Plot.PlotOptions, label: string): string {
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const node = Plot.plot({
    ...options,
    document: document as never,
    style: { background: 'transparent', color: 'currentColor', fontFamily: 'inherit', fontSize: '12px' },
  });
  const html = (node as unknown as { outerHTML: string }).outerHTML;
  // linkedom leaves < and > as they are inside attributes, and labels hold ids of the data.
  return showUnseen(html.replace(/^<svg /, () => `<svg role="img" aria-label="${escapeHtml(label)}" `));
}
