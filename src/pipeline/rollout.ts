import { basename, join } from 'node:path';
import { appendFile, mkdir, readFile, rm } from 'node:fs/promises';
import { loadRolloutConfig, type RolloutConfig } from '../config/rollout.ts';
import { episodeToRow, reportLabelRow } from '../environment/episode-row.ts';
import { generatePair } from '../environment/generate/generate.ts';
import { rollOut, type EpisodeLog, type LoggedTurn } from '../environment/rollout.ts';
import type { Scenario } from '../environment/scenario.ts';
import { scenarioToRow } from '../environment/scenario-row.ts';
import { CorruptFileError, MismatchError, UserError } from '../errors.ts';
import { writeFileAtomic } from '../lib/atomic-write.ts';
import { hashValue } from '../lib/content-hash.ts';
import { seededRng } from '../lib/rng.ts';
import { openGenerator } from '../model/open-generator.ts';
import { findFamily } from '../plan/chat/family.ts';
import { openTemplate } from '../plan/chat/template.ts';
import { endOfTurn } from '../plan/sequences.ts';
import { openTokenizer, type OpenTokenizer } from '../plan/tokenizer.ts';
import { type Cell, type ColumnType, type Row as TableRow, writeParquet } from '../store/tables.ts';
import type { Agent, Gate, Progress } from '../types.ts';
import { createLiveAgent } from './live-agent.ts';
import { parseJsonTags } from './parse-turn.ts';
import { readScenarios } from './scenarios.ts';

export interface RolloutContext {
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** What a rollout came to. Shares are of the episodes named; see organism/README.md for how to read them. */
export interface RolloutSummary {
  readonly folder: string;
  readonly episodes: number;
  readonly resumed: number;
  readonly turns: number;
  readonly calls: number;
  /** Calls that the tools could carry out, or that failed only by a passing fault of the scenario. */
  readonly validCalls: number;
  readonly unsafe: Readonly<
    Record<string, { readonly episodes: number; readonly unsafe: number; readonly success: number }>
  >;
}

interface Played {
  readonly episode: TableRow;
  readonly report: TableRow | null;
  readonly calls: number;
  readonly validCalls: number;
}

/** Finished episodes, one JSON line each; the first line says which rollout they belong to. */
const PARTIAL = 'episodes.partial.jsonl';

/**
 * Plays every scenario with the model of the configuration and writes OUT/episodes.parquet, scenarios.parquet and
 * report_labels.parquet in CAPE's columns. Stopped at any moment, the same command goes on after the last whole episode.
 *
 * @throws MismatchError (78) when OUT holds the beginning of another rollout
 */
export async function rollout(
  configFile: string,
  context: RolloutContext,
  options: { readonly gate?: Gate } = {},
): Promise<RolloutSummary> {
  const config = await loadRolloutConfig(configFile);
  const scenarios = await scenariosOf(config);
  const twins = twinsOf(scenarios);
  const opened = await openAgent(config, context.signal);
  try {
    const partial = await openPartial(config, scenarios, opened.modelHash);
    const played = new Map(partial.done);
    context.progress.start('rollout', scenarios.length, 'episodes');
    context.progress.advance(played.size);
    for (const scenario of scenarios) {
      if (played.has(scenario.instanceId)) continue;
      context.signal.throwIfAborted();
      const log = await rollOut({
        scenario,
        agent: opened.agent,
        uniform: sharedRandomness(config.seed, scenario),
        signal: context.signal,
        ...(options.gate === undefined ? {} : { gate: options.gate }),
        ...(config.maxTurns === null ? {} : { maxTurns: config.maxTurns }),
      });
      const item = recordOf(log, twins.get(scenario.instanceId) ?? null, config, opened.tokenizer);
      await partial.add(scenario.instanceId, item);
      played.set(scenario.instanceId, item);
      context.progress.advance(played.size);
    }
    context.progress.end();
    await writeTables(config.output, scenarios, played);
    await partial.remove();
    return summarise(config.output, scenarios, played, partial.done.size);
  } finally {
    await opened.close();
  }
}

async function scenariosOf(config: RolloutConfig): Promise<readonly Scenario[]> {
  const out: Scenario[] = [];
  if ('path' in config.scenarios) {
    for await (const scenario of readScenarios([config.scenarios.path])) out.push(scenario);
  } else {
    const { tasks, seed, conditions, nuisanceTasks } = config.scenarios.generate;
    for (let index = 0; index < tasks; index += 1)
      for (const condition of conditions)
        for (const { scenario } of generatePair({ seed, index, condition, set: `${config.name}_${condition}` }))
          if (scenario.world !== 'nuisance' || index < nuisanceTasks) out.push(scenario);
  }
  if (out.length === 0) throw new UserError('scenarios: expected at least one scenario, got none');
  return out;
}

/** The world that an episode's observations are compared with: x+ for x− and nuisance, x− for x+. */
function twinsOf(scenarios: readonly Scenario[]): ReadonlyMap<string, Scenario> {
  const worlds = new Map<string, Scenario>();
  for (const scenario of scenarios) worlds.set(`${scenario.pairId} ${scenario.world}`, scenario);
  const twins = new Map<string, Scenario>();
  for (const scenario of scenarios) {
    const twin = worlds.get(`${scenario.pairId} ${scenario.world === 'x+' ? 'x-' : 'x+'}`);
    if (twin !== undefined && scenario.world !== 'none') twins.set(scenario.instanceId, twin);
  }
  return twins;
}

/** One stream per (scenario seed, turn, attempt): worlds of one task share it, whatever else is played. */
function sharedRandomness(seed: number, scenario: Scenario): (turn: number, attempt: number, step: number) => number {
  const streams = new Map<string, { readonly next: () => number; readonly drawn: number[] }>();
  return (turn, attempt, step) => {
    const key = `${turn}/${attempt}`;
    let stream = streams.get(key);
    if (stream === undefined) {
      const rng = seededRng('rollout', seed, scenario.seed, turn, attempt);
      stream = { next: () => rng.next(), drawn: [] };
      streams.set(key, stream);
    }
    while (stream.drawn.length <= step) stream.drawn.push(stream.next());
    return stream.drawn[step] ?? 0;
  };
}

interface OpenedAgent {
  readonly agent: Agent;
  readonly tokenizer: OpenTokenizer;
  readonly modelHash: string;
  close(): Promise<void>;
}

async function openAgent(config: RolloutConfig, signal: AbortSignal): Promise<OpenedAgent> {
  const { folder, threads, executionProvider } = config.model;
  const generator = await openGenerator({ folder, taps: [], threads, executionProvider });
  try {
    const tokenizer = await openTokenizer(folder, generator.info.vocabularySize);
    const template = await openTemplate(folder, tokenizer.specialTokens, config.chat.templateKwargs, config.chat.date);
    const family = findFamily(template.text, { stack: 'hf-template', toolText: config.chat.toolText }, folder);
    const marker = tokenizer.encode(endOfTurn(template, tokenizer)).at(-1);
    const agent = createLiveAgent({
      generator,
      tokenizer,
      template,
      family,
      style: {
        toolText: config.chat.toolText,
        historyReasoning: config.chat.historyReasoning,
        reasoningField: family.reasoningField,
      },
      parse: parseJsonTags,
      stopIds: [...new Set([...tokenizer.eosIds, ...(marker === undefined ? [] : [marker])])],
      ...config.sampling,
      signal,
    });
    return {
      agent,
      tokenizer,
      modelHash: hashValue({ graph: generator.info.hashes, tokenizer: tokenizer.sha256, template: template.sha256 }),
      close: () => generator.close(),
    };
  } catch (error) {
    await generator.close();
    throw error;
  }
}

function recordOf(log: EpisodeLog, twin: Scenario | null, config: RolloutConfig, tokenizer: OpenTokenizer): Played {
  const naming = {
    run: config.name,
    model: config.model.name ?? basename(config.model.folder),
    positions: markerPositions(tokenizer),
  };
  const calls = log.turns.flatMap((turn) => turn.calls);
  const passing = (text: string): boolean => log.scenario.faults.some((fault) => text === `Error: ${fault.error}`);
  return {
    episode: episodeToRow(log, twin, naming),
    report: reportLabelRow(log, twin, naming),
    calls: calls.length + log.turns.filter((turn) => turn.turn.invalid !== null).length,
    validCalls: calls.filter((item) => !item.failed || passing(item.result)).length,
  };
}

/**
 * Token positions of a turn, in prompt ++ generated, from the control tokens that were really generated. Only for
 * families whose markers are single tokens; others log prompt_end alone.
 */
function markerPositions(tokenizer: OpenTokenizer): (turn: LoggedTurn) => Readonly<Record<string, number>> {
  const thinkEnd = tokenizer.idOf('</think>');
  const open = tokenizer.idOf('<tool_call>');
  const close = tokenizer.idOf('</tool_call>');
  return ({ turn }) => {
    const start = turn.promptIds.length;
    const at = (id: number | null): number => (id === null ? -1 : turn.generatedIds.indexOf(id));
    const found: [string, number][] = [['prompt_end', start - 1]];
    if (at(thinkEnd) >= 0) found.push(['reasoning_end', start + at(thinkEnd)]);
    if (turn.calls.length > 0 && at(open) >= 0) found.push(['pre_action', start + at(open) - 1]);
    if (turn.calls.length > 0 && at(close) >= 0) found.push(['action_end', start + at(close)]);
    return Object.fromEntries(found.toSorted((a, b) => a[1] - b[1]));
  };
}

interface PartialFile {
  readonly done: ReadonlyMap<string, Played>;
  add(id: string, item: Played): Promise<void>;
  remove(): Promise<void>;
}

/** Finished episodes of an earlier, interrupted call. A last line that was cut off is dropped. */
async function openPartial(
  config: RolloutConfig,
  scenarios: readonly Scenario[],
  modelHash: string,
): Promise<PartialFile> {
  const file = join(config.output, PARTIAL);
  const { output: _, ...settings } = config;
  const key = hashValue({
    settings: { ...settings, model: { ...settings.model, folder: '' } },
    modelHash,
    scenarios: scenarios.map(scenarioToRow),
  });
  await mkdir(config.output, { recursive: true });
  const text = await readFile(file, 'utf8').catch(() => '');
  const lines = text.split('\n').slice(0, -1);
  // What follows a torn line must not be glued to it.
  if (!text.endsWith('\n') && text !== '') await writeFileAtomic(file, lines.map((line) => `${line}\n`).join(''));
  const done = new Map<string, Played>();
  for (const [index, line] of lines.entries()) {
    const value = readLine(file, index, line);
    if ('key' in value) {
      if (value.key !== key)
        throw new MismatchError(
          `${file}: expected the beginning of this rollout, got another (scenarios, model or settings differ). Choose another output folder, or remove the file`,
        );
    } else if (index > 0) done.set(value.id, value.item);
  }
  if (lines.length === 0) await appendFile(file, `${JSON.stringify({ key })}\n`);
  return {
    done,
    add: (id, item) => appendFile(file, `${JSON.stringify({ id, item })}\n`),
    remove: () => rm(file, { force: true }),
  };
}

/** Columns that stay whole numbers even where every cell is null. */
const EVENT_COLUMNS = new Set(['reveal_event', 'first_unsafe_event', 'first_critical_event']);

/** Types by value, so that a column of the scenarios' own (`extra`) is kept as it came. */
function columnsOf(rows: readonly TableRow[]): Readonly<Record<string, ColumnType>> {
  const typeOf = (name: string): ColumnType => {
    const values = rows.map((row) => row[name] ?? null).filter((value): value is Exclude<Cell, null> => value !== null);
    if (EVENT_COLUMNS.has(name)) return 'INTEGER';
    if (values.length > 0 && values.every((value) => typeof value === 'boolean')) return 'BOOLEAN';
    if (values.length > 0 && values.every((value) => typeof value === 'number'))
      return values.every((value) => value === (value | 0)) ? 'INTEGER' : 'DOUBLE';
    return 'VARCHAR';
  };
  const names = new Set(rows.flatMap((row) => Object.keys(row)));
  return Object.fromEntries(Array.from(names, (name) => [name, typeOf(name)]));
}

/** Cells of a column that holds values of several types become text. */
async function writeTable(path: string, rows: readonly TableRow[]): Promise<void> {
  const columns = columnsOf(rows);
  const cell = (name: string, value: Cell): Cell =>
    columns[name] === 'VARCHAR' && value !== null ? String(value) : value;
  const plain = rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, cell(name, value)])),
  );
  await writeParquet(path, columns, plain);
}

type PartialLine = { readonly key: string } | { readonly id: string; readonly item: Played };

function readLine(file: string, index: number, line: string): PartialLine {
  try {
    return JSON.parse(line) as PartialLine;
  } catch (error) {
    throw new CorruptFileError(
      `${file}: line ${index + 1}: expected JSON, got a damaged line. Remove the file to start again`,
      {
        cause: error,
      },
    );
  }
}

/** In the order of the scenarios. */
function finished(scenarios: readonly Scenario[], played: ReadonlyMap<string, Played>): readonly Played[] {
  return scenarios.flatMap((scenario) => {
    const item = played.get(scenario.instanceId);
    return item === undefined ? [] : [item];
  });
}

async function writeTables(
  folder: string,
  scenarios: readonly Scenario[],
  played: ReadonlyMap<string, Played>,
): Promise<void> {
  const items = finished(scenarios, played);
  await writeTable(
    join(folder, 'episodes.parquet'),
    items.map((item) => item.episode),
  );
  await writeTable(join(folder, 'scenarios.parquet'), scenarios.map(scenarioToRow));
  const reports = items.flatMap((item) => (item.report === null ? [] : [item.report]));
  if (reports.length > 0) await writeTable(join(folder, 'report_labels.parquet'), reports);
}

function summarise(
  folder: string,
  scenarios: readonly Scenario[],
  played: ReadonlyMap<string, Played>,
  resumed: number,
): RolloutSummary {
  const items = finished(scenarios, played);
  const unsafe: Record<string, { episodes: number; unsafe: number; success: number }> = {};
  for (const { episode } of items) {
    const entry = (unsafe[String(episode['run'])] ??= { episodes: 0, unsafe: 0, success: 0 });
    entry.episodes += 1;
    if (episode['unsafe_episode'] === true) entry.unsafe += 1;
    if (episode['success'] === true) entry.success += 1;
  }
  const sum = (value: (item: Played) => number): number => items.reduce((total, item) => total + value(item), 0);
  return {
    folder,
    episodes: items.length,
    resumed,
    turns: sum((item) => Number(item.episode['n_turns'])),
    calls: sum((item) => item.calls),
    validCalls: sum((item) => item.validCalls),
    unsafe,
  };
}
