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
export function stopFigure(
  figures: readonly Figure[],
  population: Figure['population'],
  metric: string,
): Figure | undefined {
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
    const disrupted = stopFigure(figures, population, 'disrupted_rate');
    if (prevented) {
      const at = `  stopping at ${formatPercent(prevented.alpha ?? 0)} false alarms`;
      lines.push(
        'undefinedBecause' in prevented.value
          ? `${at}: ${formatValue(prevented.value)}`
          : `${at} prevents ${formatValue(prevented.value)}; disrupts ${formatValue(disrupted?.value)}`,
      );
    }
  }
  return lines;
}
