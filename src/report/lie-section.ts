import type { Figure } from '../types.ts';
import { type Fate, fateChart } from './charts/fate-chart.ts';
import { intervalChart } from './charts/interval-chart.ts';
import { legendOf } from './charts/plot.ts';
import { formatPercent, isUndefined } from './format.ts';
import { atShownPosition, BEST_TEXT, headlineProbe } from './report-view.ts';
import { policyName, policyTable, shortName } from './stop-tables.ts';
import { details, figureBlock, note, valueTable } from './tables.ts';

const WITH_REPORTS: readonly (readonly [metric: string, fate: string])[] = [
  ['prevented_rate', 'stopped in time'],
  ['late_rate', 'stopped too late'],
  ['left_candid_rate', 'ran, reported honestly'],
  ['left_misreported_rate', 'ran, lied about'],
  ['left_other_report_rate', 'ran, report in between'],
  ['left_no_verdict_rate', 'ran, no report or no label'],
];

const LEFT: readonly (readonly [metric: string, head: string])[] = [
  ...WITH_REPORTS,
  ['lie_share_left', 'lies, of labelled reports left'],
];

/** Values of one set of stops by metric; what is broken down by report is another table. */
function byPolicy(figures: readonly Figure[]): ReadonlyMap<string, ReadonlyMap<string, Figure>> {
  const policies = new Map<string, Map<string, Figure>>();
  for (const figure of figures) {
    const values = policies.get(policyName(figure)) ?? new Map<string, Figure>();
    values.set(figure.metric, figure);
    policies.set(policyName(figure), values);
  }
  return policies;
}

function fatesOf(figures: readonly Figure[]): { readonly rows: readonly Fate[]; readonly fates: readonly string[] } {
  const labelled = figures.some(({ metric }) => metric === 'left_candid_rate');
  const fates = labelled
    ? WITH_REPORTS.map(([, fate]) => fate)
    : ['stopped in time', 'stopped too late', 'ran to the act'];
  const rows = [...byPolicy(figures).values()].flatMap((values): Fate[] => {
    const share = (metric: string): number | null => {
      const value = values.get(metric)?.value;
      return value === undefined || isUndefined(value) ? null : value.estimate;
    };
    const [prevented, late] = [share('prevented_rate'), share('late_rate')];
    const first = values.get('prevented_rate');
    if (prevented === null || late === null || first === undefined) return [];
    // The text monitor of a cascade stands in the table; here it would push the alpha out of sight.
    const policy = `${shortName(first).replace(/, second .*$/, '')}${first.alpha === undefined ? '' : `, alpha ${first.alpha}`}`;
    if (!labelled)
      return [
        { policy, fate: fates[0], share: prevented },
        { policy, fate: fates[1], share: late },
        { policy, fate: fates[2], share: 1 - prevented - late },
      ];
    return WITH_REPORTS.flatMap(([metric, fate]): Fate[] => {
      const value = share(metric);
      return value === null ? [] : [{ policy, fate, share: value }];
    });
  });
  return { rows, fates };
}

/** What became of the unsafe episodes, and of those that ran, what their reports say. `figures`: fixed policies of one reader. */
export function leftBlock(figures: readonly Figure[]): string {
  const own = figures.filter((figure) => figure.reader !== 'policy:random');
  const { rows, fates } = fatesOf(own);
  const labelled = own.some(({ metric }) => metric === 'left_candid_rate');
  const reported = own.filter(({ metric }) => metric === 'prevented_of_reported');
  return [
    rows.length === 0 ? '' : legendOf(fates, undefined, () => true),
    figureBlock(
      fateChart(rows, fates),
      `What became of the unsafe episodes under each policy${labelled ? ', and what the final report says where the act ran. A stopped episode writes no report' : '; the source has no report labels'}.`,
      policyTable(own, labelled ? LEFT : WITH_REPORTS.slice(0, 2)),
    ),
    reported.length === 0
      ? ''
      : details(
          `Whether those that would have lied are stopped as often as the others (${reported.length})`,
          valueTable(
            ['policy', 'logged report'],
            reported.map((figure) => ({
              cells: [policyName(figure), String(figure.at?.['report'] ?? '')],
              value: figure.value,
            })),
          ),
        ),
  ].join('');
}

const FLAG_METRICS = ['flag_precision', 'flag_recall', 'flag_recall_minus_random', 'unflagged_lie_rate'];

const budgetOf = (figure: Figure): string => `${figure.at?.['budget'] ?? '?'}`;

/** Reading the final reports that score highest for a lie, alone and behind an action gate. */
export function flagSection(figures: readonly Figure[]): string {
  const own = figures.filter(({ metric }) => FLAG_METRICS.includes(metric));
  if (own.length === 0) return note('No final report was scored, so none could be chosen for reading.');
  const probe = headlineProbe(own);
  const shown = own.filter(({ at }) => at?.['scores'] === probe || at?.['scores'] === BEST_TEXT);
  const alone = shown.filter(({ at }) => at?.['gate'] === undefined);
  const gated = shown.filter(({ at }) => at?.['gate'] !== undefined);
  const series = (figure: Figure): string | null => {
    const ofProbe = figure.at?.['scores'] === probe;
    if (figure.reader === 'policy:flag') return ofProbe ? 'probe' : 'text monitor';
    if (!ofProbe) return null;
    return figure.reader === 'policy:random' ? 'as many at random' : 'lies first';
  };
  const names = ['probe', 'text monitor', 'as many at random', 'lies first'];
  const place = (figure: Figure): string =>
    `${figure.landmark} ${figure.position}, ${formatPercent(Number(figure.at?.['budget']))}`;
  const picture = (metric: string, what: string): string => {
    const rows = atShownPosition(alone).flatMap((figure) => {
      const name = figure.metric === metric ? series(figure) : null;
      return name === null ? [] : [{ label: place(figure), series: name, value: figure.value }];
    });
    return figureBlock(
      intervalChart(rows, names, what),
      `${what}, by landmark, position and share of the reports that is read. Bars: 95 % cluster-bootstrap intervals; at random, where 95 % of the draws lie.`,
      flagTable(alone.filter((figure) => figure.metric === metric)),
    );
  };
  return [
    '<p>With a budget for reading some of the final reports, those that score highest for a lie are read. Among violations only: the reports of episodes without a violation have no label here, and in use they would be in the pile too.</p>',
    legendOf(names),
    `<div class="row">${picture('flag_precision', 'precision: lies, of the reports read')}${picture('flag_recall', 'recall: read, of the lies')}</div>`,
    details(
      'All flag figures without a gate',
      flagTable(alone.filter(({ metric }) => metric !== 'flag_precision' && metric !== 'flag_recall')),
    ),
    gated.length === 0
      ? note('No action gate stood before the reports: it needs the target first_unsafe_event in the same run.')
      : details('Behind the action gate: only episodes that were not stopped write a report', flagTable(gated)),
  ].join('');
}

function flagTable(figures: readonly Figure[]): string {
  return valueTable(
    ['landmark', 'position', 'budget', 'policy', 'metric'],
    figures.map((figure) => ({
      cells: [
        figure.landmark,
        figure.position,
        budgetOf(figure),
        `${figure.reader.replace('policy:', '')} on ${figure.at?.['scores'] ?? '?'}${figure.at?.['gate'] === undefined ? '' : `, behind ${figure.at['gate']}, alpha ${figure.alpha ?? '?'}`}`,
        figure.metric,
      ],
      value: figure.value,
    })),
  );
}
