import { scoreLegend, scoreOverTurns } from './charts/score-chart.ts';
import { escapeHtml } from './escape.ts';
import { formatNumber } from './format.ts';
import type { ReportExample, ReportView } from './report-view.ts';
import { details, figureBlock, note, table } from './tables.ts';

function oneExample(example: ReportExample): string {
  const { meta } = example;
  const turns = example.turns.map((turn) => {
    const reveal = turn.index === meta.reveal;
    const marks = `${reveal ? ' (reveal)' : ''}${turn.unsafe ? ' (unauthorized action)' : ''}`;
    const calls = turn.calls.length === 0 ? '' : ` calls ${turn.calls.join(', ')}`;
    return `<div class="turn${turn.unsafe ? ' unsafe' : reveal ? ' reveal' : ''}"><strong>turn ${turn.index}</strong>${marks}<bdi>${escapeHtml(calls)}</bdi><br><bdi>${escapeHtml(turn.text)}</bdi></div>`;
  });
  const what = meta.unsafe === null ? 'no unauthorized action' : `unauthorized action at turn ${meta.unsafe}`;
  const reveal = meta.reveal === null ? 'never revealed' : `revealed at turn ${meta.reveal}`;
  const about = [
    what,
    reveal,
    `ended: ${meta.status ?? 'unknown'}`,
    ...(meta.world === 'none' ? [] : [`world ${meta.world}`]),
  ];
  const rows = example.scores.map((score) => [
    String(score.turn),
    score.landmark,
    score.position,
    score.calibrated === null ? 'no calibration' : formatNumber(score.calibrated),
    formatNumber(score.score),
  ]);
  return [
    `<h3><bdi>${escapeHtml(meta.episodeId)}</bdi></h3>`,
    note(about.join('; ')),
    scoreLegend(example, escapeHtml),
    figureBlock(
      scoreOverTurns(example),
      'Out-of-fold score at each landmark, one dot a position and landmark. Dotted: reveal; orange line: the act. A single episode proves nothing.',
      table(['turn', 'landmark', 'position', 'calibrated', 'raw margin'], rows),
    ),
    details(`${example.turns.length} turns, shortened`, turns.join('')),
  ].join('');
}

export function examplesSection(view: ReportView): string {
  if (view.examples.length === 0)
    return note('No example: none was asked for, or no episode has an out-of-fold score.');
  return view.examples.map(oneExample).join('');
}
