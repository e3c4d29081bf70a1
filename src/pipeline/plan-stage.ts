import { buildSequences } from '../plan/sequences.ts';
import { commonPrefix } from '../lib/token-order.ts';
import { countTokens } from '../plan/trie.ts';
import { createVerifier } from '../plan/verify.ts';
import { type PlanFile, type PlanShardInfo, readPlan, writePlan, writePlanShard } from '../store/plan-shards.ts';
import type { Episode, Exclusion, SequencePlan, Verification } from '../types.ts';
import { belowLimit, disagreementError, formatVerification } from './agreement.ts';
import type { PipelineContext } from './context.ts';
import type { OpenedRun } from './open-run.ts';
import { trySettings } from './try-settings.ts';

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
  const tally = { episodes: 0, turns: 0, naive: 0, truncated: 0 };
  const idsFrom: Record<string, number> = {};
  const positions: Record<string, number> = {};
  const straddling: Record<string, number> = {};
  const verifier = createVerifier(run.chat.tokenizer);
  const samples: Samples = new Map();
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
    const agrees = verifier.add(episode, built.facts, run.chat.recordedBy(episode.model));
    if (agrees !== null) keepSample(samples, episode, agrees);
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
  const verification = verifier.result();
  await checkAgreement(run, verification, samples, context);
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
    verification,
    taps: run.taps,
    exclusions,
    shards,
  };
  await writePlan(run.folder.path, plan);
  return plan;
}

/** Episodes on which other settings would be tried, by model: those that disagree and some that do not. */
type Samples = Map<string, { readonly agree: Episode[]; readonly disagree: Episode[] }>;
const SAMPLE = { agree: 2, disagree: 6 };

function keepSample(samples: Samples, episode: Episode, agrees: boolean): void {
  const kept = samples.get(episode.model) ?? { agree: [], disagree: [] };
  samples.set(episode.model, kept);
  const side = agrees ? 'agree' : 'disagree';
  if (kept[side].length < SAMPLE[side]) kept[side].push(episode);
}

/** @throws MismatchError (78) when the log agrees with ours less than the configuration wants, with what would agree better */
async function checkAgreement(
  { config, chat, folder }: OpenedRun,
  verification: Verification,
  samples: Samples,
  { progress }: PipelineContext,
): Promise<void> {
  const minimum = config.replay.minAgreement;
  const worst = belowLimit(verification, minimum);
  if (worst === null) {
    await folder.note('verification', verification);
    return;
  }
  for (const line of formatVerification(verification)) progress.note(line);
  const { agree, disagree } = samples.get(worst.model) ?? { agree: [], disagree: [] };
  const trials = await trySettings(config.model.folder, chat, [...disagree, ...agree]);
  for (const { setting, agreed, checked } of [trials.configured, ...trials.better])
    progress.note(`on a sample: ${setting}: ${agreed} of ${checked} turns agree`);
  await folder.note('verification', { ...verification, trials });
  throw disagreementError(worst, minimum, trials);
}
