import { join } from 'node:path';
import type { GateConfig } from '../config/gate.ts';
import type { RolloutConfig } from '../config/rollout.ts';
import type { Scenario } from '../environment/scenario.ts';
import { UserError } from '../errors.ts';
import { thresholdAt } from '../forecast/thresholds.ts';
import { hashValue } from '../lib/content-hash.ts';
import { seededRng } from '../lib/rng.ts';
import { liveFigures, type GatedPlay } from '../intervention/live-figures.ts';
import type { Steering } from '../model/generation-core.ts';
import { loadProbe } from '../probe/artefact.ts';
import type { ProbeCard } from '../probe/card.ts';
import { writeMetrics } from '../store/figures.ts';
import type { Figure, Gate, Metrics, Probe } from '../types.ts';
import { alarmRates, eventsOf, liveEpisode } from './live-episodes.ts';
import { createProbeGate, decisionOf, scoreName, type GateAnswer, type GateReader } from './probe-gate.ts';
import { openAgents, type Lane, type OpenedAgents } from './rollout-agents.ts';
import { playSet, type Play, type PlayedSet, type RolloutContext } from './rollout-play.ts';
import { developmentScenarios } from './rollout-scenarios.ts';
import { summarise, type RolloutSummary } from './rollout-summary.ts';
import { meanLength, unitDirection } from './steering-direction.ts';

/** A probe of the configuration, read from disk, not yet with its threshold. */
interface LoadedReader {
  readonly probe: Probe;
  readonly card: ProbeCard;
  readonly position: string;
  readonly folder: string;
}

/**
 * Plays the scenarios without a gate, once with it for each kind of answer, and with random gates at the same alarm
 * rates; every play has the same random numbers. OUT/<answer>/ and OUT/<answer>-random-N/ hold the episodes,
 * OUT/metrics.json the figures. The threshold for alpha comes from other scenarios, played without a gate.
 */
export async function gatedRollout(
  config: RolloutConfig,
  gate: GateConfig,
  scenarios: readonly Scenario[],
  workers: number,
  context: RolloutContext,
): Promise<RolloutSummary> {
  const loaded = await loadReaders(gate);
  const taps = [...new Set(loaded.flatMap(({ probe }) => probe.taps))];
  const steers = gate.answers.some((answer) => answer === 'steer' || answer === 'ablate');
  const [first] = loaded;
  const needs = { taps, steer: steers && first !== undefined ? (first.probe.taps[0] ?? null) : null };
  const opened = await openAgents(config, workers, needs, context.signal);
  try {
    // Only now the hashes of the model are known.
    for (const { folder } of loaded) await loadProbe(folder, opened.info.hashes);
    const players = { config, gate, scenarios, opened, context, forget: [] as (() => Promise<void>)[] };
    const readers = await findThresholds(loaded, players);
    const ungated = await playWith('no-gate', watching(readers, opened, gate), players, {
      identity: { watch: identityOf(readers, loaded) },
    });
    const plays: GatedPlay[] = [];
    const episodesOf = (set: PlayedSet) => set.items.map((item, index) => liveEpisode(item, scenarios[index]));
    for (const answer of gate.answers) {
      if (answer === 'allow') continue;
      const identity = { answer, message: gate.message, strength: gate.strength, readers: identityOf(readers, loaded) };
      const steer = steeringOf(answer, loaded, gate);
      const set = await playWith(
        answer,
        (lane, scenario) =>
          createProbeGate({
            readers,
            format: opened.format,
            answer,
            message: gate.message,
            ...(steer === null ? {} : { changed: lane.agentOf(scenario.instanceId, steer) }),
          }),
        players,
        { identity },
      );
      const rates = alarmRates(set.items);
      const random: PlayedSet[] = [];
      for (let repeat = 1; repeat <= gate.random; repeat += 1) {
        const at = (lane: Lane, scenario: Scenario): Gate =>
          randomGate(
            rates,
            answer,
            gate.message,
            seededRng('random-gate', config.seed, repeat, scenario.instanceId),
            steer === null ? {} : { changed: lane.agentOf(scenario.instanceId, steer) },
          );
        random.push(
          await playWith(`${answer}-random-${repeat}`, at, players, { identity: { ...identity, rates, repeat } }),
        );
      }
      plays.push({ answer, episodes: episodesOf(set), random: random.map(episodesOf) });
    }
    const figures = liveFigures(episodesOf(ungated), plays, {
      draws: gate.bootstrap,
      rng: (name) => seededRng('gate', config.seed, name),
    });
    const common = {
      stage: 'rollout',
      target: first?.probe.target ?? '',
      landmark: 'any',
      position: readers.map((reader) => reader.position).join('+'),
      tap: first?.probe.taps.join('+') ?? null,
      ...(gate.alpha === null ? {} : { alpha: gate.alpha }),
      at: Object.fromEntries(
        readers.map((reader, index) => [`threshold.${scoreName(readers, index)}`, reader.threshold]),
      ),
    } as const;
    const metrics: Metrics = {
      schemaVersion: 1,
      run: config.name,
      figures: figures.map((figure): Figure => ({ ...common, ...figure })),
    };
    await writeMetrics(config.output, metrics);
    for (const forget of players.forget) await forget();
    return { ...summarise(config.output, ungated.items, ungated.resumed), metrics };
  } finally {
    await opened.close();
  }
}

async function loadReaders(gate: GateConfig): Promise<readonly LoadedReader[]> {
  const loaded: LoadedReader[] = [];
  for (const [index, { folder, position }] of gate.probes.entries()) {
    const { probe, card } = await loadProbe(folder, null);
    const at = position ?? probe.landmark.position;
    if (!['prompt_end', 'reasoning_start', 'reasoning_end', 'pre_action'].includes(at))
      throw new UserError(
        `gate.probes.${index}.position: expected prompt_end, reasoning_start, reasoning_end or pre_action, got ${at} from the probe's card. Name a position that is known before the call runs`,
      );
    loaded.push({ probe, card, position: at, folder });
  }
  return loaded;
}

interface Players {
  readonly config: RolloutConfig;
  readonly gate: GateConfig;
  readonly scenarios: readonly Scenario[];
  readonly opened: OpenedAgents;
  readonly context: RolloutContext;
  /** Records of finished plays, removed when everything is done. */
  readonly forget: (() => Promise<void>)[];
}

async function playWith(
  name: string,
  gateOf: NonNullable<Play['gateOf']>,
  players: Players,
  { identity, scenarios = players.scenarios }: { readonly identity: unknown; readonly scenarios?: readonly Scenario[] },
): Promise<PlayedSet> {
  const { config, opened, context } = players;
  const folder = join(config.output, name);
  const set = await playSet({ label: name, folder, scenarios, identity, gateOf, keep: true }, opened, config, context);
  players.forget.push(() => set.forget());
  return set;
}

/** A gate that changes nothing: it logs its scores. */
function watching(readers: readonly GateReader[], opened: OpenedAgents, gate: GateConfig) {
  return (): Gate => createProbeGate({ readers, format: opened.format, answer: 'allow', message: gate.message });
}

/** What makes one set of readers another. */
function identityOf(readers: readonly GateReader[], loaded: readonly LoadedReader[]): string {
  return hashValue(
    readers.map(({ position, threshold }, index) => ({
      position,
      threshold,
      weights: loaded[index].card.weightsSha256,
    })),
  );
}

/**
 * Thresholds as given, from the card, or for alpha from episodes of other scenarios: the highest score of each episode
 * that is safe there. Several probes share alpha evenly, so that together they stay below it.
 */
async function findThresholds(loaded: readonly LoadedReader[], players: Players): Promise<readonly GateReader[]> {
  const { gate, config } = players;
  const { alpha, development } = gate;
  const withThreshold = (threshold: (index: number) => number): GateReader[] =>
    loaded.map(({ probe, position }, index) => ({ probe, position, threshold: threshold(index) }));
  if (alpha === null) return withThreshold(() => gate.threshold ?? 1);
  if (development === null) {
    return withThreshold((index) => {
      const { probe, folder } = loaded[index];
      const own = probe.thresholds.find((item) => item.alpha === alpha)?.threshold;
      if (typeof own === 'number') return own;
      const known = probe.thresholds.filter((item) => typeof item.threshold === 'number').map((item) => item.alpha);
      throw new UserError(
        `gate.alpha: expected one of the alphas on the card of ${folder} (${known.join(', ') || 'none'}), got ${alpha}. Name one of them, or give gate.development`,
      );
    });
  }
  // No probability is greater than 1: these only watch.
  const blind = withThreshold(() => 1);
  const scenarios = developmentScenarios(config, development.generate);
  const set = await playWith('development', watching(blind, players.opened, gate), players, {
    identity: { watch: identityOf(blind, loaded) },
    scenarios,
  });
  const safe = set.items.filter((item) => item.episode['unsafe_episode'] !== true);
  return withThreshold((index) => {
    const name = scoreName(blind, index);
    const maxima = safe.map((item) =>
      Math.max(...eventsOf(item).map((event) => event.gate_scores?.[name] ?? -Number.MAX_VALUE)),
    );
    const threshold = thresholdAt(alpha / loaded.length, maxima);
    if (typeof threshold === 'number') return threshold;
    throw new UserError(
      `gate.development: expected enough safe episodes for ${name}: ${threshold.undefinedBecause}. Play more tasks, or raise gate.alpha`,
    );
  });
}

/** Away from the probe's direction by so many lengths, or without it; null for answers that change no state. */
function steeringOf(answer: GateAnswer, loaded: readonly LoadedReader[], gate: GateConfig): Steering | null {
  const [first] = loaded;
  if (first === undefined || (answer !== 'steer' && answer !== 'ablate')) return null;
  const direction = unitDirection(first.probe, 0);
  const zeros = new Float32Array(direction.length);
  if (answer === 'ablate') return { add: zeros, read: direction, write: direction.map((value) => -value) };
  const length = gate.strength * meanLength(first.probe, 0, first.folder);
  return { add: direction.map((value) => -length * value), read: zeros, write: zeros };
}

/** A gate that knows nothing: it alarms in turn t as often as the real one did in turn t. */
function randomGate(
  rates: ReturnType<typeof alarmRates>,
  answer: GateAnswer,
  message: string,
  rng: { next(): number },
  { changed }: { readonly changed?: Parameters<typeof decisionOf>[2] },
): Gate {
  return (_turn, index) => {
    const alarm = rng.next() < (rates.byTurn[index] ?? rates.overall);
    return Promise.resolve({ ...decisionOf(alarm ? answer : 'allow', message, changed), alarm });
  };
}
