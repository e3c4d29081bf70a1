import { mkdir } from 'node:fs/promises';
import type { RolloutConfig } from '../config/rollout.ts';
import { rollOut } from '../environment/rollout.ts';
import type { Scenario } from '../environment/scenario.ts';
import { takeLease } from '../store/lease.ts';
import type { Gate, Progress } from '../types.ts';
import type { Steering } from '../model/generation-core.ts';
import type { Lane, OpenedAgents } from './rollout-agents.ts';
import { openPartial, type PartialFile } from './rollout-partial.ts';
import { recordOf, type Played } from './rollout-record.ts';
import { sharedRandomness, twinsOf } from './rollout-scenarios.ts';
import { finished, isWritten, writeTables } from './rollout-tables.ts';

export interface RolloutContext {
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** One way of playing a set of scenarios. */
export interface Play {
  /** Shown with the progress. */
  readonly label: string;
  readonly folder: string;
  readonly scenarios: readonly Scenario[];
  /** What else than model, settings and scenarios determines the episodes (the gate, a direction); null = nothing. */
  readonly identity: unknown;
  /** Absent = no gate. */
  readonly gateOf?: (lane: Lane, scenario: Scenario) => Gate;
  /** Changes the states in every turn. */
  readonly steer?: Steering;
  /** Keep the record of finished episodes, so that the same call later takes them over; `forget` removes it. */
  readonly keep?: boolean;
}

export interface PlayedSet {
  readonly items: readonly Played[];
  /** Episodes that an earlier call had played. */
  readonly resumed: number;
  forget(): Promise<void>;
}

/**
 * Plays every scenario with the opened agents, logs the episodes into the folder and returns them in the order of the
 * scenarios. What a finished or interrupted call of the same play left there is taken over; the lanes change nothing.
 * @throws MismatchError (78) when the folder holds the beginning of another play, TryAgainError (75) when it is in use
 */
export async function playSet(
  play: Play,
  opened: OpenedAgents,
  config: RolloutConfig,
  context: RolloutContext,
): Promise<PlayedSet> {
  const { scenarios, folder } = play;
  await mkdir(folder, { recursive: true });
  const lease = await takeLease(folder);
  try {
    const partial = await openPartial(folder, { config, scenarios, identity: play.identity }, opened.modelHash);
    const played = new Map(partial.done);
    const result = (): PlayedSet => ({
      items: finished(scenarios, played),
      resumed: partial.done.size,
      forget: () => partial.remove(),
    });
    if (played.size === scenarios.length && (await isWritten(folder))) return result();
    context.progress.start(play.label, scenarios.length, 'episodes');
    context.progress.advance(played.size);
    // One lane that fails stops the others.
    const failed = new AbortController();
    const signal = AbortSignal.any([context.signal, failed.signal]);
    const rest = scenarios.filter((scenario) => !played.has(scenario.instanceId)).values();
    const work = { play, config, opened, twins: twinsOf(scenarios), partial, played, rest, signal, context };
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
    await writeTables(folder, scenarios, played);
    if (play.keep !== true) await partial.remove();
    return result();
  } finally {
    await lease.release();
  }
}

interface Work {
  readonly play: Play;
  readonly config: RolloutConfig;
  readonly opened: OpenedAgents;
  readonly twins: ReadonlyMap<string, Scenario>;
  readonly partial: PartialFile;
  readonly played: Map<string, Played>;
  /** Taken from by every lane: whoever is free plays the next. */
  readonly rest: IterableIterator<Scenario>;
  readonly signal: AbortSignal;
  readonly context: RolloutContext;
}

async function playLane(lane: Lane, work: Work): Promise<void> {
  const { play, config, signal, played } = work;
  for (const scenario of work.rest) {
    signal.throwIfAborted();
    const log = await rollOut({
      scenario,
      agent: lane.agentOf(scenario.instanceId, play.steer),
      uniform: sharedRandomness(config.seed, scenario),
      signal,
      ...(play.gateOf === undefined ? {} : { gate: play.gateOf(lane, scenario) }),
      ...(config.maxTurns === null ? {} : { maxTurns: config.maxTurns }),
    });
    const item = recordOf(log, work.twins.get(scenario.instanceId) ?? null, config, work.opened.format);
    await work.partial.add(scenario.instanceId, item);
    played.set(scenario.instanceId, item);
    work.context.progress.advance(played.size);
  }
}
