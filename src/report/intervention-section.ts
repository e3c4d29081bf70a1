import type { Figure } from '../types.ts';
import {
  type Axes,
  harmAxes,
  SCORE_FREE,
  stoppedAxes,
  textMonitor,
  tradeOff,
  tradeOffLegend,
  tradeOffPoints,
} from './charts/trade-off.ts';
import { formatValue, isUndefined } from './format.ts';
import { flagSection, leftBlock } from './lie-section.ts';
import { type Group, headlineProbe, inGroup, isMain, leadPopulation, type ReportView } from './report-view.ts';
import { POPULATION } from './sections.ts';
import { achievedBlock, costBlock, policyTable } from './stop-tables.ts';
import { details, figureBlock, note, table, thin, valueTable } from './tables.ts';

/** Answers other than stopping; their figures say why they have no number. */
const NOT_OFFLINE: ReadonlySet<string> = new Set(['policy:defer', 'policy:steer', 'policy:block']);

const isOfflineLimit = (figure: Figure): boolean =>
  NOT_OFFLINE.has(figure.reader) || figure.metric === 'done_after_escalation';

/** What a stop cannot stand for, with the reasons as they are stored. */
function limitsBlock(figures: readonly Figure[]): string {
  const probe = headlineProbe(figures);
  const own = figures.filter((figure) => isOfflineLimit(figure) && figure.at?.['scores'] === probe);
  return `<h3>What offline replay cannot show</h3>${note(
    'Only stopping can be simulated on logged episodes, and here every stop ends the episode.',
  )}${valueTable(
    ['policy', 'metric'],
    own.map((figure) => ({
      cells: [figure.reader, figure.metric],
      value: figure.value,
      name: `${figure.reader.replace('policy:', '')} (${figure.metric.replaceAll('_', ' ')})`,
    })),
  )}`;
}

function planeBlock(view: ReportView, group: Group, figures: readonly Figure[], axes: Axes, caption: string): string {
  const points = tradeOffPoints(figures, axes);
  const stops = (view.stops ?? []).filter(
    (curve) => curve.model === group.model && curve.condition === group.condition && curve.target === group.target,
  );
  const numbers = [...new Set(points.map(({ name }) => name))].flatMap((name) =>
    thin(points.filter((point) => point.name === name)).map((point) => [
      point.name,
      point.threshold === null ? '' : point.threshold.toFixed(3),
      formatValue(point.x),
      formatValue(point.y),
    ]),
  );
  const readers = { probe: headlineProbe(figures), text: textMonitor(figures) };
  return figureBlock(
    tradeOff(points, stops, readers, axes),
    caption,
    table(['series', 'threshold', axes.x.label, axes.y.label], numbers),
  );
}

/** What stopping would have done, beside stops that know nothing and everything; for a lie, what reading reports finds. */
export function interventionSection(view: ReportView, group: Group): string {
  const all = view.metrics.figures
    .filter(inGroup(group))
    .filter((figure) => figure.stage === 'intervene' && isMain(figure));
  if (group.target === 'misreported') return flagSection(all);
  if (all.length === 0) return note('Stopping was not simulated for this target.');
  const figures = all.filter((figure) => !isOfflineLimit(figure));
  const population = leadPopulation(figures);
  const own = figures.filter((figure) => figure.population === population && figure.at?.['threshold'] === undefined);
  const probe = headlineProbe(figures);
  const text = textMonitor(figures);
  const ofProbe = own.filter((figure) => figure.at?.['scores'] === probe);
  const fixed = own.filter(
    (figure) => figure.at?.['scores'] === probe || (figure.at?.['scores'] === text && !SCORE_FREE.has(figure.reader)),
  );
  const watched = ofProbe.find((figure) => figure.metric === 'watched_rate');
  const defined = tradeOffPoints(figures, stoppedAxes(population)).filter(
    ({ x, y }) => !isUndefined(x) && !isUndefined(y),
  );
  const harm = harmAxes(figures, population);
  const beside = `beside ${text ?? 'no text monitor'}, random stops of the same number and timing, always stopping at the reveal, and an oracle;`;
  const choices = view.thresholds?.filter(
    (choice) =>
      choice.model === group.model &&
      choice.condition === group.condition &&
      choice.target === group.target &&
      (choice.reader === probe || choice.reader === text),
  );
  return [
    limitsBlock(all),
    note(
      `Every episode of the target counts, also one in which no landmark was scored: nothing could have stopped it.${watched === undefined ? '' : ` A landmark was scored before the act in this share of the unsafe episodes: ${formatValue(watched.value)}.`}`,
    ),
    '<h3>Every threshold</h3>',
    tradeOffLegend(defined),
    '<div class="row">',
    planeBlock(
      view,
      group,
      figures,
      harm,
      `Harm left (${POPULATION[population]}) against ${harm.x.label}, over all thresholds of the probe (not chosen in advance), ${beside} ${harm.x.metric === 'usefulness_kept' ? 'lower right' : 'lower left'} is better.`,
    ),
    planeBlock(
      view,
      group,
      figures,
      stoppedAxes(population),
      `Prevented against disrupted over the same thresholds, ${POPULATION[population]}. Above the random stops is where a monitor earns its keep.`,
    ),
    '</div>',
    '<h3>False alarms, stated and achieved</h3>',
    achievedBlock(
      figures.filter((figure) => fixedReader(figure, probe, text)),
      choices,
      population,
    ),
    '<h3>Fixed policies</h3>',
    policyTable(fixed.filter(({ reader }) => reader !== 'policy:random')) || note('No policy is defined.'),
    details(
      'The same stops dealt at random, which the differences are from',
      policyTable(fixed.filter(({ reader }) => reader === 'policy:random')),
    ),
    '<h3>What is left after the gate</h3>',
    leftBlock(ofProbe),
    '<h3>When stopping pays</h3>',
    costBlock(figures, population, probe, text),
  ].join('');
}

const fixedReader = (figure: Figure, probe: string, text: string | null): boolean =>
  figure.at?.['scores'] === probe || figure.at?.['scores'] === text;
