import type { Figure, Metrics } from '../types.ts';
import { formatPercent, formatValue } from './format.ts';
import {
  aurocAt,
  BEST_TEXT,
  groupsOf,
  headlineProbe,
  inGroup,
  isMain,
  landmarksOf,
  leadPopulation,
} from './report-view.ts';

/** What stopping does at the first alpha, with the scores of the headline probe. */
function stopFigure(figures: readonly Figure[], population: Figure['population'], metric: string): Figure | undefined {
  const probe = headlineProbe(figures);
  return figures.find(
    (figure) =>
      figure.stage === 'intervene' &&
      figure.metric === metric &&
      figure.population === population &&
      figure.reader === 'policy:threshold' &&
      figure.at?.['scores'] === probe &&
      figure.alpha !== undefined &&
      isMain(figure),
  );
}

/** The same stops dealt at random, at the first alpha. */
function randomStops(figures: readonly Figure[], population: Figure['population'], alpha: number | undefined): string {
  const probe = headlineProbe(figures);
  const random = figures.find(
    (figure) =>
      figure.stage === 'intervene' &&
      figure.metric === 'prevented_rate' &&
      figure.population === population &&
      figure.reader === 'policy:random' &&
      figure.at?.['like'] === 'threshold' &&
      figure.at['scores'] === probe &&
      figure.alpha === alpha,
  );
  return random === undefined ? '' : formatValue(random.value);
}

/** What stopping does at the first alpha, and what is left by what the reports say; empty where it was not simulated. */
export function stopLines(figures: readonly Figure[], population: Figure['population']): string[] {
  const of = (metric: string): Figure | undefined => stopFigure(figures, population, metric);
  const prevented = of('prevented_rate');
  if (prevented === undefined) return [];
  const at = `${formatPercent(prevented.alpha ?? 0)} false alarms per episode`;
  if ('undefinedBecause' in prevented.value)
    return [`What stopping at ${at} prevents is undefined: ${prevented.value.undefinedBecause}.`];
  const [candid, lied] = [of('left_candid_rate'), of('left_misreported_rate')];
  const random = randomStops(figures, population, prevented.alpha);
  return [
    `Stopping at the threshold for ${at} would have prevented ${formatValue(prevented.value)} of the unsafe episodes${random === '' ? '' : `; as many random stops would have prevented ${random}`}. It would have disrupted ${formatValue(of('disrupted_rate')?.value)} of the safe ones; achieved false alarms where a landmark was scored: ${formatValue(of('false_alarm_rate')?.value)}.`,
    ...(candid === undefined || lied === undefined
      ? []
      : [
          `Of the unsafe episodes, not stopped and reported honestly: ${formatValue(candid.value)}; not stopped and lied about: ${formatValue(lied.value)}.`,
        ]),
  ];
}

/** What reading final reports at the smallest budget finds, at the last landmark there is; empty where none was scored. */
export function flagLines(figures: readonly Figure[]): string[] {
  const probe = headlineProbe(figures);
  const own = figures.filter(
    (figure) =>
      figure.stage === 'intervene' &&
      figure.metric.startsWith('flag_') &&
      figure.at?.['scores'] === probe &&
      figure.at['gate'] === undefined,
  );
  const budget = Math.min(...own.map(({ at }) => Number(at?.['budget'])));
  const last = own.find(({ landmark }) => landmark === 'report') ?? own.at(-1);
  if (last === undefined) return [];
  const value = (reader: string, metric: string): string =>
    formatValue(
      own.find(
        (figure) =>
          figure.reader === reader &&
          figure.metric === metric &&
          figure.landmark === last.landmark &&
          figure.position === last.position &&
          Number(figure.at?.['budget']) === budget,
      )?.value,
    );
  return [
    `Reading the ${formatPercent(budget)} of the final reports of violations that score highest at ${last.landmark}: of those read, lies ${value('policy:flag', 'flag_precision')}; of the lies, read ${value('policy:flag', 'flag_recall')}; as many at random ${value('policy:random', 'flag_recall')}.`,
  ];
}

/** A few lines for the terminal: the forecast at each landmark beside the best text reader, and what stopping does. */
export function formatHeadline(metrics: Metrics): string[] {
  const lines: string[] = [];
  for (const group of groupsOf(metrics.figures)) {
    const figures = metrics.figures.filter(inGroup(group));
    const population = leadPopulation(figures);
    lines.push(
      `${group.target}, ${group.model}, condition ${group.condition}, ${population === 'x-' ? 'within x−' : 'all episodes'}: AUROC within folds`,
    );
    for (const landmark of landmarksOf(figures)) {
      const probe = aurocAt(figures, population, landmark, headlineProbe(figures));
      const text = aurocAt(figures, population, landmark, BEST_TEXT);
      if (probe)
        lines.push(`  ${landmark.padEnd(16)} probe ${formatValue(probe.value)}; text ${formatValue(text?.value)}`);
    }
    const prevented = stopFigure(figures, population, 'prevented_rate');
    if (prevented) {
      const at = `  stopping at ${formatPercent(prevented.alpha ?? 0)} false alarms`;
      const disrupted = stopFigure(figures, population, 'disrupted_rate');
      const random = randomStops(figures, population, prevented.alpha);
      lines.push(
        'undefinedBecause' in prevented.value
          ? `${at}: ${formatValue(prevented.value)}`
          : `${at} prevents ${formatValue(prevented.value)}; disrupts ${formatValue(disrupted?.value)}${random === '' ? '' : `; as many at random prevent ${random}`}`,
      );
    }
    for (const line of flagLines(figures)) lines.push(`  ${line}`);
  }
  return lines;
}
