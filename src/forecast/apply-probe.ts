/**
 * A trained probe on episodes it has never seen: scored as it is, nothing fitted, nothing chosen. Its AUROC compares all
 * rows, since they share one reader; its thresholds are those it was released with.
 */
import { MismatchError } from '../errors.ts';
import { joinTaps } from '../lib/joined-taps.ts';
import { calibrate } from '../math/calibration.ts';
import type { EpisodeMeta, Exclusion, Figure, Probe, ScoreRow, Undefined } from '../types.ts';
import { aurocFigures, drawCache, type Opened } from './auroc-figures.ts';
import { calibrationFigures } from './calibration-figures.ts';
import type { FigureBase } from './figures.ts';
import { hasWorlds, inPopulation, landmarkName, landmarkRows } from './landmarks.ts';
import { keysOf, type Reader } from './readers.ts';
import { rocCurveOf } from './roc.ts';
import { openLabels } from './sealed-labels.ts';
import { scorer } from './search.ts';
import type { Curve, ForecastInput, Population, Target } from './types.ts';

export interface ApplyInput {
  readonly probe: Probe;
  readonly episodes: readonly EpisodeMeta[];
  /** Scenario groups, for the intervals. */
  readonly groups: Int32Array;
  readonly model: string;
  readonly condition: string;
  readonly target: Target;
  readonly read: ForecastInput['read'];
  readonly available?: ForecastInput['available'];
  readonly bootstrapDraws: number;
  readonly seed: number;
}

export interface ApplyResult {
  readonly figures: readonly Figure[];
  readonly scores: readonly ScoreRow[];
  readonly exclusions: readonly Exclusion[];
  readonly curves: readonly Curve[];
}

/** Figures about outer folds; one reader that is fitted to none of these rows has none. */
const OF_FOLDS: ReadonlySet<string> = new Set(['auroc_split_seed_spread', 'one_class_folds', 'empty_folds']);

/** @throws MismatchError when the states are not as wide as the probe, taps taken together */
export async function applyProbe(input: ApplyInput): Promise<ApplyResult> {
  const { probe, episodes, groups } = input;
  const { anchor, offset, position } = probe.landmark;
  const tap = joinTaps(probe.taps);
  const landmark = landmarkRows({ ...input, horizon: probe.horizon, spec: { anchor, offset, positions: [position] } });
  const [{ exists, atRisk }] = landmark.positions;
  const { keys, matrixRow } = keysOf(landmark, position, exists);
  const outer = new Float64Array(landmark.rows.length).fill(Number.NaN);
  if (keys.length > 0) {
    const x = await input.read(tap, keys);
    if (x.columns !== probe.width * probe.taps.length) {
      throw new MismatchError(
        `probe: expected states of width ${probe.width * probe.taps.length}, got ${x.columns} at ${tap}. Use the model it was trained on`,
      );
    }
    const score = scorer(probe, x);
    matrixRow.forEach((at, row) => {
      if (at >= 0) outer[row] = score(at);
    });
  }
  const reader: Reader = {
    name: `probe:${probe.estimator}`,
    tap,
    position,
    atRisk,
    scores: [{ outer, inner: [], chosen: [] }],
  };
  const opened: Opened = {
    rows: landmark.rows,
    episodes,
    labels: openLabels(landmark.labels),
    folds: [new Int32Array(landmark.rows.length)],
    foldCounts: [1],
    groups: Int32Array.from(landmark.rows, ({ index }) => groups[index]),
    drawsFor: drawCache(input.bootstrapDraws, input.seed),
  };
  const probabilities = outer.map((margin) => (Number.isNaN(margin) ? margin : calibrate(probe.calibration, margin)));
  const figures: Figure[] = [];
  const curves: Curve[] = [];
  const populations: readonly Population[] = hasWorlds(episodes) ? ['x-', 'nuisance'] : ['all'];
  for (const population of populations) {
    const belongs = (row: number): boolean => inPopulation(episodes[landmark.rows[row].index], population);
    const rows = Array.from(opened.labels).flatMap((label, row) =>
      (label === 0 || label === 1) && atRisk[row] === 1 && belongs(row) ? [row] : [],
    );
    const base: FigureBase = {
      stage: 'forecast',
      target: input.target.name,
      condition: input.condition,
      population,
      landmark: landmarkName(probe.landmark),
      model: input.model,
      split: 'released_probe',
      ...(probe.horizon === null ? {} : { horizon: probe.horizon }),
    };
    // One reader scored every row: there are no folds to keep apart and no seeds to spread over.
    figures.push(...aurocFigures(opened, reader, base, belongs, true).filter(({ metric }) => !OF_FOLDS.has(metric)));
    const made = calibrationFigures(opened, reader, probabilities, rows, base);
    const roc = rocCurveOf(opened, reader, probabilities, rows, base);
    figures.push(...made.figures);
    curves.push(...(made.curve ? [made.curve] : []), ...(roc ? [roc] : []));
  }
  const scores = landmark.rows.flatMap((row, i): readonly ScoreRow[] => {
    if (Number.isNaN(outer[i])) return [];
    const { world } = episodes[row.index];
    const label = opened.labels[i];
    return [
      {
        episode: row.episode,
        model: input.model,
        condition: input.condition,
        population: world === 'none' ? 'all' : world,
        target: input.target.name,
        landmark: landmark.landmark,
        position,
        turn: row.turn,
        reader: reader.name,
        tap: reader.tap,
        fold: 0,
        group: opened.groups[i],
        label: atRisk[i] === 1 && (label === 0 || label === 1) ? label : null,
        score: outer[i],
        calibrated: probabilities[i],
      },
    ];
  });
  return { figures, scores, exclusions: landmark.exclusions, curves };
}

/** Threshold of a released probe at one alpha. */
export function thresholdOf(probe: Probe, alpha: number): number | Undefined {
  return (
    probe.thresholds.find((t) => t.alpha === alpha)?.threshold ?? {
      undefinedBecause: `the probe was released without a threshold at alpha ${alpha}`,
    }
  );
}
