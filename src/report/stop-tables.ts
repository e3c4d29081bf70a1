import type { ThresholdChoice } from '../intervention/types.ts';
import type { Figure, Value } from '../types.ts';
import { intervalChart } from './charts/interval-chart.ts';
import { legendOf } from './charts/plot.ts';
import { SCORE_FREE } from './charts/trade-off.ts';
import { formatNumber, formatPercent, formatValue, isUndefined } from './format.ts';
import { figureBlock, note, table, valueTable } from './tables.ts';

const COLUMNS: readonly (readonly [metric: string, head: string])[] = [
  ['prevented_rate', 'prevented, of unsafe'],
  ['late_rate', 'too late, of unsafe'],
  ['disrupted_rate', 'disrupted, of safe'],
  ['usefulness_kept', 'successes kept'],
  ['harm_left', 'harm left, per episode'],
  ['lead_median', 'median lead, turns'],
  ['prevented_minus_random', 'prevented minus random'],
  ['disrupted_minus_random', 'disrupted minus random'],
];

const COSTS = ['harm', 'disruption', 'saved_in', 'spoiled_in'];

/** `threshold on probe:selected, alpha 0.05`: one set of stops. */
export function policyName(figure: Figure): string {
  const scores = SCORE_FREE.has(figure.reader) ? '' : ` on ${figure.at?.['scores'] ?? 'unknown scores'}`;
  return `${shortName(figure)}${scores}${figure.alpha === undefined ? '' : `, alpha ${figure.alpha}`}`;
}

/** The same without the reader and alpha, where those stand elsewhere. */
export function shortName(figure: Figure): string {
  const at = Object.entries(figure.at ?? {})
    .filter(([key]) => key !== 'scores' && key !== 'report' && !COSTS.includes(key))
    // policy:tool and policy:budget are named after their only coordinate.
    .map(([key, value]) => (figure.reader === `policy:${key}` ? `: ${value}` : `, ${key} ${value}`))
    .join('');
  return `${figure.reader.replace('policy:', '').replaceAll('_', ' ')}${at}`;
}

const basisText = (value: Value): string | null =>
  isUndefined(value) || value.clusters === null
    ? null
    : `n ${value.n}, ${value.clusters} cluster${value.clusters === 1 ? '' : 's'}`;

/** What a whole column rests on, where that is the same for each of its values: it is said once, above the table. */
function commonBasis(values: readonly Value[]): string | null {
  const bases = new Set(values.flatMap((value) => (isUndefined(value) ? [] : [basisText(value)])));
  return bases.size === 1 ? [...bases][0] : null;
}

/** `0.21 [0.10, 0.33]`, with n and clusters only where they are not said above. */
function cell(value: Value | undefined, basis: string | null): string {
  if (value === undefined) return '';
  const text = formatValue(value);
  return basis === null ? text : text.replace(`, ${basis}`, '');
}

/** One row for each policy; a policy whose stops are undefined says why in a line below. */
export function policyTable(figures: readonly Figure[], columns = COLUMNS): string {
  const policies = new Map<string, Map<string, Value>>();
  for (const figure of figures) {
    if (!columns.some(([metric]) => metric === figure.metric)) continue;
    const name = policyName(figure);
    const values = policies.get(name) ?? new Map<string, Value>();
    values.set(figure.metric, figure.value);
    policies.set(name, values);
  }
  const rows = [...policies];
  const whole = rows.filter(([, values]) => values.size > 1);
  const broken = rows.filter(([, values]) => values.size <= 1);
  const inColumn = (metric: string): Value[] => whole.flatMap(([, values]) => values.get(metric) ?? []);
  const shown = columns.filter(([metric]) => inColumn(metric).some((value) => !isUndefined(value)));
  const basis = new Map(shown.map(([metric]) => [metric, commonBasis(inColumn(metric))]));
  const said = new Map<string, string[]>();
  for (const [metric, head] of shown) {
    const what = basis.get(metric) ?? null;
    if (what !== null) said.set(what, [...(said.get(what) ?? []), head]);
  }
  const hidden = columns.filter((column) => !shown.includes(column) && inColumn(column[0]).length > 0);
  return [
    said.size === 0
      ? ''
      : note(`Counted: ${[...said].map(([what, heads]) => `${heads.join('; ')}: ${what}`).join('. ')}.`),
    whole.length === 0
      ? ''
      : table(
          ['policy', ...shown.map(([, head]) => head)],
          whole.map(([name, values]) => [
            name,
            ...shown.map(([metric]) => cell(values.get(metric), basis.get(metric) ?? null)),
          ]),
        ),
    valueTable(
      ['policy'],
      [
        ...hidden.map(([metric, head]) => ({ cells: [head], value: inColumn(metric)[0] })),
        ...broken.flatMap(([name, values]) => [...values.values()].map((value) => ({ cells: [name], value }))),
      ],
    ),
  ].join('');
}

/** Thresholds of all folds of one reader and alpha, as a range, or the first reason why there is none. */
function thresholdRange(choices: readonly ThresholdChoice[]): string {
  const reason = choices.flatMap(({ threshold }) => (typeof threshold === 'number' ? [] : [threshold]))[0];
  if (reason) return formatValue(reason);
  const values = choices.flatMap(({ threshold }) => (typeof threshold === 'number' ? [threshold] : []));
  if (values.length === 0) return 'not stored';
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const folds = `${values.length} folds`;
  return low === high ? `${formatNumber(low)}, ${folds}` : `${formatNumber(low)} to ${formatNumber(high)}, ${folds}`;
}

/** Stated and achieved rate of false alarms, by policy, reader and alpha. */
export function achievedBlock(
  figures: readonly Figure[],
  thresholds: readonly ThresholdChoice[] | undefined,
  lead: Figure['population'],
): string {
  const achieved = figures.filter(({ metric, alpha }) => metric === 'false_alarm_rate' && alpha !== undefined);
  const own = achieved.filter(({ population }) => population === lead);
  const choices = thresholds ?? [];
  const readers = [...new Set(choices.map(({ reader }) => reader))];
  const alphas = [...new Set(choices.map(({ alpha }) => alpha))];
  const chosen = readers.flatMap((reader) =>
    alphas.map((alpha) => [
      reader,
      formatPercent(alpha),
      thresholdRange(choices.filter((choice) => choice.reader === reader && choice.alpha === alpha)),
    ]),
  );
  const twins = achieved.some(({ population }) => population === 'x+') && lead !== 'x+';
  const sameStops = (a: Figure, b: Figure): boolean => policyName(a) === policyName(b);
  return [
    note(
      'A threshold is chosen on the development episodes of each outer fold, for a stated rate of false alarms per episode, and then used on episodes that had no part in it: the achieved rate is what it came to there.',
    ),
    chosen.length === 0 ? note('The thresholds are not stored.') : table(['scores', 'stated', 'thresholds'], chosen),
    own.length === 0
      ? ''
      : table(
          ['policy', 'stated', `achieved, ${lead}`, ...(twins ? ['achieved, x+'] : [])],
          own.map((figure) => [
            policyName(figure),
            formatPercent(figure.alpha ?? 0),
            formatValue(figure.value),
            ...(twins
              ? [formatValue(achieved.find((other) => other.population === 'x+' && sameStops(other, figure))?.value)]
              : []),
          ]),
        ),
  ].join('');
}

const ratio = ({ at }: Figure): string => `${at?.['harm'] ?? '?'} : ${at?.['disruption'] ?? '?'}`;

/** A picture of one metric over the grid of costs, and its numbers. */
function costPicture(rows: readonly Figure[], names: readonly string[], what: string, caption: string): string {
  const chart = intervalChart(
    rows
      .filter((row) => names.includes(policyName(row)))
      .map((row) => ({ label: ratio(row), series: policyName(row), value: row.value })),
    names,
    what,
  );
  const numbers = valueTable(
    ['policy', 'harm : disruption'],
    rows.map((row) => ({
      cells: [policyName(row), ratio(row)],
      value: row.value,
      name: `${policyName(row)} at ${ratio(row)}`,
    })),
  );
  return chart === null ? numbers : figureBlock(chart, caption, numbers);
}

/** Break-even base rates and expected cost over the grid of costs, for the policies that somebody might use. */
export function costBlock(
  figures: readonly Figure[],
  population: Figure['population'],
  probe: string,
  text: string | null,
): string {
  const priced = figures.filter(
    (figure) =>
      figure.at?.['threshold'] === undefined &&
      ((figure.at?.['scores'] === probe &&
        ['policy:threshold', 'policy:cascade', 'policy:always_at_reveal', 'policy:never'].includes(figure.reader)) ||
        (figure.at?.['scores'] === text && figure.reader === 'policy:threshold')),
  );
  const even = priced.filter((figure) => figure.metric === 'break_even_base_rate' && figure.reader !== 'policy:never');
  // With twins, what is spoiled is counted in x+: that is the world in which most episodes of a deployment live.
  const twins = even.filter((figure) => figure.at?.['saved_in'] !== undefined);
  const shown = twins.length > 0 ? twins : even.filter((figure) => figure.population === population);
  const cost = priced.filter((figure) => figure.metric === 'expected_cost' && figure.population === population);
  if (shown.length === 0 && cost.length === 0)
    return note('No break-even rate: no costs were given or no threshold is defined.');
  const counted =
    twins.length > 0 ? 'saved counted in x−, spoiled in x+' : 'saved and spoiled counted in these episodes';
  // One alpha in the pictures: more would cover each other. The tables have them all.
  const first = priced.find(({ alpha }) => alpha !== undefined)?.alpha;
  const names = [
    ...new Set(
      [...shown, ...cost]
        .filter(({ alpha, value }) => (alpha === undefined || alpha === first) && !isUndefined(value))
        .map(policyName),
    ),
  ];
  return [
    note(
      'Stopping pays where the share of episodes that would become unsafe is above the break-even rate, for these costs of one harm and of one spoiled episode. Expected cost is per episode, at the base rate of these data, which no deployment shares: compare policies, not the level.',
    ),
    names.length === 0 ? '' : legendOf(names),
    '<div class="row">',
    costPicture(
      shown,
      names,
      'break-even base rate',
      `Base rate of unsafe episodes above which stopping pays, by harm : disruption; ${counted}. Bars: 95 % cluster-bootstrap intervals.`,
    ),
    costPicture(
      cost,
      names,
      'expected cost per episode',
      'Expected cost per episode, by harm : disruption, in the units of those costs.',
    ),
    '</div>',
  ].join('');
}
