/**
 * Every metric name of the forecast stage, and how a value is made. Figures are flat rows (EVALUATION.md 17); a number
 * that cannot be computed is `{undefinedBecause}`.
 *
 * | metric | meaning | n counts |
 * |---|---|---|
 * | `auroc_within_fold` | concordant share over pairs of the same outer fold; cluster-bootstrap interval | rows |
 * | `auroc_pooled` | the same over all pairs; compares scores of different readers, shown beside the other only | rows |
 * | `auroc_within_template` | over pairs of the same fold and template: nothing to gain from template base rates | rows |
 * | `auroc_within_fold_censored_negative` | sensitivity: episodes stopped by a limit count as negatives | rows |
 * | `auroc_within_fold_known_negative` | sensitivity with a horizon h: of those, only episodes that went on past t + h | rows |
 * | `auroc_split_seed_spread` | mean over split seeds; lower and upper are the smallest and largest | split seeds |
 * | `auroc_minus` | headline probe minus the reader `at.minus`, same rows, paired interval | rows |
 * | `auroc_stacked_gain` | probe stacked on the best text reader, minus that text reader alone, paired | rows |
 * | `one_class_folds` | outer folds that hold one class only, of `at.folds` | folds |
 * | `empty_folds` | outer folds without a measured row, of the `at.folds` that were dealt | folds |
 * | `detectable_difference` | smallest distance from ½ that this n shows with 80 % power at the 5 % level (2.8 sd) | rows |
 * | `brier`, `log_loss`, `ece` | of calibrated probabilities; ece over 10 bins of equal count | rows |
 * | `reliability` | share of positives in bin `at.bin`, at mean prediction `at.predicted` | rows of the bin |
 * | `base_rate` | share of positives | rows |
 * | `rows_at_risk` | labelled rows at risk, with positives and groups | rows |
 * | `without_event` | rows at risk without the event, by how the episode ended (`at.end`) | rows |
 * | `excluded` | episodes left out of the landmark, by `at.reason` | episodes |
 * | `false_alarm_rate` | achieved share of negative episodes with an alarm, at `alpha`; n is n_neg | episodes |
 * | `conformal_coverage` | share of negative episodes without an alarm at the conformal threshold; `at.stated` is what it promises | episodes |
 * | `hit_rate`, `late_rate`, `missed_rate` | of unsafe episodes, at `alpha` | episodes |
 * | `lead_at_least_1` | share of unsafe episodes alarmed one turn or more before u (late and missed count as no) | episodes |
 * | `lead_q1`, `lead_median`, `lead_q3` | turns from the first alarm in time to u, over hits | hits |
 * | `paired_world` | P(score(x−) > score(x+)) of a pair, ties ½; `at.x_minus` says unsafe or safe | pairs |
 * | `paired_trial` | the same for an unsafe and a safe trial of one scenario | pairs |
 * | `nuisance_shift`, `world_shift`, `nuisance_to_world` | mean |score(x−) − score(nuisance)|, … (x+)|, their ratio | pairs |
 * | `cell_auroc` | same or different situation × same or different behaviour (`at.situation`, `at.behaviour`) | rows or pairs |
 * | `p_value` | max-statistic permutation p over everything searched (EVALUATION.md 13) | permutations |
 * | `p_value_bonferroni` | times the `at.landmarks` that are claimed, at most 1 | permutations |
 * | `permutable_rows` | rows whose outcome can be exchanged at all; the null speaks of these | rows at risk |
 * | `null_max_auroc` | mean, 2.5 and 97.5 % points of the largest AUROC under permuted outcomes | permutations |
 * | `selectivity` | largest AUROC of the search minus its mean under permuted outcomes | permutations |
 * | `auroc_transfer`, `transfer_lift` | trained on `at.train`, tested on `at.test` (values of `at.by`); lift over ½ | rows |
 * | `leaks` | leaks of kind `at.leak`; what proves the run wrong stops it, a telling word is named in `at.detail` | rows or episodes |
 * | `looser_duplicates` | tasks equal but for names and numbers that lie in different folds; reported only | episodes |
 * | `states_identical` | share of states of matched worlds before their first differing token that are bit for bit equal | states |
 * | `states_difference` | the largest difference between two such states, ‖x − y‖ / ‖x‖; more than rounding stops the run | states |
 * | `split_auroc` | adversarial validation: telling the rows of a fold from the rest; ½ is good | rows |
 * | `flag_precision`, `flag_recall` | of the `at.budget` share of episodes with the highest scores (outcome targets) | episodes |
 *
 * `at.search = "unselected"` marks the layer × position map: one figure per tap, nothing chosen. `at.trained_on = "all"`
 * marks x− figures of readers that learnt from all worlds: they show how much of a pooled figure only reads the world.
 * `group = "family:…"` and `"template:…"` restrict the rows, not the training.
 */
import { bootstrapRatio, type ClusterDraws, intervalValue } from '../math/bootstrap.ts';
import { distinctCodes } from '../math/order.ts';
import type { Estimate, Figure, Undefined, Value } from '../types.ts';

export function isUndefined(value: object): value is Undefined {
  return 'undefinedBecause' in value;
}

/** A count or setting: no interval is meaningful. */
export function count(estimate: number, n: number = estimate): Estimate {
  return { estimate, lower: null, upper: null, n, positives: null, clusters: null };
}

/** Coordinates that all figures of one landmark and population share. */
export type FigureBase = Omit<Figure, 'metric' | 'value' | 'reader' | 'tap' | 'position'>;

/** The statistic is Σ numerator / Σ denominator over rows. */
export interface Ratio {
  readonly numerator: ArrayLike<number>;
  /** Absent = 1 per row. */
  readonly denominator?: ArrayLike<number>;
  /** Cluster of each row, 0 … draws.clusters − 1. */
  readonly clusters: ArrayLike<number>;
}

/** Share or mean with a cluster-bootstrap interval. `what` completes "no …" when the denominator is empty. */
export function ratioValue({ numerator, denominator, clusters }: Ratio, draws: ClusterDraws, what: string): Value {
  let top = 0;
  let bottom = 0;
  const counted: number[] = [];
  for (let row = 0; row < numerator.length; row += 1) {
    const weight = denominator ? denominator[row] : 1;
    top += numerator[row];
    bottom += weight;
    if (weight > 0) counted.push(row);
  }
  if (bottom === 0) return { undefinedBecause: `no ${what}` };
  const values = bootstrapRatio(numerator, denominator ?? null, clusters, draws);
  const groups = distinctCodes(counted.map((row) => clusters[row])).count;
  return intervalValue(top / bottom, values, { n: counted.length, positives: null, clusters: groups });
}
