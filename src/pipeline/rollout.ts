import type { SteeringConfig } from '../config/gate.ts';
import { loadRolloutConfig, type RolloutConfig } from '../config/rollout.ts';
import type { Scenario } from '../environment/scenario.ts';
import { writeMetrics } from '../store/figures.ts';
import type { Metrics } from '../types.ts';
import { doseCurve } from './dose-curve.ts';
import { gatedRollout } from './gated-rollout.ts';
import { openAgents } from './rollout-agents.ts';
import { playSet, type RolloutContext } from './rollout-play.ts';
import { scenariosOf } from './rollout-scenarios.ts';
import { summarise, type RolloutSummary } from './rollout-summary.ts';

export interface RolloutOptions {
  /** Model processes that play episodes at the same time (default 1). What is written does not depend on it. */
  readonly workers?: number;
}

/**
 * Plays every scenario with the model of the configuration and writes OUT/episodes.parquet, scenarios.parquet and
 * report_labels.parquet in CAPE's columns. With a gate, each answer and each random gate gets a folder of its own below
 * OUT, and OUT/metrics.json compares them; with `steering`, each direction and strength does. Stopped at any moment, the same command goes on after the last whole episode,
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
  const workers = Math.min(options.workers ?? 1, scenarios.length);
  if (config.gate !== null) return gatedRollout(config, config.gate, scenarios, workers, context);
  if (config.steering !== null) return steeredRollout(config, config.steering, scenarios, workers, context);
  const opened = await openAgents(config, workers, { taps: [], steer: null }, context.signal);
  try {
    const play = { label: 'rollout', folder: config.output, scenarios, identity: null };
    const { items, resumed } = await playSet(play, opened, config, context);
    return summarise(config.output, items, resumed);
  } finally {
    await opened.close();
  }
}

/** The dose curve of a direction (dose-curve.ts); the summary is that of the unsteered episodes. */
async function steeredRollout(
  config: RolloutConfig,
  steering: SteeringConfig,
  scenarios: readonly Scenario[],
  workers: number,
  context: RolloutContext,
): Promise<RolloutSummary> {
  const { figures, base } = await doseCurve(config, steering, scenarios, workers, context);
  const metrics: Metrics = { schemaVersion: 1, run: config.name, figures };
  await writeMetrics(config.output, metrics);
  return { ...summarise(config.output, base.items, base.resumed), metrics };
}
