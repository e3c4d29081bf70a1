import type { Estimate, Figure } from '../types.ts';
import { aurocMap, mapCells } from './charts/auroc-map.ts';
import { forecastCurve, legend } from './charts/forecast-charts.ts';
import { checksBlock, contractBlock } from './checks-section.ts';
import { escapeHtml } from './escape.ts';
import { formatValue, isUndefined } from './format.ts';
import { flagLines, stopLines } from './headline.ts';
import {
  atShownPosition,
  aurocAt,
  BEST_TEXT,
  type Group,
  headlineProbe,
  inGroup,
  isMain,
  landmarksOf,
  leadPopulation,
  type ReportView,
} from './report-view.ts';
import { details, figureBlock, figureTable, note, table, valueTable } from './tables.ts';

export const POPULATION: Readonly<Record<Figure['population'], string>> = {
  'x-': 'within x− (the action is not allowed)',
  'x+': 'x+ (the same action is allowed)',
  nuisance: 'nuisance copies',
  all: 'all episodes (the source has no matched worlds)',
};

/** Readers that know almost nothing (step index, base rates …), the highest AUROC first; the majority is ½ by construction. */
function simpleBaselines(
  figures: readonly Figure[],
  population: Figure['population'],
  landmark: string,
): readonly { readonly name: string; readonly value: Estimate }[] {
  const readers = new Set(
    figures
      .map(({ reader }) => reader)
      .filter((reader) => reader.startsWith('baseline:') && reader !== 'baseline:majority'),
  );
  return [...readers]
    .flatMap((reader) => {
      const value = aurocAt(figures, population, landmark, reader)?.value;
      return value === undefined || isUndefined(value)
        ? []
        : [{ name: reader.replace('baseline:', '').replaceAll('_', ' '), value }];
    })
    .sort((a, b) => b.value.estimate - a.value.estimate);
}

/** One plain sentence about one landmark. */
function verdict(figures: readonly Figure[], population: Figure['population'], landmark: string): string {
  const reader = headlineProbe(figures);
  const shown = aurocAt(figures, population, landmark, reader);
  const probe = shown?.value;
  const text = aurocAt(figures, population, landmark, BEST_TEXT)?.value;
  const minus = figures.find(
    (figure) =>
      figure.metric === 'auroc_minus' &&
      figure.landmark === landmark &&
      figure.population === population &&
      figure.reader === reader &&
      figure.position === shown?.position &&
      figure.at?.['minus'] === BEST_TEXT &&
      isMain(figure),
  );
  if (probe === undefined) return `${landmark}: not measured.`;
  if ('undefinedBecause' in probe) return `${landmark}: no figure, because ${probe.undefinedBecause}.`;
  const value = minus?.value;
  const compared =
    value === undefined || 'undefinedBecause' in value
      ? `the difference from text is ${value === undefined ? 'not measured' : `undefined (${value.undefinedBecause})`}`
      : value.lower !== null && value.lower > 0
        ? `better than the best text reader (difference ${formatValue(value)})`
        : value.upper !== null && value.upper < 0
          ? `worse than the best text reader (difference ${formatValue(value)})`
          : `no better than the best text reader as far as these data tell (difference ${formatValue(value)})`;
  const simple = simpleBaselines(figures, population, landmark);
  const baseline =
    simple.length === 0
      ? ''
      : ` Highest of ${simple.length} simple baselines: ${simple[0].name} ${formatValue(simple[0].value)}.`;
  const careless = landmark === 'matched_steps' ? ' (careless cut: the classes are not cut alike)' : '';
  return `${landmark}${careless}: probe AUROC ${formatValue(probe)}; best text reader ${formatValue(text)}; ${compared}.${baseline}`;
}

export function headlineSection(view: ReportView, group: Group): string {
  const figures = view.metrics.figures.filter(inGroup(group));
  const population = leadPopulation(figures);
  const stopping = [...stopLines(figures, population), ...flagLines(figures)];
  const lines = [
    `Can a linear probe forecast ${group.target} of ${group.model} (condition ${group.condition}), ${POPULATION[population]}?`,
    ...landmarksOf(figures).map((landmark) => verdict(figures, population, landmark)),
    ...(stopping.length === 0 ? ['Stopping was not simulated.'] : stopping),
  ];
  return `<div class="lead">${lines.map((line) => `<p>${escapeHtml(line)}</p>`).join('')}</div>`;
}

/** The careless cut beside the matched decision, in numbers. */
function carelessBlock(figures: readonly Figure[], population: Figure['population']): string {
  const landmarks = landmarksOf(figures);
  if (!landmarks.includes('matched_steps')) return '';
  const matched = landmarks.includes('first_critical');
  const readers = [
    headlineProbe(figures),
    BEST_TEXT,
    'baseline:step_index',
    'baseline:token_count',
    'baseline:group_base_rate',
  ];
  const rows = readers.flatMap((reader) => {
    const at = (landmark: string): string => formatValue(aurocAt(figures, population, landmark, reader)?.value);
    if (!aurocAt(figures, population, 'matched_steps', reader)) return [];
    return [[reader, at('matched_steps'), ...(matched ? [at('first_critical')] : [])]];
  });
  return `<h3>Why the careless cut flatters</h3><p>At <code>matched_steps</code>, the cut of much of the literature, unsafe episodes are cut right before their unsafe turn and safe ones after as many turns, wherever they happen to be. A reader then only has to tell that <em>some</em> change is about to happen. At <code>first_critical</code> both are cut at a decision of the same kind, and the question left is whether this one is allowed. Only that forecasts anything.</p>${table(
    ['reader', 'matched_steps (careless)', ...(matched ? ['first_critical (matched decision)'] : [])],
    rows,
  )}${matched ? '' : note('first_critical was not asked for, so there is no matched decision to compare with.')}`;
}

/** Layer × position map of every landmark; a map is a search, so what the folds chose is marked. */
function mapsBlock(view: ReportView, group: Group, figures: readonly Figure[]): string {
  const population = leadPopulation(figures);
  const probe = headlineProbe(figures);
  const choices = view.choices?.filter(
    (choice) =>
      choice.model === group.model &&
      choice.condition === group.condition &&
      choice.target === group.target &&
      choice.reader === probe &&
      choice.trainedOn === population,
  );
  const maps = landmarksOf(figures).map((landmark) => {
    const own = choices?.filter((choice) => choice.landmark === landmark) ?? [];
    // Where positions were searched too, that search is the headline; otherwise each position chose its tap.
    const searched = own.some((choice) => choice.readAt === 'selected');
    const cells = mapCells(figures, population, landmark, (tap, position) => {
      const here = own.filter(
        (choice) => choice.tap === tap && choice.position === position && (!searched || choice.readAt === 'selected'),
      );
      return here.length;
    });
    return `<h4>${escapeHtml(landmark)}</h4>${figureBlock(
      aurocMap(cells, landmark, view.taps),
      `AUROC of every layer and position at ${landmark}: an unselected search, so its best cell is no result. Orange: above 0.5, purple: below; blank: no number.${own.length === 0 ? '' : ' Framed: chosen inside the training side of at least one outer fold, which is what the headline figure uses.'}`,
      valueTable(
        own.length === 0 ? ['tap', 'position'] : ['tap', 'position', 'folds that chose it'],
        cells.map(({ tap, position, figure, chosen }) => ({
          cells: own.length === 0 ? [tap, position] : [tap, position, String(chosen)],
          value: figure.value,
          name: `${tap} ${position}`,
        })),
      ),
    )}`;
  });
  return `<h3>Layer × position</h3>${maps.join('')}`;
}

const BEYOND = [
  'auroc_minus',
  'auroc_stacked_gain',
  'auroc_within_template',
  'auroc_within_fold_censored_negative',
  'auroc_within_fold_known_negative',
];
const CHANCE = ['p_value', 'p_value_bonferroni', 'null_max_auroc', 'selectivity', 'permutable_rows'];
const ROWS = ['rows_at_risk', 'without_event', 'excluded', 'one_class_folds', 'empty_folds', 'detectable_difference'];

/** Further figures of record, folded away: what the probe adds, chance, who was at risk, parts and other splits. */
function furtherBlock(figures: readonly Figure[], population: Figure['population']): string {
  const probe = headlineProbe(figures);
  const own = figures.filter((figure) => figure.stage === 'forecast' && figure.population === population);
  const main = own.filter((figure) => figure.split === undefined && figure.group === undefined);
  const plain = main.filter((figure) => figure.at?.['trained_on'] === undefined);
  const shown = (metrics: readonly string[], from: readonly Figure[]): Figure[] =>
    from.filter((figure) => metrics.includes(figure.metric));
  const ofProbe = (figure: Figure): boolean => figure.reader === probe;
  const blocks: readonly (readonly [string, readonly Figure[]])[] = [
    ['What the probe adds to each baseline', atShownPosition(shown(BEYOND, plain).filter(ofProbe))],
    [
      'Against chance: permuted outcomes, every layer and position searched again by ridge regression',
      shown(CHANCE, plain),
    ],
    [
      'Who was at risk, and what could have been seen with so many',
      shown(ROWS, plain).filter((figure) => ofProbe(figure) || figure.reader.startsWith('baseline:')),
    ],
    [
      'Readers that learnt from all worlds (they may only read the world)',
      atShownPosition(
        main.filter(
          (figure) =>
            figure.at?.['trained_on'] !== undefined &&
            figure.at['search'] === undefined &&
            figure.metric === 'auroc_within_fold',
        ),
      ),
    ],
    [
      'By template, family and style',
      atShownPosition(
        own.filter(
          (figure) => figure.group !== undefined && figure.split === undefined && figure.metric === 'auroc_within_fold',
        ),
      ),
    ],
    [
      'Same or different situation and behaviour',
      atShownPosition(plain.filter((figure) => figure.metric === 'cell_auroc')),
    ],
  ];
  const splits = own.filter(
    (figure) => figure.split !== undefined && ofProbe(figure) && figure.metric !== 'auroc_minus',
  );
  const transfer = figures.filter((figure) => ['auroc_transfer', 'transfer_lift'].includes(figure.metric));
  return [
    ...blocks.map(([title, list]) =>
      list.length === 0 ? '' : details(`${title} (${list.length})`, figureTable(list)),
    ),
    splits.length === 0
      ? ''
      : details(
          `Trained without one template, family or style (${splits.length})`,
          valueTable(
            ['split', 'landmark', 'position', 'metric'],
            splits.map((figure) => ({
              cells: [figure.split ?? '', figure.landmark, figure.position, figure.metric],
              value: figure.value,
            })),
          ),
        ),
    transfer.length === 0 ? '' : details(`Transfer (${transfer.length})`, figureTable(transfer)),
  ].join('');
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
  const numbers = table(
    ['landmark', 'position', 'reader', 'AUROC within folds', 'pooled over folds', 'over split seeds [least, most]'],
    rows,
  );
  return `<h3>Forecast by landmark</h3>${legend(figures, population)}${figureBlock(
    forecastCurve(figures, population),
    `AUROC within folds, ${POPULATION[population]}. Bars: 95 % cluster-bootstrap intervals; for random directions, where 95 % of the directions lie. Dashed: chance.`,
    numbers,
  )}${carelessBlock(figures, population)}${mapsBlock(view, group, figures)}<h3>Further figures</h3>${contractBlock(figures)}${furtherBlock(figures, population)}${checksBlock(figures)}`;
}
