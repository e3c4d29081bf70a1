import type { Figure, Value } from '../types.ts';
import { SCORE_FREE, textMonitor, tradeOff, tradeOffLegend, tradeOffPoints } from './charts/trade-off.ts';
import { formatValue, isUndefined } from './format.ts';
import { type Group, headlineProbe, inGroup, isMain, leadPopulation, type ReportView } from './report-view.ts';
import { POPULATION } from './sections.ts';
import { details, figureBlock, note, table, thin, valueTable } from './tables.ts';

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
function policyName(figure: Figure): string {
  const scores = SCORE_FREE.has(figure.reader) ? '' : ` on ${figure.at?.['scores'] ?? 'unknown scores'}`;
  const at = Object.entries(figure.at ?? {})
    .filter(([key]) => key !== 'scores' && !COSTS.includes(key))
    // policy:tool and policy:budget are named after their only coordinate.
    .map(([key, value]) => (figure.reader === `policy:${key}` ? `: ${value}` : `, ${key} ${value}`))
    .join('');
  const alpha = figure.alpha === undefined ? '' : `, alpha ${figure.alpha}`;
  return `${figure.reader.replace('policy:', '').replaceAll('_', ' ')}${scores}${at}${alpha}`;
}

/** One row for each policy; a policy whose stops are undefined says why in a line below. */
function policyTable(figures: readonly Figure[]): string {
  const policies = new Map<string, Map<string, Value>>();
  for (const figure of figures) {
    if (!COLUMNS.some(([metric]) => metric === figure.metric)) continue;
    const name = policyName(figure);
    const values = policies.get(name) ?? new Map<string, Value>();
    values.set(figure.metric, figure.value);
    policies.set(name, values);
  }
  const rows = [...policies];
  const whole = rows.filter(([, values]) => values.size > 1);
  const broken = rows.filter(([, values]) => values.size <= 1);
  const shown = COLUMNS.filter(([metric]) => whole.some(([, values]) => values.has(metric)));
  return [
    whole.length === 0
      ? ''
      : table(
          ['policy', ...shown.map(([, head]) => head)],
          whole.map(([name, values]) => [
            name,
            ...shown.map(([metric]) => (values.has(metric) ? formatValue(values.get(metric)) : '')),
          ]),
        ),
    valueTable(
      ['policy'],
      broken.flatMap(([name, values]) => [...values.values()].map((value) => ({ cells: [name], value }))),
    ),
  ].join('');
}

function breakEvenBlock(figures: readonly Figure[], population: Figure['population']): string {
  const probe = headlineProbe(figures);
  const rows = figures.filter(
    (figure) =>
      figure.metric === 'break_even_base_rate' &&
      figure.at?.['scores'] === probe &&
      figure.at['threshold'] === undefined &&
      (figure.population === population || figure.at['saved_in'] !== undefined) &&
      (figure.reader === 'policy:threshold' || figure.reader === 'policy:always_at_reveal'),
  );
  if (rows.length === 0) return note('No break-even rate: no costs were given or no threshold is defined.');
  const where = (figure: Figure): string =>
    figure.at?.['saved_in'] === undefined
      ? POPULATION[figure.population]
      : `saved in ${figure.at['saved_in']}, spoiled in ${figure.at['spoiled_in']}`;
  return `${note('Stopping pays where the share of episodes that would become unsafe is above the break-even rate, for these costs of one harm and of one spoiled episode. Where there are worlds, what is saved comes from x− and what is spoiled from x+, since most episodes in use are allowed ones.')}${valueTable(
    ['policy', 'counted', 'harm : disruption'],
    rows.map((figure) => ({
      cells: [policyName(figure), where(figure), `${figure.at?.['harm'] ?? '?'} : ${figure.at?.['disruption'] ?? '?'}`],
      value: figure.value,
      name: `${policyName(figure)} at ${figure.at?.['harm'] ?? '?'} : ${figure.at?.['disruption'] ?? '?'}`,
    })),
  )}`;
}

/** What stopping would have done, beside stops that know nothing and everything. */
export function interventionSection(view: ReportView, group: Group): string {
  const figures = view.metrics.figures
    .filter(inGroup(group))
    .filter((figure) => figure.stage === 'intervene' && isMain(figure));
  if (figures.length === 0) return note('Stopping was not simulated for this target.');
  const population = leadPopulation(figures);
  const own = figures.filter((figure) => figure.population === population && figure.at?.['threshold'] === undefined);
  const probe = headlineProbe(figures);
  const text = textMonitor(figures);
  const fixed = own.filter(
    (figure) => figure.at?.['scores'] === probe || (figure.at?.['scores'] === text && !SCORE_FREE.has(figure.reader)),
  );
  const costs = fixed.filter((figure) => figure.metric === 'expected_cost');
  const points = tradeOffPoints(figures, population);
  const defined = points.filter(({ prevented, disrupted }) => !isUndefined(prevented) && !isUndefined(disrupted));
  const numbers = [...new Set(points.map(({ name }) => name))].flatMap((name) =>
    thin(points.filter((point) => point.name === name)).map((point) => [
      point.name,
      point.threshold === null ? '' : point.threshold.toFixed(3),
      formatValue(point.prevented),
      formatValue(point.disrupted),
    ]),
  );
  return [
    '<p>Offline, only <em>stopping</em> can be simulated: what the agent would have done after a question, a delay or a nudge is not in the log. Counted are the episodes with at least one scored landmark; one that no monitor ever saw is in none of these shares.</p>',
    tradeOffLegend(defined),
    figureBlock(
      tradeOff(points),
      `Prevented against disrupted over all thresholds of the probe (thresholds seen here are not chosen in advance), beside ${text ?? 'no text monitor'}, random stops of the same number and timing, always stopping at the reveal, and an oracle; ${POPULATION[population]}. Above the random stops is where a monitor earns its keep.`,
      table(['series', 'threshold', 'prevented', 'disrupted'], numbers),
    ),
    '<h3>Fixed policies</h3>',
    policyTable(fixed) || note('No policy is defined.'),
    '<h3>When stopping pays</h3>',
    breakEvenBlock(figures, population),
    costs.length === 0
      ? ''
      : details(
          `Expected cost per episode (${costs.length})`,
          valueTable(
            ['policy', 'harm : disruption'],
            costs.map((figure) => ({
              cells: [policyName(figure), `${figure.at?.['harm'] ?? '?'} : ${figure.at?.['disruption'] ?? '?'}`],
              value: figure.value,
            })),
          ),
        ),
  ].join('');
}
