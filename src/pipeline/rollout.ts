import { mkdir } from 'node:fs/promises';
import { loadRolloutConfig, type RolloutConfig } from '../config/rollout.ts';
import { rollOut } from '../environment/rollout.ts';
import type { Scenario } from '../environment/scenario.ts';
import { takeLease } from '../store/lease.ts';
import type { Gate, Progress } from '../types.ts';
import { openAgents, type Lane, type OpenedAgents } from './rollout-agents.ts';
import { openPartial, type PartialFile } from './rollout-partial.ts';
import { recordOf, type Played } from './rollout-record.ts';
import { scenariosOf, sharedRandomness, twinsOf } from './rollout-scenarios.ts';
import { finished, writeTables } from './rollout-tables.ts';

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

export interface RolloutOptions {
  readonly gate?: Gate;
  /** Model processes that play episodes at the same time (default 1). What is written does not depend on it. */
  readonly workers?: number;
}

/**
 * Plays every scenario with the model of the configuration and writes OUT/episodes.parquet, scenarios.parquet and
 * report_labels.parquet in CAPE's columns. Stopped at any moment, the same command goes on after the last whole episode,
 * with any number of workers.
 *
 * @throws MismatchError (78) when OUT holds the beginning of another rollout, TryAgainError (75) when another process works there
 */
export async function rollout(
  configFile: string,
  context: RolloutContext,
  options: RolloutOptions = {},
): Promise<RolloutSummary> {
  const config = await loadRolloutConfig(configFile);
  const scenarios = await scenariosOf(config);
  await mkdir(config.output, { recursive: true });
  const lease = await takeLease(config.output);
  try {
    // One lane that fails stops the others.
    const failed = new AbortController();
    const signal = AbortSignal.any([context.signal, failed.signal]);
    const opened = await openAgents(config, Math.min(options.workers ?? 1, scenarios.length), signal);
    try {
      const partial = await openPartial(config, scenarios, opened.modelHash);
      const played = new Map(partial.done);
      context.progress.start('rollout', scenarios.length, 'episodes');
      context.progress.advance(played.size);
      const rest = scenarios.filter((scenario) => !played.has(scenario.instanceId)).values();
      const work = { config, opened, twins: twinsOf(scenarios), partial, played, rest, signal, context, options };
      const ended = await Promise.allSettled(
        opened.lanes.map((lane) =>
          playLane(lane, work).catch((error: unknown) => {
            failed.abort(error);
            throw error;
          }),
        ),
      );
      signal.throwIfAborted();
      for (const lane of ended) if (lane.status === 'rejected') throw lane.reason;
      context.progress.end();
      await writeTables(config.output, scenarios, played);
      await partial.remove();
      return summarise(config.output, scenarios, played, partial.done.size);
    } finally {
      await opened.close();
    }
  } finally {
    await lease.release();
  }
}

interface Work {
  readonly config: RolloutConfig;
  readonly opened: OpenedAgents;
  readonly twins: ReadonlyMap<string, Scenario>;
  readonly partial: PartialFile;
  readonly played: Map<string, Played>;
  /** Taken from by every lane: whoever is free plays the next. */
  readonly rest: IterableIterator<Scenario>;
  readonly signal: AbortSignal;
  readonly context: RolloutContext;
  readonly options: RolloutOptions;
}

async function playLane(lane: Lane, work: Work): Promise<void> {
  const { config, signal, played } = work;
  for (const scenario of work.rest) {
    signal.throwIfAborted();
    const log = await rollOut({
      scenario,
      agent: lane.agentOf(scenario.instanceId),
      uniform: sharedRandomness(config.seed, scenario),
      signal,
      ...(work.options.gate === undefined ? {} : { gate: work.options.gate }),
      ...(config.maxTurns === null ? {} : { maxTurns: config.maxTurns }),
    });
    const item = recordOf(log, work.twins.get(scenario.instanceId) ?? null, config, work.opened.format);
    await work.partial.add(scenario.instanceId, item);
    played.set(scenario.instanceId, item);
    work.context.progress.advance(played.size);
  }
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
