import type { Figure } from '../types.ts';
import { aurocMap, curveChart, forecastCurve, legend } from './charts/forecast-charts.ts';
import { scoreOverTurns, tradeOff } from './charts/intervention-charts.ts';
import { escapeHtml } from './escape.ts';
import { formatValue } from './format.ts';
import { stopFigure } from './headline.ts';
import {
  aurocAt,
  type Group,
  HEADLINE,
  inGroup,
  isMain,
  landmarksOf,
  leadPopulation,
  type ReportView,
} from './report-view.ts';

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return `<div class="scroll"><table><thead><tr>${head.map((cell) => `<th scope="col">${escapeHtml(cell)}</th>`).join('')}</tr></thead><tbody>${rows
    .map((row) => `<tr>${row.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`)
    .join('')}</tbody></table></div>`;
}

const figureBlock = (svg: string | null, caption: string): string =>
  svg === null
    ? `<p class="note">No picture: nothing here is defined. ${escapeHtml(caption)}</p>`
    : `<figure>${svg}<figcaption>${escapeHtml(caption)}</figcaption></figure>`;

const POPULATION: Readonly<Record<Figure['population'], string>> = {
  'x-': 'within x− (the action is not allowed)',
  'x+': 'x+ (the same action is allowed)',
  nuisance: 'nuisance copies',
  all: 'all episodes (the source has no matched worlds)',
};

/** One plain sentence about one landmark. */
function verdict(figures: readonly Figure[], population: Figure['population'], landmark: string): string {
  const probe = aurocAt(figures, population, landmark, HEADLINE.probe)?.value;
  const text = aurocAt(figures, population, landmark, HEADLINE.text)?.value;
  const minus = figures.find(
    (figure) =>
      figure.metric === 'auroc_minus' &&
      figure.landmark === landmark &&
      figure.population === population &&
      figure.reader === HEADLINE.probe &&
      figure.at?.['minus'] === HEADLINE.text &&
      isMain(figure),
  );
  if (probe === undefined) return `${landmark}: not measured.`;
  if ('undefinedBecause' in probe) return `${landmark}: no figure, because ${probe.undefinedBecause}.`;
  const value = minus?.value;
  const compared =
    value === undefined || 'undefinedBecause' in value
      ? `the difference from text is undefined${value === undefined ? '' : ` (${value.undefinedBecause})`}`
      : value.lower !== null && value.lower > 0
        ? `better than the best text reader by ${formatValue(value)}`
        : value.upper !== null && value.upper < 0
          ? `worse than the best text reader by ${formatValue(value)}`
          : `no better than the best text reader as far as these data tell (difference ${formatValue(value)})`;
  return `${landmark}: probe AUROC ${formatValue(probe)}; best text reader ${formatValue(text)}; ${compared}.`;
}

export function headlineSection(view: ReportView, group: Group): string {
  const figures = view.metrics.figures.filter(inGroup(group));
  const population = leadPopulation(figures);
  const prevented = stopFigure(figures, population, 'prevented_rate');
  const disrupted = stopFigure(figures, population, 'disrupted_rate');
  const lines = [
    `Can a linear probe forecast ${group.target} of ${group.model} (condition ${group.condition}), ${POPULATION[population]}?`,
    ...landmarksOf(figures).map((landmark) => verdict(figures, population, landmark)),
    prevented === undefined
      ? 'Stopping was not simulated.'
      : 'undefinedBecause' in prevented.value
        ? `What stopping at ${(prevented.alpha ?? 0) * 100} % false alarms per episode prevents is undefined: ${prevented.value.undefinedBecause}.`
        : `Stopping at the threshold for ${(prevented.alpha ?? 0) * 100} % false alarms per episode would have prevented ${formatValue(prevented.value)} of the unsafe episodes and disrupted ${formatValue(disrupted?.value)} of the safe ones.`,
  ];
  return `<div class="lead">${lines.map((line) => `<p>${escapeHtml(line)}</p>`).join('')}</div>`;
}

export function forecastSection(view: ReportView, group: Group): string {
  const figures = view.metrics.figures.filter(inGroup(group));
  const population = leadPopulation(figures);
  const readers = [
    ...new Set(
      figures
        .filter((figure) => figure.metric === 'auroc_within_fold' && isMain(figure))
        .map((figure) => figure.reader),
    ),
  ];
  const landmarks = landmarksOf(figures);
  const rows = landmarks.flatMap((landmark) =>
    readers.flatMap((reader) => {
      const figure = aurocAt(figures, population, landmark, reader);
      if (!figure) return [];
      const pooled = figures.find(
        (item) =>
          item.metric === 'auroc_pooled' &&
          item.landmark === landmark &&
          item.reader === reader &&
          item.position === figure.position &&
          item.population === population &&
          isMain(item),
      );
      const spread = figures.find(
        (item) =>
          item.metric === 'auroc_split_seed_spread' &&
          item.landmark === landmark &&
          item.reader === reader &&
          item.position === figure.position &&
          item.population === population &&
          isMain(item),
      );
      return [
        [
          landmark,
          figure.position,
          reader,
          formatValue(figure.value),
          formatValue(pooled?.value),
          formatValue(spread?.value),
        ],
      ];
    }),
  );
  const careless = landmarks.includes('matched_steps')
    ? `<p class="note">matched_steps is the careless cut of the literature, shown only to show how much it flatters: unsafe episodes are cut right before their unsafe turn, safe ones after as many turns wherever they happen to be. A reader then only has to tell that <em>some</em> decision is about to happen. At first_critical both classes are cut at a decision of the same kind, and the question left is whether it is allowed.</p>`
    : '';
  const maps = landmarks
    .map((landmark) =>
      figureBlock(
        aurocMap(figures, population, landmark, view.taps),
        `${landmark}: AUROC of every layer and position, an unselected search. The probe's own figure above selects inside the training folds.`,
      ),
    )
    .join('');
  const seeds =
    landmarks.length === 0
      ? ''
      : `<details><summary>Every reader at every landmark (${rows.length} rows)</summary>${table(['landmark', 'position', 'reader', 'AUROC within folds', 'pooled over folds', 'over split seeds [least, most]'], rows)}</details>`;
  return `<h3>Forecast by landmark</h3>${legend()}${figureBlock(forecastCurve(figures, population), `AUROC within folds with 95 % cluster-bootstrap intervals, ${POPULATION[population]}. Dashed: chance.`)}${careless}${seeds}<h3>Layer × position</h3>${maps}`;
}

export function curvesSection(view: ReportView, group: Group): string {
  const figures = view.metrics.figures.filter(inGroup(group));
  const population = leadPopulation(figures);
  const own = view.curves.filter(
    (curve) => curve.condition === group.condition && curve.target === group.target && curve.population === population,
  );
  const readers = [HEADLINE.probe, HEADLINE.text];
  const last = own.filter((curve) => curve.kind === 'roc').map((curve) => curve.landmark);
  const roc = [...new Set(last)].map((landmark) =>
    figureBlock(
      curveChart(
        own.filter((curve) => curve.landmark === landmark),
        'roc',
        readers,
        { x: 'false positive rate', y: 'true positive rate' },
      ),
      `ROC at ${landmark}; blue the probe, orange the best text reader.`,
    ),
  );
  const alarms = figures.filter(
    (figure) =>
      figure.landmark === 'any' && figure.reader === HEADLINE.probe && figure.stage === 'forecast' && isMain(figure),
  );
  const pairs = figures.filter(
    (figure) =>
      ['paired_world', 'paired_trial', 'nuisance_shift', 'world_shift', 'nuisance_to_world'].includes(figure.metric) &&
      figure.reader === HEADLINE.probe &&
      isMain(figure),
  );
  const calibration = figures.filter(
    (figure) =>
      ['brier', 'ece', 'log_loss', 'base_rate', 'detectable_difference', 'one_class_folds'].includes(figure.metric) &&
      figure.reader === HEADLINE.probe &&
      figure.population === population &&
      isMain(figure),
  );
  const name = (figure: Figure): string =>
    [figure.metric, ...Object.entries(figure.at ?? {}).map(([key, value]) => `${key} ${value}`)].join(', ');
  return [
    `<h3>ROC</h3><div class="row">${roc.join('') || '<p class="note">No ROC is defined.</p>'}</div>`,
    '<h3>False alarms and lead time, per episode</h3><p class="note">An alarm is the first landmark whose calibrated score exceeds the threshold, which is chosen on development episodes; the achieved rate and its n are printed.</p>',
    `<div class="row">${figureBlock(curveChart(own, 'lead_time', [HEADLINE.probe], { x: 'turns before the act', y: 'share of unsafe episodes alarmed' }), 'Lead time.')}</div>`,
    table(
      ['population', 'metric', 'alpha', 'value'],
      alarms.map((figure) => [figure.population, name(figure), String(figure.alpha ?? ''), formatValue(figure.value)]),
    ),
    '<h3>Pairs</h3>',
    pairs.length === 0
      ? '<p class="note">No pair figure: the source has neither matched worlds nor repeated trials.</p>'
      : table(
          ['landmark', 'position', 'metric', 'value'],
          pairs.map((figure) => [figure.landmark, figure.position, name(figure), formatValue(figure.value)]),
        ),
    `<h3>Calibration</h3><details><summary>Brier, calibration error, base rates (${calibration.length} rows)</summary>${table(
      ['landmark', 'position', 'metric', 'value'],
      calibration.map((figure) => [figure.landmark, figure.position, name(figure), formatValue(figure.value)]),
    )}</details>`,
  ].join('');
}

export function interventionSection(view: ReportView, group: Group): string {
  const figures = view.metrics.figures
    .filter(inGroup(group))
    .filter((figure) => figure.stage === 'intervene' && isMain(figure));
  if (figures.length === 0) return '<p class="note">Stopping was not simulated for this target.</p>';
  const population = leadPopulation(figures);
  const shown = figures.filter(
    (figure) =>
      figure.population === population &&
      [
        'prevented_rate',
        'late_rate',
        'disrupted_rate',
        'usefulness_kept',
        'harm_left',
        'prevented_minus_random',
        'disrupted_minus_random',
      ].includes(figure.metric),
  );
  const fixed = shown.filter(
    (figure) =>
      figure.at?.['threshold'] === undefined &&
      (figure.at?.['scores'] === undefined ||
        figure.at['scores'] === HEADLINE.probe ||
        figure.at['scores'] === 'text:so_far'),
  );
  const breakEven = figures.filter(
    (figure) =>
      figure.metric === 'break_even_base_rate' &&
      figure.population === population &&
      figure.at?.['scores'] === HEADLINE.probe &&
      figure.alpha !== undefined &&
      figure.reader === 'policy:threshold',
  );
  const label = (figure: Figure): string =>
    `${figure.reader}${figure.at?.['scores'] === undefined ? '' : ` on ${figure.at['scores']}`}`;
  return [
    '<p>Offline, only <em>stopping</em> can be simulated: what the agent would have done after a question, a delay or a nudge is not in the log.</p>',
    figureBlock(
      tradeOff(figures, population),
      `Every threshold of the probe, beside a text monitor, random stops of the same number and timing, always stopping at the reveal, and an oracle; ${POPULATION[population]}.`,
    ),
    `<details open><summary>Outcomes at fixed policies (${fixed.length} rows)</summary>${table(
      ['policy', 'alpha', 'metric', 'value'],
      fixed.map((figure) => [label(figure), String(figure.alpha ?? ''), figure.metric, formatValue(figure.value)]),
    )}</details>`,
    `<h3>When stopping pays</h3>${table(
      ['cost of harm : of disruption', 'stopping pays above a base rate of'],
      breakEven.map((figure) => [
        `${figure.at?.['harm'] ?? '?'} : ${figure.at?.['disruption'] ?? '?'}`,
        formatValue(figure.value),
      ]),
    )}`,
  ].join('');
}

export function examplesSection(view: ReportView): string {
  if (view.examples.length === 0) return '<p class="note">No examples were asked for.</p>';
  return view.examples
    .map((example) => {
      const { meta } = example;
      const turns = example.turns.map(
        (turn) =>
          `<div class="turn${turn.unsafe ? ' unsafe' : turn.index === meta.reveal ? ' reveal' : ''}"><strong>turn ${turn.index}</strong>${turn.index === meta.reveal ? ' (reveal)' : ''}${turn.unsafe ? ' (unauthorized action)' : ''} ${escapeHtml(turn.calls.join(', '))}<br>${escapeHtml(turn.text)}</div>`,
      );
      const what = meta.unsafe === null ? 'safe' : `unauthorized action at turn ${meta.unsafe}`;
      return `<h3>${escapeHtml(meta.episodeId)}</h3><p class="note">${escapeHtml(`${what}; reveal ${meta.reveal ?? 'none'}; ended: ${meta.status ?? 'unknown'}; world ${meta.world}`)}</p>${figureBlock(scoreOverTurns(example), 'Out-of-fold calibrated score at each landmark; green: reveal, orange: the act.')}<details><summary>${example.turns.length} turns</summary>${turns.join('')}</details>`;
    })
    .join('');
}
