import { join } from 'node:path';
import type { SteeringConfig } from '../config/gate.ts';
import type { RolloutConfig } from '../config/rollout.ts';
import type { Scenario } from '../environment/scenario.ts';
import { UserError } from '../errors.ts';
import { hashValue } from '../lib/content-hash.ts';
import { seededRng } from '../lib/rng.ts';
import { liveFigures, type GatedPlay, type LiveFigure } from '../intervention/live-figures.ts';
import type { Steering } from '../model/generation-core.ts';
import type { Generator } from '../model/open-generator.ts';
import { loadProbe } from '../probe/artefact.ts';
import type { Figure } from '../types.ts';
import { conceptDirections, promptStates, randomDirection, type NamedDirection } from './concept-directions.ts';
import { liveEpisode } from './live-episodes.ts';
import { openAgents } from './rollout-agents.ts';
import { playSet, type PlayedSet, type RolloutContext } from './rollout-play.ts';
import { developmentScenarios } from './rollout-scenarios.ts';
import { unitDirection } from './steering-direction.ts';

/** Figures of a play that say something where no gate alarms. */
const METRICS = /^(violation|success|prevented|disrupted|caused)_|^extra_turns$/;
/** Episodes whose logged tokens give the perplexity. */
const PERPLEXITY_EPISODES = 8;

/**
 * Plays the scenarios with the probe's direction added at every generated token, for each strength, and with random and
 * unrelated concept directions of the same length. Every play has the same random numbers. OUT/steering/ holds the
 * episodes; returned are rates per strength, with the paired difference to the random directions, and the perplexity that
 * the steered model gives to what the unsteered one wrote.
 */
export async function doseCurve(
  config: RolloutConfig,
  steering: SteeringConfig,
  scenarios: readonly Scenario[],
  workers: number,
  context: RolloutContext,
): Promise<{ readonly figures: readonly Figure[]; readonly base: PlayedSet }> {
  const { probe } = await loadProbe(steering.probe, null);
  const tap = steering.tap ?? probe.taps[0];
  const index = probe.taps.indexOf(tap);
  if (index < 0)
    throw new UserError(
      `steering.tap: expected a tap that the probe reads (${probe.taps.join(', ')}), got ${tap}. Name one of them`,
    );
  const opened = await openAgents(config, workers, { taps: [tap], steer: tap }, context.signal);
  try {
    await loadProbe(steering.probe, opened.info.hashes);
    const sets: PlayedSet[] = [];
    const play = async (name: string, list: readonly Scenario[], steer: Steering | null): Promise<PlayedSet> => {
      const folder = join(config.output, 'steering', name.replaceAll(/[^A-Za-z0-9._-]/g, '_'));
      const identity = steer === null ? null : { tap, add: hashValue([...steer.add]) };
      const set = await playSet(
        { label: name, folder, scenarios: list, identity, keep: true, ...(steer === null ? {} : { steer }) },
        opened,
        config,
        context,
      );
      sets.push(set);
      return set;
    };
    const development = developmentScenarios(config, steering.development.generate);
    const unsteered = await play('development', development, null);
    const base = await play('unsteered', scenarios, null);
    const [{ generator }] = opened.lanes;
    const states = await promptStates(generator, unsteered.items, development, context.signal);
    const { width } = opened.info;
    const directions = {
      probe: [{ name: 'probe', direction: unitDirection(probe, index) }],
      random: Array.from({ length: steering.random }, (_, k) => ({
        name: `random-${k + 1}`,
        direction: randomDirection(width, seededRng('random-direction', config.seed, k)),
      })),
      concept: conceptDirections(states, steering.concepts),
    };
    const before = base.items.map((item, row) => liveEpisode(item, scenarios[row]));
    const figures: Figure[] = [];
    for (const strength of steering.strengths) {
      const steerOf = ({ direction }: NamedDirection): Steering => {
        const zeros = new Float32Array(width);
        const length = strength * states.length;
        return { add: direction.map((value) => length * value), read: zeros, write: zeros };
      };
      const playAll = async (list: readonly NamedDirection[]) => {
        const out = [];
        for (const one of list) {
          const set = await play(`${one.name}_${strength}`, scenarios, steerOf(one));
          out.push(set.items.map((item, row) => liveEpisode(item, scenarios[row])));
        }
        return out;
      };
      const random = await playAll(directions.random);
      const plays: GatedPlay[] = [];
      for (const one of [...directions.probe, ...directions.concept]) {
        const [episodes] = await playAll([one]);
        plays.push({ answer: one.name, episodes, random: one.name === 'probe' ? random : [] });
      }
      const own = liveFigures(before, plays, {
        draws: steering.bootstrap,
        rng: (name) => seededRng('steering', config.seed, name),
      });
      const at = { strength, length: strength * states.length };
      const common = {
        stage: 'rollout',
        target: probe.target,
        landmark: 'any',
        position: 'generation',
        tap,
        at,
      } as const;
      figures.push(
        ...own
          .filter((figure) => METRICS.test(figure.metric))
          .map((figure): Figure => ({ ...common, ...figure, reader: readerOf(figure) })),
      );
      // How far the single directions spread: a claim needs the probe's outside of it.
      for (const [k, episodes] of random.entries()) {
        const rates = liveFigures(before, [{ answer: `random-${k + 1}`, episodes, random: [] }], {
          draws: steering.bootstrap,
          rng: (name) => seededRng('steering', config.seed, name),
        });
        figures.push(
          ...rates
            .filter(({ metric, reader }) => reader.startsWith('gate:') && /^(violation|success)_rate$/.test(metric))
            .map((figure): Figure => ({ ...common, ...figure, reader: `steer:random-${k + 1}` })),
        );
      }
      for (const one of [...directions.probe, ...directions.random, ...directions.concept]) {
        const value = await perplexity(generator, base, steerOf(one), context.signal);
        const basis = { lower: null, upper: null, n: value.tokens, positives: null, clusters: null };
        figures.push({
          ...common,
          condition: 'all',
          population: 'all',
          reader: one.name.includes(':') ? `steer:concept:${one.name}` : `steer:${one.name}`,
          metric: 'perplexity',
          value: { estimate: value.perplexity, ...basis },
        });
      }
    }
    for (const set of sets) await set.forget();
    return { figures, base };
  } finally {
    await opened.close();
  }
}

/** `gate:probe` → `steer:probe`, `control:random_probe` → `steer:random` (the mean over the directions). */
function readerOf({ reader }: LiveFigure): string {
  if (reader === 'control:no_gate') return 'control:unsteered';
  if (reader === 'control:random_probe') return 'steer:random';
  const name = reader.slice('gate:'.length);
  return name.includes(':') ? `steer:concept:${name}` : `steer:${name}`;
}

/** exp of the mean negative log-probability of what the unsteered model wrote in its first episodes. */
async function perplexity(
  generator: Generator,
  base: PlayedSet,
  steer: Steering,
  signal: AbortSignal,
): Promise<{ readonly perplexity: number; readonly tokens: number }> {
  let sum = 0;
  let tokens = 0;
  for (const item of base.items.slice(0, PERPLEXITY_EPISODES)) {
    const events = JSON.parse(String(item.episode['events_json'])) as {
      prompt_ids: number[];
      generated_ids: number[];
    }[];
    for (const event of events) {
      const forced = Int32Array.from(event.generated_ids);
      const { logprobs } = await generator.generate({
        ids: Int32Array.from(event.prompt_ids),
        maxTokens: forced.length,
        temperature: 0,
        uniform: () => 0,
        stopIds: [],
        forced,
        logprobs: true,
        steer,
        slot: 'perplexity',
        signal,
      });
      for (const value of logprobs) sum -= value;
      tokens += logprobs.length;
    }
  }
  return { perplexity: Math.exp(sum / tokens), tokens };
}
