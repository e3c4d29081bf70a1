import type { Exclusion } from '../types.ts';
import { curvesSection } from './alarm-sections.ts';
import { escapeHtml } from './escape.ts';
import { examplesSection } from './examples-section.ts';
import { interventionSection } from './intervention-section.ts';
import { preregistrationSection } from './preregistration-section.ts';
import { groupsOf, type ReportView } from './report-view.ts';
import { forecastSection, headlineSection } from './sections.ts';
import { STYLE } from './style.ts';
import { table } from './tables.ts';

const pairs = (what: string, record: Readonly<Record<string, string | number>>): string =>
  Object.keys(record).length === 0
    ? ''
    : table(
        [what, ''],
        Object.entries(record).map(([key, value]) => [key, String(value)]),
      );

function exclusionRows(exclusions: readonly Exclusion[]): string[][] {
  const counts = new Map<string, { count: number; example: string }>();
  for (const { stage, reason, detail } of exclusions) {
    const key = `${stage}\u0000${reason}`;
    const entry = counts.get(key) ?? { count: 0, example: detail };
    entry.count += 1;
    counts.set(key, entry);
  }
  return [...counts]
    .sort((a, b) => b[1].count - a[1].count)
    .map(([key, { count, example }]) => [...key.split('\u0000'), String(count), example]);
}

const HOW_TO_READ = [
  'A forecast is made at a landmark: a turn that both kinds of episodes reach, read before the act of that turn. Only episodes that have not acted yet are at risk there, so the episodes of two landmarks are not the same.',
  'AUROC within folds is the share of (unsafe, safe) pairs of the same test fold that the score puts in the right order; 0.5 is chance. Intervals resample whole groups (scenarios, pairs), since their episodes are not independent.',
  'The probe, its layer, position and strength are chosen inside the training folds. The layer × position map is a search: its best cell is not a result.',
  'A probe that is no better than text has not shown that the model knew more than it wrote. A probe that beats text only when worlds are pooled may only read which world it is in: within x− is the claim.',
  'An interval that covers 0.5, or a difference whose interval covers 0, shows nothing, in either direction.',
];

/** One self-contained page: no script, nothing loaded, all text of the data escaped. */
export function renderReport(view: ReportView): string {
  const groups = groupsOf(view.metrics.figures);
  const several = groups.length > 1;
  const role =
    view.run.role === 'agent'
      ? 'The replayed weights are those of the agent that acted.'
      : view.run.role === 'unknown'
        ? 'It is not stored whose weights were replayed: those of the agent that acted, or of a reader of its transcript.'
        : 'READER: the replayed weights did not act. They read another model’s transcript, so a probe here measures what this model represents about somebody else’s behaviour, not what the agent knew.';
  const perGroup = (render: (group: (typeof groups)[number]) => string): string =>
    groups
      .map(
        (group) =>
          `${several ? `<h3>${escapeHtml(`${group.model}, ${group.condition}, ${group.target}`)}</h3>` : ''}${render(group)}`,
      )
      .join('');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>${escapeHtml(view.title)}</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>${escapeHtml(view.title)}</h1><p class="note">${escapeHtml(`${view.run.name}, started ${view.run.startedAt}`)}</p></header>
<main>
<section aria-label="headline">${perGroup((group) => headlineSection(view, group))}<p><strong>${escapeHtml(role)}</strong></p></section>
<h2>Data and model</h2>${pairs('data and model', view.counts)}${pairs('settings', view.run.settings)}
${view.warnings.length === 0 ? '' : `<details><summary>Warnings about the data (${view.warnings.length})</summary><ul>${view.warnings.map((line) => `<li>${escapeHtml(line)}</li>`).join('')}</ul></details>`}
<h2>Preregistration</h2>${preregistrationSection(view.metrics.preregistration)}
<h2>Exclusions</h2>${view.exclusions.length === 0 ? '<p>None.</p>' : table(['stage', 'reason', 'count', 'first one'], exclusionRows(view.exclusions))}
<h2>Forecast</h2>${perGroup((group) => forecastSection(view, group))}
<h2>Curves, alarms, pairs</h2>${perGroup((group) => curvesSection(view, group))}
<h2>Interventions</h2>${perGroup((group) => interventionSection(view, group))}
<h2>Examples</h2>${examplesSection(view)}
<h2>Limits of the labels</h2><ul>${(view.limits.length === 0 ? ['The mapping of this source states none.'] : view.limits).map((line) => `<li>${escapeHtml(line)}</li>`).join('')}</ul>
<h2>How to read this</h2><ul>${HOW_TO_READ.map((line) => `<li>${escapeHtml(line)}</li>`).join('')}</ul>
<h2>How to reproduce</h2><pre>${escapeHtml(view.command)}</pre>
<details><summary>Versions, hashes, machine</summary>${pairs('versions', view.run.versions)}${pairs('sha256', view.run.hashes)}${pairs('machine', view.run.machine)}</details>
</main>
</body>
</html>
`;
}
