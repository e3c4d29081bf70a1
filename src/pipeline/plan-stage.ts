import { MismatchError } from '../errors.ts';
import { buildSequences } from '../plan/sequences.ts';
import { commonPrefix } from '../lib/token-order.ts';
import { countTokens } from '../plan/trie.ts';
import { type PlanFile, type PlanShardInfo, readPlan, writePlan, writePlanShard } from '../store/plan-shards.ts';
import type { Exclusion, SequencePlan } from '../types.ts';
import type { PipelineContext } from './context.ts';
import type { OpenedRun } from './open-run.ts';

/**
 * Distinct tokens of one shard: the unit of resuming, so a few minutes of work at most. Episodes are not split, and
 * twins (equal pair) stay together so that their common prefix is computed once.
 */
const SHARD_TOKENS = 8_000;

/** Sequences of every episode, in shards on disk. What is there already for this key is taken as it is. */
export async function planStage(run: OpenedRun, context: PipelineContext): Promise<PlanFile> {
  const { keyHash } = run.folder;
  const before = await readPlan(run.folder.path, keyHash, context.clock.date());
  if (before) return before;
  const { progress } = context;
  progress.start('plan', run.metas.length, 'episodes');
  const shards: PlanShardInfo[] = [];
  const exclusions: Exclusion[] = [];
  const tally = { episodes: 0, turns: 0, naive: 0, truncated: 0, checked: 0, agreed: 0 };
  const idsFrom: Record<string, number> = {};
  const positions: Record<string, number> = {};
  const straddling: Record<string, number> = {};
  let root: Int32Array | null = null;
  let rootLength = Number.POSITIVE_INFINITY;
  let pending: SequencePlan[] = [];
  let pendingTokens = 0;
  let lastPair: string | null = null;

  const flush = async (): Promise<void> => {
    if (pending.length === 0) return;
    const index = shards.length;
    const { naive, distinct } = countTokens(pending);
    const sha256 = await writePlanShard(run.folder.path, index, pending);
    shards.push({
      index,
      sequences: pending.length,
      rows: pending.reduce((sum, sequence) => sum + sequence.captures.length, 0),
      naiveTokens: naive,
      distinctTokens: distinct,
      sha256,
    });
    pending = [];
    pendingTokens = 0;
  };

  const metaOf = new Map(run.metas.map((meta) => [meta.key, meta]));
  for await (const episode of run.episodes()) {
    context.signal.throwIfAborted();
    const built = buildSequences(episode, run.chat);
    exclusions.push(...built.exclusions);
    tally.episodes += 1;
    tally.checked += built.checked.turns;
    tally.agreed += built.checked.agreed;
    for (const sequence of built.sequences) {
      if (root === null) root = sequence.ids;
      rootLength = Math.min(rootLength, commonPrefix(root, sequence.ids));
      tally.turns += 1;
      tally.naive += sequence.ids.length;
      if (sequence.cut) tally.truncated += 1;
      idsFrom[sequence.idsFrom] = (idsFrom[sequence.idsFrom] ?? 0) + 1;
      for (const capture of sequence.captures) {
        positions[capture.position] = (positions[capture.position] ?? 0) + 1;
        if (capture.straddles) straddling[capture.position] = (straddling[capture.position] ?? 0) + 1;
      }
    }
    const pair = metaOf.get(episode.key)?.pairId ?? null;
    const own = countTokens(built.sequences, rootLength).distinct;
    if (pendingTokens + own > SHARD_TOKENS && !(pair !== null && pair === lastPair)) await flush();
    pending.push(...built.sequences);
    pendingTokens += own;
    lastPair = pair;
    progress.advance(tally.episodes);
  }
  await flush();
  progress.end();
  checkAgreement(run, tally);
  const rootTokens = Number.isFinite(rootLength) ? rootLength : 0;
  const plan: PlanFile = {
    schemaVersion: 1,
    keyHash,
    episodes: tally.episodes,
    turns: tally.turns,
    naiveTokens: tally.naive,
    // The root counts once in the whole, not once a shard.
    distinctTokens: rootTokens + shards.reduce((sum, shard) => sum + shard.distinctTokens - rootTokens, 0),
    rootTokens,
    truncatedTurns: tally.truncated,
    idsFrom,
    positions,
    straddling,
    verification: { checkedTurns: tally.checked, agreedTurns: tally.agreed },
    taps: run.taps,
    exclusions,
    shards,
  };
  await writePlan(run.folder.path, plan);
  return plan;
}

/**
 * Ids that are not those the model saw make every position wrong, silently.
 * @throws MismatchError (78) when fewer logged prompts and generations agree with ours than the configuration wants
 */
function checkAgreement(
  { config }: OpenedRun,
  { checked, agreed }: { readonly checked: number; readonly agreed: number },
): void {
  if (checked === 0 || agreed / checked >= config.replay.minAgreement) return;
  throw new MismatchError(
    `replay.minAgreement: expected ${config.replay.minAgreement * 100} % of the logged prompts and generations to agree with ours, got ${agreed} of ${checked}. Check the template, replay.historyReasoning, replay.templateKwargs and replay.date, or lower it`,
  );
}
