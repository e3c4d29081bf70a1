import type { Figure, Value } from '../types.ts';
import { escapeHtml } from './escape.ts';
import { formatValue, isUndefined } from './format.ts';

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return `<div class="scroll" tabindex="0"><table><thead><tr>${head.map((cell) => `<th scope="col">${escapeHtml(cell)}</th>`).join('')}</tr></thead><tbody>${rows
    .map((row) => `<tr>${row.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`)
    .join('')}</tbody></table></div>`;
}

export const details = (summary: string, html: string): string =>
  `<details><summary>${escapeHtml(summary)}</summary>${html}</details>`;

export const note = (text: string): string => `<p class="note">${escapeHtml(text)}</p>`;

/** A picture with its caption and the numbers behind it, or a sentence where nothing is defined. */
export function figureBlock(svg: string | null, caption: string, numbers = ''): string {
  if (svg === null) return note(`No picture: nothing here is defined. ${caption}`);
  return `<figure><div class="scroll chart" tabindex="0">${svg}</div><figcaption>${escapeHtml(caption)}</figcaption>${numbers === '' ? '' : details('The numbers of this picture', numbers)}</figure>`;
}

/** `metric, minus text:best`: a figure's metric with the coordinates of `at`. */
export function metricName(figure: Figure): string {
  const at = Object.entries(figure.at ?? {}).map(([key, value]) => `${key.replaceAll('_', ' ')} ${value}`);
  return [figure.metric, ...at, ...(figure.group === undefined ? [] : [figure.group])].join(', ');
}

export interface ValueRow {
  readonly cells: readonly string[];
  readonly value: Value | undefined;
  /** What stands in the list of what is undefined; absent = the cells. */
  readonly name?: string;
}

/** Rows with a number as a table; those without, one line for each reason, so that a reason is not read forty times. */
export function valueTable(head: readonly string[], rows: readonly ValueRow[]): string {
  const reasons = new Map<string, string[]>();
  const defined: string[][] = [];
  for (const { cells, value, name } of rows) {
    if (value !== undefined && !isUndefined(value)) {
      defined.push([...cells, formatValue(value)]);
      continue;
    }
    const reason = value === undefined ? 'not measured' : value.undefinedBecause;
    const names = reasons.get(reason) ?? [];
    names.push(name ?? cells.filter((cell) => cell !== '').join(' '));
    reasons.set(reason, names);
  }
  const list = [...reasons].map(
    ([reason, names]) => `<li>${escapeHtml(`${reason}: ${[...new Set(names)].join('; ')}`)}</li>`,
  );
  return [
    defined.length === 0 ? '' : table([...head, 'value'], defined),
    list.length === 0 ? '' : `<p class="note">No number, because</p><ul class="note">${list.join('')}</ul>`,
  ].join('');
}

/** Any figures, one a row. */
export function figureTable(figures: readonly Figure[]): string {
  return valueTable(
    ['landmark', 'position', 'reader', 'metric'],
    figures.map((figure) => ({
      cells: [figure.landmark, figure.position, figure.reader, metricName(figure)],
      value: figure.value,
    })),
  );
}

/** At most `most` points of a curve, ends included: a table of thousands is read by nobody. */
export function thin<T>(points: readonly T[], most = 60): readonly T[] {
  if (points.length <= most) return points;
  return Array.from({ length: most }, (_, index) => points[Math.round((index * (points.length - 1)) / (most - 1))]);
}
