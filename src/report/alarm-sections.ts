import type { Curve } from '../forecast/types.ts';
import type { Figure } from '../types.ts';
import { curveChart, curvesOf, type NamedCurve } from './charts/curve-chart.ts';
import { legendOf } from './charts/plot.ts';
import { formatNumber } from './format.ts';
import {
  atShownPosition,
  BEST_TEXT,
  type Group,
  headlineProbe,
  inGroup,
  isMain,
  leadPopulation,
  type ReportView,
} from './report-view.ts';
import { details, figureBlock, figureTable, metricName, note, table, thin, valueTable } from './tables.ts';

/** The points of curves as a table; `n` is what stands behind each point. */
function curveTable(shown: readonly NamedCurve[], x: string, y: string, n: string): string {
  const rows = shown.flatMap(({ name, curve }) =>
    thin(
      curve.x.map((value, index) => [name, formatNumber(value), formatNumber(curve.y[index]), String(curve.n[index])]),
    ),
  );
  return table(['reader', x, y, n], rows);
}

function rocBlock(own: readonly Curve[], probe: string): string {
  const readers = [probe, BEST_TEXT];
  const landmarks = [...new Set(own.filter((curve) => curve.kind === 'roc').map((curve) => curve.landmark))];
  if (landmarks.length === 0) return note('No ROC is defined: no landmark has scored episodes of both classes.');
  const axes = { x: 'false positive rate', y: 'true positive rate' };
  const blocks = landmarks.map((landmark) => {
    const shown = curvesOf(
      own.filter((curve) => curve.landmark === landmark),
      'roc',
      readers,
    );
    return figureBlock(
      curveChart(shown, axes, readers),
      `ROC at ${landmark}: blue the probe, orange the best text reader.`,
      curveTable(shown, axes.x, axes.y, 'rows above the threshold'),
    );
  });
  return `${note('Calibrated scores of all test folds on one axis. They come from different readers, so the area of this picture is the pooled AUROC, not the one within folds: with few episodes it tends below the diagonal even for a reader that knows nothing.')}<div class="row">${blocks.join('')}</div>`;
}

function alarmBlock(figures: readonly Figure[], own: readonly Curve[], probe: string): string {
  const alarms = figures.filter(
    (figure) =>
      figure.landmark === 'any' &&
      (figure.reader === probe || figure.reader.startsWith('text:')) &&
      figure.stage === 'forecast' &&
      figure.alpha !== undefined &&
      isMain(figure),
  );
  // The name of a lead-time curve ends with its alpha.
  const names = [
    ...new Set(
      own
        .filter(
          (curve) =>
            curve.kind === 'lead_time' && (curve.reader.startsWith(`${probe} `) || curve.reader.startsWith('text:')),
        )
        .map((curve) => curve.reader),
    ),
  ];
  const shown = curvesOf(own, 'lead_time', names);
  const axes = { x: 'turns before the act', y: 'share of unsafe episodes' };
  return [
    note(
      'An alarm is the first landmark whose calibrated score exceeds the threshold. The threshold is chosen on development episodes for a rate alpha of false alarms per episode; false_alarm_rate is what was achieved on the test folds, its n the number of negative episodes.',
    ),
    valueTable(
      ['population', 'reader', 'alpha', 'metric'],
      alarms.map((figure) => ({
        cells: [figure.population, figure.reader, String(figure.alpha ?? ''), metricName(figure)],
        value: figure.value,
        name: `${metricName(figure)} of ${figure.reader}`,
      })),
    ) || note('No alarm was simulated.'),
    '<h3>Lead time</h3>',
    legendOf(names),
    figureBlock(
      curveChart(shown, axes, names),
      shown.length === 0
        ? 'Lead time needs an unsafe episode with an alarm in time.'
        : `Share of unsafe episodes alarmed at least so many turns ahead, of those with a scored landmark.`,
      curveTable(shown, axes.x, axes.y, 'episodes'),
    ),
  ].join('');
}

const PAIRS = ['paired_world', 'paired_trial', 'nuisance_shift', 'world_shift', 'nuisance_to_world'];
const CALIBRATION = ['brier', 'ece', 'log_loss', 'base_rate', 'reliability'];

/** ROC, alarms, pairs and calibration of one model × condition × target. */
export function curvesSection(view: ReportView, group: Group): string {
  const figures = view.metrics.figures.filter(inGroup(group));
  const probe = headlineProbe(figures);
  const population = leadPopulation(figures);
  const own = view.curves.filter(
    (curve) =>
      curve.condition === group.condition &&
      curve.target === group.target &&
      curve.population === population &&
      (curve.model === undefined || curve.model === group.model),
  );
  const ofProbe = figures.filter((figure) => figure.reader === probe && isMain(figure));
  const pairs = atShownPosition(ofProbe.filter((figure) => PAIRS.includes(figure.metric)));
  const calibration = atShownPosition(
    ofProbe.filter((figure) => CALIBRATION.includes(figure.metric) && figure.population === population),
  );
  const summary = calibration.filter((figure) => figure.metric !== 'reliability');
  const bins = calibration.filter((figure) => figure.metric === 'reliability');
  const readers = [probe, BEST_TEXT];
  const landmarks = [...new Set(own.filter(({ kind }) => kind === 'reliability').map(({ landmark }) => landmark))];
  const reliability = landmarks.map((landmark) => {
    const shown = curvesOf(
      own.filter((curve) => curve.landmark === landmark),
      'reliability',
      readers,
    );
    const axes = { x: 'predicted probability', y: 'share that became unsafe' };
    return figureBlock(
      curveChart(shown, axes, readers),
      `Reliability at ${landmark}: on the diagonal a score means what it says.`,
      curveTable(shown, axes.x, axes.y, 'rows of the bin'),
    );
  });
  return [
    '<h3>ROC</h3>',
    rocBlock(own, probe),
    '<h3>Thresholds and false alarms, per episode</h3>',
    alarmBlock(figures, own, probe),
    '<h3>Pairs</h3>',
    pairs.length === 0
      ? note('No pair figure: the source has neither matched worlds nor repeated trials.')
      : valueTable(
          ['landmark', 'position', 'metric'],
          pairs.map((figure) => ({
            cells: [figure.landmark, figure.position, metricName(figure)],
            value: figure.value,
            name: `${metricName(figure)} at ${figure.landmark}`,
          })),
        ),
    '<h3>Calibration</h3>',
    reliability.length === 0 ? '' : `<div class="row">${reliability.join('')}</div>`,
    summary.length === 0 ? note('No calibration was measured.') : figureTable(summary),
    bins.length === 0 ? '' : details(`Reliability, bin by bin (${bins.length})`, figureTable(bins)),
  ].join('');
}
