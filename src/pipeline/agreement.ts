import { MismatchError } from '../errors.ts';
import type { Agreement, Disagreement, ModelAgreement, SettingTrial, Verification } from '../types.ts';

/** What verification found, for people; and the refusal of a run whose ids are not those that the model saw. */

const big = (value: number): string => value.toLocaleString('en');
const percent = (rate: number): string => `${(Math.floor(rate * 1000) / 10).toFixed(1)} %`;
const share = ({ checked, agreed }: Agreement): string => `${big(agreed)} of ${big(checked)}`;

/** Turn indices listed one by one; the rest is added up. */
const TURNS = 8;
/** Disagreements shown with both texts. */
const SHOWN = 3;

function turnLine(turns: ModelAgreement['byTurn']): string {
  const parts = turns.slice(0, TURNS).map((entry) => `${entry.turn}: ${share(entry)}`);
  const rest = turns.slice(TURNS);
  if (rest.length > 0) {
    const sum = { checked: 0, agreed: 0 };
    for (const { checked, agreed } of rest) {
      sum.checked += checked;
      sum.agreed += agreed;
    }
    parts.push(`${TURNS} and later: ${share(sum)}`);
  }
  return parts.join('; ');
}

const quote = (text: string): string => JSON.stringify(text.length > 160 ? `${text.slice(0, 160)}…` : text);

export function describeDisagreement(item: Disagreement): string {
  return `${item.file}: row ${item.row}: turn ${item.turn}: ${item.what}: logged ${item.logged}, ours ${item.ours}`;
}

/** Lines for `plan`: per model, per kind and per turn index, and the first disagreements with both texts. */
export function formatVerification(verification: Verification): string[] {
  const lines: string[] = [];
  if (verification.checkedTurns === 0)
    lines.push('agreement with the log: it has neither token ids, counts nor recorded positions to check against');
  else
    lines.push(
      `agreement with the log: ${share({ checked: verification.checkedTurns, agreed: verification.agreedTurns })} turns`,
    );
  for (const { model, kinds, byTurn, rate, worst, countsStopToken, disagreements } of verification.models) {
    if (typeof rate !== 'number') continue;
    lines.push(`  ${model}: ${percent(rate)}${rate < 1 ? ` (${worst})` : ''}`);
    for (const [kind, agreement] of Object.entries(kinds)) lines.push(`    ${kind}: ${share(agreement)}`);
    if (countsStopToken === false && rate === 1)
      lines.push('    the log’s counts of generated tokens leave out the token that ended the turn');
    lines.push(`    turns ${turnLine(byTurn)}`);
    for (const item of disagreements.slice(0, SHOWN)) {
      lines.push(`    ${describeDisagreement(item)}`);
      lines.push(`      logged ${item.loggedText === null ? '(no text in the log)' : quote(item.loggedText)}`);
      lines.push(`      ours   ${quote(item.oursText)}`);
    }
  }
  const { reconstruction, notCompared } = verification;
  if (reconstruction.checked > 0)
    lines.push(`  logged generations that our writing of the turn would have given: ${share(reconstruction)}`);
  for (const [name, count] of Object.entries(notCompared))
    lines.push(`  recorded ${name}: ${big(count)}, not compared (none of our positions has that name)`);
  return lines;
}

export interface Trials {
  readonly configured: SettingTrial;
  /** The best first. */
  readonly better: readonly SettingTrial[];
}

function advice({ configured, better }: Trials): string {
  const [best] = better;
  if (best === undefined)
    return 'No other stack, historyReasoning, tools, template variable, date or origin of positions that was tried agrees better: check the template and the tokenizer, or lower it';
  return `On a sample ${best.setting} agrees in ${best.agreed} of ${best.checked} turns (as configured: ${configured.agreed}). Set it, or lower replay.minAgreement`;
}

/**
 * The model that agrees least of those below the limit; null = all agree well enough.
 * Ids that are not those the model saw make every position wrong, silently.
 */
export function belowLimit({ models }: Verification, minimum: number): ModelAgreement | null {
  const rated = models.filter((entry) => typeof entry.rate === 'number' && entry.rate < minimum);
  return [...rated].sort((a, b) => Number(a.rate) - Number(b.rate))[0] ?? null;
}

/** @throws nothing; the error (78) to throw for a model below the limit */
export function disagreementError(entry: ModelAgreement, minimum: number, trials: Trials | null): MismatchError {
  const { model, rate, worst, kinds, disagreements } = entry;
  const first = disagreements.find((item) => item.what === worst);
  return new MismatchError(
    [
      `replay.minAgreement: expected at least ${percent(minimum)} of what the log of ${model} says about its tokens to agree with ours, got ${percent(Number(rate))} of ${worst} (${share(kinds[worst!])}).`,
      ...(first === undefined ? [] : [`First: ${describeDisagreement(first)}.`]),
      ...(trials === null ? [] : [advice(trials)]),
    ].join(' '),
  );
}
