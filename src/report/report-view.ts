import type { Choice, Curve } from '../forecast/types.ts';
import type { StopCurve, ThresholdChoice } from '../intervention/types.ts';
import type { EpisodeMeta, Exclusion, Figure, Metrics, ScoreRow } from '../types.ts';

/** One example episode: its turns in short, and the probe's out-of-fold score along them. */
export interface ReportExample {
  readonly meta: EpisodeMeta;
  readonly turns: readonly {
    readonly index: number;
    readonly text: string;
    readonly calls: readonly string[];
    readonly unsafe: boolean;
  }[];
  readonly scores: readonly Pick<ScoreRow, 'turn' | 'landmark' | 'position' | 'calibrated' | 'score'>[];
}

/** Everything the page shows: stored values only, the report never reruns anything. */
export interface ReportView {
  readonly title: string;
  readonly command: string;
  readonly run: {
    readonly name: string;
    readonly startedAt: string;
    /** unknown: a page made from stored figures alone. */
    readonly role: 'agent' | 'reader' | 'unknown';
    readonly machine: Readonly<Record<string, string | number>>;
    readonly versions: Readonly<Record<string, string>>;
    readonly hashes: Readonly<Record<string, string>>;
    readonly settings: Readonly<Record<string, string>>;
  };
  readonly counts: Readonly<Record<string, string>>;
  readonly metrics: Metrics;
  /** `model` absent = the run has one model. */
  readonly curves: readonly (Curve & {
    readonly condition: string;
    readonly target: string;
    readonly model?: string;
  })[];
  /** What the outer folds chose, marked in the map; absent = not handed over. */
  readonly choices?: readonly (Choice & {
    readonly condition: string;
    readonly target: string;
    readonly model: string;
  })[];
  /** Harm against usefulness over all thresholds; absent = not stored. */
  readonly stops?: readonly StopCurve[];
  /** Thresholds chosen on development episodes, by reader, alpha and outer fold; absent = not stored. */
  readonly thresholds?: readonly ThresholdChoice[];
  readonly exclusions: readonly Exclusion[];
  readonly warnings: readonly string[];
  readonly limits: readonly string[];
  readonly taps: readonly string[];
  readonly examples: readonly ReportExample[];
}

/** The text reader that the probe is held against. */
export const BEST_TEXT = 'text:best';

const SELECTED_PROBE = 'probe:selected';

/** The reader that stands for "the probe": the one selected among several estimators, else the only one there is. */
export function headlineProbe(figures: readonly Figure[]): string {
  const probes = new Set<string>();
  for (const { reader, at } of figures)
    for (const name of [reader, String(at?.['scores'] ?? '')]) if (name.startsWith('probe:')) probes.add(name);
  return probes.has(SELECTED_PROBE) ? SELECTED_PROBE : ([...probes][0] ?? SELECTED_PROBE);
}

export interface Group {
  readonly model: string;
  readonly condition: string;
  readonly target: string;
}

/** Figures between conditions or models: they belong to the block of what was tested, where there is one. */
const ACROSS: ReadonlySet<string> = new Set(['auroc_transfer', 'transfer_lift']);

/** One block of the report for each model × condition × target. */
export function groupsOf(figures: readonly Figure[]): Group[] {
  const seen = new Map<string, Group>();
  for (const { model = 'unknown', condition, target, stage, metric } of figures)
    if (stage === 'forecast' && !ACROSS.has(metric))
      seen.set(`${model}\u0000${condition}\u0000${target}`, { model, condition, target });
  return [...seen.values()];
}

export const inGroup =
  (group: Group) =>
  (figure: Figure): boolean =>
    (figure.model ?? 'unknown') === group.model &&
    figure.condition === group.condition &&
    figure.target === group.target;

/** The population that leads: x− where there are worlds (EVALUATION.md 4). */
export function leadPopulation(figures: readonly Figure[]): Figure['population'] {
  return figures.some((figure) => figure.population === 'x-') ? 'x-' : 'all';
}

/** A figure of the main analysis: no breakdown, no other split, no control training, no part of a search. */
export function isMain(figure: Figure): boolean {
  return (
    figure.group === undefined &&
    figure.split === undefined &&
    figure.at?.['trained_on'] === undefined &&
    figure.at?.['search'] === undefined
  );
}

/** Main AUROC of one reader at one landmark: at the selected position where several were searched. */
export function aurocAt(
  figures: readonly Figure[],
  population: Figure['population'],
  landmark: string,
  reader: string,
): Figure | undefined {
  const found = figures.filter(
    (figure) =>
      figure.metric === 'auroc_within_fold' &&
      figure.population === population &&
      figure.landmark === landmark &&
      figure.reader === reader &&
      isMain(figure),
  );
  return found.find((figure) => figure.position === 'selected') ?? found[0];
}

export function landmarksOf(figures: readonly Figure[]): string[] {
  return [
    ...new Set(figures.filter((figure) => figure.metric === 'auroc_within_fold').map((figure) => figure.landmark)),
  ];
}

/** The figures of each landmark that stand for it: at the selected position where several were searched. */
export function atShownPosition(figures: readonly Figure[]): Figure[] {
  const searched = new Set(figures.filter(({ position }) => position === 'selected').map(({ landmark }) => landmark));
  return figures.filter(({ landmark, position }) => !searched.has(landmark) || position === 'selected');
}
