/**
 * One landmark, one training population: every reader is fitted and chosen on the training sides, then the outer sides
 * are opened once, and then the figures are computed. Nothing after `open` may go back to before it.
 */
import type { EpisodeMeta, Figure, ScoreRow } from '../types.ts';
import {
  aurocFigures,
  breakdownFigures,
  aurocMinus,
  aurocWithinFold,
  measuredRows,
  type Opened,
  randomDirectionFigure,
} from './auroc-figures.ts';
import { randomDirections } from './baselines/random-direction.ts';
import { externalReader, groupBaseRate, majority, scalarBaselines, stepIndex, toolName } from './baselines/simple.ts';
import { textReaders } from './baselines/text.ts';
import { type CalibratedScores, calibrateFolds } from './calibrate.ts';
import { calibrationFigures } from './calibration-figures.ts';
import { count, type FigureBase } from './figures.ts';
import { inPopulation, type LandmarkRows } from './landmarks.ts';
import {
  headlinePosition,
  headlineReader,
  type LandmarkData,
  probeReaders,
  type Reader,
  selectPosition,
} from './readers.ts';
import { rocCurveOf } from './roc.ts';
import { bestOf } from './search.ts';
import { CENSORED } from './sealed-labels.ts';
import { openOuterSide, splitRows } from './sides.ts';
import { stackScores } from './stack.ts';
import type { Choice, Curve, ForecastInput, Population } from './types.ts';
import { worldFigures } from './worlds.ts';

export interface LandmarkResult {
  readonly data: LandmarkData;
  readonly figures: readonly Figure[];
  readonly scores: readonly ScoreRow[];
  readonly choices: readonly Choice[];
  readonly curves: readonly Curve[];
  /** Readers that can watch an episode, per position, with their calibrated scores: input of the monitor. */
  readonly monitors: readonly { readonly reader: Reader; readonly calibrated: CalibratedScores }[];
}

export interface LandmarkTask {
  readonly input: ForecastInput;
  readonly landmark: LandmarkRows;
  readonly trainOn: Population;
  /** Populations whose figures this training population gives. */
  readonly populations: readonly Population[];
  readonly worlds: boolean;
  readonly drawsFor: Opened['drawsFor'];
}

export function prepareLandmark({ input, landmark, trainOn }: LandmarkTask): LandmarkData {
  const every = (mask: 'atRisk' | 'exists'): Uint8Array =>
    Uint8Array.from(landmark.rows, (_, row) => (landmark.positions.every((p) => p[mask][row] === 1) ? 1 : 0));
  const trainable = Uint8Array.from(landmark.rows, ({ index }) =>
    inPopulation(input.episodes[index], trainOn) ? 1 : 0,
  );
  return {
    landmark,
    jointAtRisk: every('atRisk'),
    jointExists: every('exists'),
    sides: input.foldings.map((folding, f) =>
      splitRows({
        landmark,
        trainable,
        groups: input.groups,
        folding,
        innerFolds: input.innerFolds,
        release: f === 0,
      }),
    ),
  };
}

export async function evaluateLandmark(task: LandmarkTask): Promise<LandmarkResult> {
  const { input, landmark } = task;
  const data = prepareLandmark(task);
  const probes = await probeReaders(input, data);
  const simple = simpleReaders(input, data);
  const texts = await textReaders(input, data);
  const bestText = bestTextReaders(texts, data);
  const headline = probes.readers.filter(({ name }) => name === headlineReader(input.estimators));
  const directions: Reader[][] = [];
  for (const probe of headline) directions.push([...(await randomDirections(input, data, probe))]);
  const stacked = headline.flatMap((probe): { probe: Reader; text: Reader; both: Reader }[] => {
    const text = bestText.find(({ position }) => position === probe.position);
    if (!text) return [];
    const scores = [stackScores([text.scores[0], probe.scores[0]], data.sides[0])];
    return [{ probe, text, both: { ...probe, scores } }];
  });
  const calibrations = new Map(
    [...probes.readers, ...texts, ...bestText, ...simple].map((reader) => [
      reader,
      calibrateFolds(reader.scores[0], data.sides[0], input.calibration),
    ]),
  );
  // Every choice is made. From here on the labels of the outer sides are known.
  const opened = open(task, data);

  const figures: Figure[] = [];
  const curves: Curve[] = [];
  const others = [...probes.layer0, ...texts, ...bestText, ...simple];
  for (const population of task.populations) {
    const base = baseOf(task, population);
    const belongs = (row: number): boolean => inPopulation(opened.episodes[opened.rows[row].index], population);
    figures.push(...countFigures(task, opened, base, belongs));
    // x+ has one class by construction: it is there for false alarms and disruption (EVALUATION.md 4).
    if (population === 'x+') continue;
    for (const reader of [...probes.readers, ...others]) {
      figures.push(...aurocFigures(opened, reader, base, belongs, claims(reader)));
    }
    for (const reader of probes.map) {
      const value = aurocWithinFold(opened, reader, measuredRows(opened, reader, belongs));
      figures.push({
        ...base,
        position: reader.position,
        reader: reader.name,
        tap: reader.tap,
        metric: 'auroc_within_fold',
        value,
        at: { search: 'unselected' },
      });
    }
    for (const [k, probe] of headline.entries()) {
      for (const other of others) {
        if (other.position === probe.position) figures.push(aurocMinus(opened, probe, other, base, belongs));
      }
      const random = randomDirectionFigure(opened, directions[k], base, belongs);
      if (random) figures.push(random);
    }
    for (const reader of [...headline, ...bestText]) {
      if (reader.position === headlinePosition(landmark.positions)) {
        figures.push(...breakdownFigures(opened, reader, base, belongs));
      }
    }
    for (const { text, both } of stacked) {
      const gain = aurocMinus(opened, both, text, base, belongs);
      figures.push({ ...gain, metric: 'auroc_stacked_gain', at: { on_top_of: text.name } });
    }
    for (const [reader, calibration] of calibrations) {
      if (!claims(reader)) continue;
      const rows = measuredRows(opened, reader, belongs);
      const made = calibrationFigures(opened, reader, calibration.outer, rows, base);
      figures.push(...made.figures);
      if (made.curve) curves.push(made.curve);
      const roc = rocCurveOf(opened, reader, calibration.outer, rows, base);
      if (roc) curves.push(roc);
    }
  }
  if (task.trainOn !== 'all' || !task.worlds) {
    const { population: _, ...base } = baseOf(task, 'all');
    for (const reader of [...headline, ...bestText]) {
      figures.push(...worldFigures(opened, reader, calibrations.get(reader)!.outer, base, task.worlds));
    }
  }
  const scores = [...probes.readers, ...others].flatMap((reader) =>
    scoreRows(task, opened, reader, calibrations.get(reader)),
  );
  return {
    data,
    figures: task.worlds && task.trainOn === 'all' ? figures.map(markTrainedOnAll) : figures,
    curves,
    scores,
    choices: probes.readers.flatMap((reader) => choicesOf(task, landmark, reader)),
    monitors: [...calibrations].map(([reader, calibrated]) => ({ reader, calibrated })),
  };
}

/** x− figures of readers that learnt from all worlds must not be taken for those of readers that learnt from x−. */
function markTrainedOnAll(figure: Figure): Figure {
  return figure.population === 'all' ? figure : { ...figure, at: { ...figure.at, trained_on: 'all' } };
}

/** Readers that somebody might use; the others are only there to be beaten. */
function claims({ name }: Reader): boolean {
  return !name.startsWith('baseline:');
}

/** Every baseline at every position, and with several positions also the one whose position was selected. */
function simpleReaders(input: ForecastInput, data: LandmarkData): readonly Reader[] {
  const perPosition = data.landmark.positions.map((at) => [
    stepIndex(data, at),
    ...scalarBaselines(data, at, input.scalars),
    toolName(data, at, input.episodes),
    majority(data, at),
    groupBaseRate(data, at, input.episodes),
    ...input.external.map((external) => externalReader(data, at, external)),
  ]);
  const selected = perPosition[0].flatMap((_, k) =>
    selectPosition(
      perPosition.map((list) => list[k]),
      data,
    ),
  );
  return [...perPosition.flat(), ...selected];
}

/** `text:best`: scope (and, for `selected`, position) chosen inside the folds, like the probe's tap. */
function bestTextReaders(texts: readonly Reader[], data: LandmarkData): readonly Reader[] {
  if (texts.length === 0) return [];
  const best = (list: readonly Reader[], position: string, atRisk: Uint8Array, mask: Uint8Array | null): Reader => ({
    name: 'text:best',
    tap: null,
    position,
    atRisk,
    scores: data.sides.map((sides, f) =>
      bestOf(
        list.map(({ scores }) => scores[f]),
        sides,
        mask,
      ),
    ),
  });
  const perPosition = data.landmark.positions.flatMap(({ position, atRisk }) => {
    const list = texts.filter((reader) => reader.position === position);
    return list.length === 0 ? [] : [best(list, position, atRisk, null)];
  });
  return data.landmark.positions.length > 1
    ? [...perPosition, best(texts, headlinePosition(data.landmark.positions), data.jointAtRisk, data.jointAtRisk)]
    : perPosition;
}

function open({ input, drawsFor }: LandmarkTask, data: LandmarkData): Opened {
  const { rows } = data.landmark;
  const labels = new Int8Array(rows.length);
  for (const sides of data.sides) {
    for (const side of sides.outer) {
      const outcome = openOuterSide(side);
      side.rows.forEach((row, k) => (labels[row] = outcome[k]));
    }
  }
  return {
    rows,
    episodes: input.episodes,
    labels,
    folds: input.foldings.map(({ fold }) => Int32Array.from(rows, ({ index }) => fold[index])),
    foldCounts: input.foldings.map(({ folds }) => folds),
    groups: Int32Array.from(rows, ({ index }) => input.groups[index]),
    drawsFor,
  };
}

function baseOf({ input, landmark }: LandmarkTask, population: Population): FigureBase {
  return {
    stage: 'forecast',
    target: input.target.name,
    condition: input.condition,
    population,
    landmark: landmark.landmark,
    model: input.model,
    ...(input.split ? { split: input.split } : {}),
    ...(input.horizon === null ? {} : { horizon: input.horizon }),
  };
}

/** Who is at risk, and how those without the event ended. */
function countFigures(
  task: LandmarkTask,
  opened: Opened,
  base: FigureBase,
  belongs: (row: number) => boolean,
): readonly Figure[] {
  const shared = { reader: 'baseline:majority', tap: null } as const;
  const figures: Figure[] = [];
  for (const { position, atRisk } of task.landmark.positions) {
    const rows = opened.rows.flatMap((_, row) => (atRisk[row] === 1 && belongs(row) ? [row] : []));
    const labelled = rows.filter((row) => opened.labels[row] !== CENSORED);
    figures.push({
      ...base,
      ...shared,
      position,
      metric: 'rows_at_risk',
      value: {
        estimate: labelled.length,
        lower: null,
        upper: null,
        n: labelled.length,
        positives: labelled.filter((row) => opened.labels[row] === 1).length,
        clusters: new Set(labelled.map((row) => opened.groups[row])).size,
      },
    });
    for (const end of ['finished', 'escalated', 'limit', 'unknown'] as const) {
      const ended = rows.filter((row) => opened.labels[row] !== 1 && episodeOf(opened, row).end === end).length;
      figures.push({ ...base, ...shared, position, metric: 'without_event', value: count(ended), at: { end } });
    }
  }
  return figures;
}

function episodeOf(opened: Opened, row: number): EpisodeMeta {
  return opened.episodes[opened.rows[row].index];
}

function scoreRows(
  task: LandmarkTask,
  opened: Opened,
  reader: Reader,
  calibration: CalibratedScores | undefined,
): readonly ScoreRow[] {
  const [{ outer }] = reader.scores;
  const [folds] = opened.folds;
  return opened.rows.flatMap((row, i): ScoreRow[] => {
    const episode = opened.episodes[row.index];
    const population = task.trainOn === 'all' || episode.world === 'none' ? 'all' : episode.world;
    if (Number.isNaN(outer[i])) return [];
    const label = opened.labels[i];
    const probability = calibration?.outer[i];
    return [
      {
        episode: row.episode,
        model: task.input.model,
        condition: task.input.condition,
        population,
        target: task.input.target.name,
        landmark: task.landmark.landmark,
        position: reader.position,
        turn: row.turn,
        reader: reader.name,
        tap: reader.tap,
        fold: folds[i],
        group: opened.groups[i],
        label: reader.atRisk[i] === 1 && (label === 0 || label === 1) ? label : null,
        score: outer[i],
        calibrated: probability === undefined || Number.isNaN(probability) ? null : probability,
      },
    ];
  });
}

function choicesOf({ input, trainOn }: LandmarkTask, landmark: LandmarkRows, reader: Reader): readonly Choice[] {
  return reader.scores.flatMap(({ chosen }, f) =>
    chosen.flatMap((choice, fold): Choice[] =>
      'undefinedBecause' in choice || fold >= input.foldings[f].folds
        ? []
        : [
            {
              ...choice.candidate,
              landmark: landmark.landmark,
              readAt: reader.position,
              reader: reader.name,
              trainedOn: trainOn,
              foldingSeed: input.foldings[f].seed,
              fold,
              innerAuroc: choice.innerAuroc,
            },
          ],
    ),
  );
}
