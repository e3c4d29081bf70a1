import type { Exclusion } from '../types.ts';
import { formatVerification } from './agreement.ts';
import type { RunResult } from './run.ts';

const big = (value: number): string => value.toLocaleString('en');

function byReason(exclusions: readonly Exclusion[]): string[] {
  const counts = new Map<string, number>();
  for (const { stage, reason } of exclusions)
    counts.set(`${stage}: ${reason}`, (counts.get(`${stage}: ${reason}`) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([reason, count]) => `  ${reason}: ${big(count)}`);
}

/**
 * Multiplications per second and thread of a forward pass at contexts of some thousand tokens: SmolLM2-135M (int4, 12 · 576² · 30
 * multiplications a token) replayed 87 tokens per CPU second. Only to say minutes or days before anything runs.
 */
const MULTIPLICATIONS_PER_SECOND = 1e10;

function estimatedMinutes(tokens: number, { width, blocks, threads }: PlanCost): number {
  return (tokens * 12 * width * width * blocks) / (MULTIPLICATIONS_PER_SECOND * threads) / 60;
}

export interface PlanCost {
  readonly width: number;
  readonly blocks: number;
  readonly threads: number;
  readonly chunk: number;
  /** Where tool schemas come from. */
  readonly tools: 'column' | 'file' | 'none';
}

/** What a run would do, for people. */
export function formatPlan({ plan, cost }: Pick<RunResult, 'plan' | 'cost'>): string[] {
  const rows = plan.shards.reduce((sum, shard) => sum + shard.rows, 0);
  const lines = [
    `episodes ${big(plan.episodes)}, turns ${big(plan.turns)}, cut in the middle ${big(plan.truncatedTurns)}`,
    `tokens naive ${big(plan.naiveTokens)}, distinct ${big(plan.distinctTokens)} (${(plan.naiveTokens / Math.max(1, plan.distinctTokens)).toFixed(1)} : 1), shared by all ${big(plan.rootTokens)}`,
    `generated ids: ${Object.entries(plan.idsFrom)
      .map(([from, count]) => `${from} ${big(count)}`)
      .join(', ')}`,
    ...formatVerification(plan.verification),
    'positions:',
    ...Object.entries(plan.positions).map(
      ([name, count]) =>
        `  ${name}: ${big(count)}${plan.straddling[name] === undefined ? '' : ` (${big(plan.straddling[name])} straddle their edge)`}`,
    ),
    `taps: ${plan.taps.join(', ')}`,
  ];
  const bytes = (taps: number): string => `${((rows * taps * cost.width * 4) / 2 ** 20).toFixed(1)} MiB`;
  lines.push(
    `tool schemas: ${cost.tools}`,
    `bytes to be written: ${bytes(plan.taps.length)} (${big(rows)} rows × ${plan.taps.length} taps × ${cost.width} × 4); one layer ${bytes(1)}, every layer ${bytes(cost.blocks + 1)}`,
    `forward passes about ${big(Math.ceil(plan.distinctTokens / cost.chunk) + plan.turns)}, about ${Math.max(1, Math.round(estimatedMinutes(plan.distinctTokens, cost)))} min on ${cost.threads} threads (an estimate from width and depth)`,
  );
  if (plan.exclusions.length > 0) lines.push('excluded:', ...byReason(plan.exclusions));
  return lines;
}
