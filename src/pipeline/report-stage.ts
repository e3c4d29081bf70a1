import { basename } from 'node:path';
import { formatHeadline } from '../report/headline.ts';
import { renderReport } from '../report/page.ts';
import type { ReportExample, ReportView } from '../report/report-view.ts';
import type { Curves } from '../store/curves.ts';
import type { PlanFile } from '../store/plan-shards.ts';
import { type ReportFacts, writeReportFacts } from '../store/report-facts.ts';
import type { EpisodeMeta, Exclusion, Metrics } from '../types.ts';
import type { ExtractSummary } from './extract-stage.ts';
import type { ForecastPart } from './forecast-stage.ts';
import type { OpenedRun } from './open-run.ts';

/** Text of a turn as the page shows it: enough to follow, not the whole log. */
const TURN_CHARACTERS = 400;

/** Unsafe and safe episodes in turn, those with the most scores first. */
function chooseExamples(
  metas: readonly EpisodeMeta[],
  scored: ReadonlyMap<string, number>,
  count: number,
): EpisodeMeta[] {
  const order = (a: EpisodeMeta, b: EpisodeMeta): number =>
    (scored.get(b.key) ?? 0) - (scored.get(a.key) ?? 0) || (a.key < b.key ? -1 : 1);
  const unsafe = metas.filter((meta) => meta.unsafe !== null && scored.has(meta.key)).sort(order);
  const safe = metas.filter((meta) => meta.unsafe === null && scored.has(meta.key)).sort(order);
  return Array.from({ length: count }, (_, index) => (index % 2 === 0 ? unsafe : safe)[Math.floor(index / 2)]).filter(
    (meta) => meta !== undefined,
  );
}

async function examples(run: OpenedRun, parts: readonly ForecastPart[]): Promise<ReportExample[]> {
  // One target and condition, each episode as its own world's row: two scores at one place would be two readers.
  const part = parts[0];
  if (!part) return [];
  const world = new Map(part.episodes.map((meta) => [meta.key, meta.world === 'none' ? 'all' : meta.world]));
  const rows = part.result.scores.filter(
    (row) =>
      row.reader === part.result.headline && row.population === world.get(row.episode) && row.position !== 'selected',
  );
  const scored = new Map<string, number>();
  for (const row of rows) scored.set(row.episode, (scored.get(row.episode) ?? 0) + 1);
  const chosen = new Map(chooseExamples(run.metas, scored, run.config.report.examples).map((meta) => [meta.key, meta]));
  const out: ReportExample[] = [];
  if (chosen.size === 0) return out;
  for await (const episode of run.episodes()) {
    const meta = chosen.get(episode.key);
    if (!meta) continue;
    out.push({
      meta,
      turns: episode.turns.map((turn) => ({
        index: turn.index,
        text: [turn.reasoning, turn.content ?? '']
          .filter((text) => text !== '')
          .join(' – ')
          .slice(0, TURN_CHARACTERS),
        calls: turn.calls.map((call) => call.name),
        unsafe: turn.unsafe,
      })),
      scores: rows.filter((row) => row.episode === meta.key),
    });
  }
  return out;
}

/** The page and the lines for the terminal, from stored values; what no other file of the run holds is stored too. */
export async function reportStage(
  run: OpenedRun,
  plan: PlanFile,
  extract: ExtractSummary,
  parts: readonly ForecastPart[],
  metrics: Metrics,
  curves: Curves,
  exclusions: readonly Exclusion[],
): Promise<{ readonly html: string; readonly headline: readonly string[] }> {
  const { config, folder, model } = run;
  const record = folder.record();
  const count = (value: number): string => value.toLocaleString('en');
  const unsafe = run.metas.filter((meta) => meta.unsafe !== null).length;
  const { versions = {} } = record.key.extraction as { versions?: Record<string, string> };
  const data =
    (record.key.extraction as { data?: { files?: readonly { file: string; sha256: string }[] } }).data?.files ?? [];
  const facts: ReportFacts = {
    schemaVersion: 1,
    title: config.report.title ?? `forewarn: ${config.name}`,
    command: `npx forewarn run ${run.configPath}`,
    run: {
      name: basename(folder.path),
      startedAt: record.startedAt,
      role: config.replay.role,
      machine: record.machine,
      versions,
      hashes: {
        ...Object.fromEntries(Object.entries(model.hashes).map(([file, hash]) => [`model: ${file}`, hash])),
        tokenizer: run.chat.tokenizer.sha256,
        'chat template': run.chat.template.sha256,
        ...Object.fromEntries(data.map(({ file, sha256 }) => [`data: ${file}`, sha256])),
      },
      settings: {
        role: config.replay.role,
        stack: config.replay.stack,
        'tool text': config.replay.toolText,
        'earlier reasoning': config.replay.historyReasoning,
        'template date': config.replay.date,
        'context policy': `${config.replay.context.policy}, limit ${run.chat.contextLimit ?? 'none'} tokens`,
        depth: config.forecast.depth,
        seeds: `${config.seed} and ${config.train.splitSeeds - 1} more split seeds`,
        folds: `${config.train.folds} outer, ${config.train.innerFolds} inner`,
        estimators: config.train.estimators.join(', '),
      },
    },
    counts: {
      episodes: `${count(run.metas.length)} (${unsafe} unsafe), ${new Set(run.groups).size} groups`,
      agents: [...new Set(run.metas.map((meta) => meta.model))].join(', '),
      reader: `${basename(config.model.folder)}: ${model.exporter}, ${model.blocks} blocks, width ${model.width}`,
      turns: `${count(plan.turns)}, ${count(plan.truncatedTurns)} cut in the middle`,
      tokens: `naive ${count(plan.naiveTokens)}, distinct ${count(plan.distinctTokens)} (${(plan.naiveTokens / Math.max(1, plan.distinctTokens)).toFixed(1)} : 1)`,
      'generated ids': Object.entries(plan.idsFrom)
        .map(([from, n]) => `${from} ${count(n)}`)
        .join(', '),
      'ids checked against the log':
        plan.verification.checkedTurns === 0
          ? 'the log has neither ids nor counts'
          : `${count(plan.verification.agreedTurns)} of ${count(plan.verification.checkedTurns)} agree`,
      'hidden states': `${count(extract.rows)} rows × ${run.taps.length} taps × ${extract.width}`,
    },
    warnings: run.warnings,
    limits: run.mapping.limits,
    taps: run.searchTaps,
    examples: await examples(run, parts),
  };
  await writeReportFacts(folder.path, facts);
  const { schemaVersion: _, ...shown } = facts;
  const view: ReportView = {
    ...shown,
    metrics,
    curves: curves.curves,
    stops: curves.stops,
    choices: curves.choices,
    thresholds: curves.thresholds,
    exclusions,
  };
  return { html: renderReport(view), headline: formatHeadline(metrics) };
}
