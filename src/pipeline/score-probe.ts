import { join } from 'node:path';
import type { Flags } from '../config/load.ts';
import { UserError } from '../errors.ts';
import { applyProbe } from '../forecast/apply-probe.ts';
import { targetNamed } from '../forecast/targets.ts';
import { checkProbeReads, loadProbe } from '../probe/artefact.ts';
import { openFeatures } from '../store/features.ts';
import { joinedFeatures } from '../store/joined-features.ts';
import { writeMetrics } from '../store/figures.ts';
import type { Figure, Metrics, ScoreRow } from '../types.ts';
import type { PipelineContext } from './context.ts';
import { extractStage } from './extract-stage.ts';
import { noteTestRead } from './lock-stage.ts';
import { openPipeline, runName } from './open-run.ts';
import { planStage } from './plan-stage.ts';
import { writeScoreRows } from './write-results.ts';

export interface ScoreProbeOptions {
  readonly probe: string;
  /** Take a probe of another model: its numbers then mean nothing unless you know why. */
  readonly anyModel: boolean;
  readonly flags: Flags;
}

/**
 * Scores the episodes of a configuration with a probe made elsewhere: no training, thresholds as the probe brings them.
 * @throws MismatchError (78) when the probe belongs to another model; UserError (2) when its tap or position is not captured
 */
export async function scoreProbe(
  configPath: string,
  options: ScoreProbeOptions,
  context: PipelineContext,
): Promise<{ readonly folder: string; readonly metrics: Metrics }> {
  const run = await openPipeline(configPath, options.flags, context);
  try {
    const { probe } = await loadProbe(options.probe, options.anyModel ? null : run.model.hashes);
    checkProbeReads(options.probe, probe, { width: run.model.width, taps: run.taps });
    if (!run.config.capture.positions.includes(probe.landmark.position)) {
      throw new UserError(
        `${configPath}: capture.positions: expected ${probe.landmark.position}, the position of the probe, got ${run.config.capture.positions.join(', ')}. Add it`,
      );
    }
    const plan = await planStage(run, context);
    const extract = await extractStage(run, plan, context);
    const features = joinedFeatures(await openFeatures(run.folder.path, extract.shards));
    await noteTestRead(run, context);
    const figures: Figure[] = [];
    const scores: ScoreRow[] = [];
    for (const model of [...new Set(run.metas.map((meta) => meta.model))].sort()) {
      const indices = run.metas.flatMap((meta, index) => (meta.model === model ? [index] : []));
      const result = await applyProbe({
        probe,
        episodes: indices.map((index) => run.metas[index]),
        groups: Int32Array.from(indices, (index) => run.groups[index]),
        model,
        condition: 'all',
        target: targetNamed(probe.target),
        read: (tap, keys) => features.read(tap, keys),
        available: (key) => features.has(key),
        bootstrapDraws: run.config.forecast.bootstrap,
        seed: run.config.seed,
      });
      figures.push(...result.figures);
      scores.push(...result.scores);
    }
    const folder = join(run.folder.path, 'applied');
    const metrics: Metrics = { schemaVersion: 1, run: runName(run), figures };
    await writeScoreRows(folder, scores);
    await writeMetrics(folder, metrics);
    await run.folder.setStatus('done');
    return { folder, metrics };
  } finally {
    await run.folder.close();
  }
}
