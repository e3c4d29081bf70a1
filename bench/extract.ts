/**
 * Extraction against what people write and against onnxruntime alone: same episodes, taps, positions and threads, one
 * machine, one run, every engine in a process of its own, loading not counted.
 *
 *   npm run bench:extract -- [--json] [--config bench/extract-tau.yaml] [--model FOLDER] [--hf FOLDER] [--python python3]
 *                            [--episodes 24] [--threads 1] [--chunk 512] [--repeats 1] [--growth] [--no-rivals]
 *
 * (a) ours; (b) transformers, one forward per turn; (c) transformers, one forward per episode where that is exact; (d)
 * onnxruntime alone on the same pruned graph, chunks and distinct tokens, no taps. All are checked to agree. The Python
 * needs bench/requirements-extract.txt; --hf is the same model for transformers (default: hf beside the model's folder).
 * --json prints {ratios: {perTurn, onePass, rawDistinct}, naiveTokens, distinctTokens, …}: a rival's time over ours, but
 * rawDistinct is ours over onnxruntime's.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { loadConfig } from '../src/config/load.ts';
import { run } from '../src/pipeline/run.ts';
import type { SequencePlan, Tap } from '../src/types.ts';
import { compareStates, type Agreement } from './extract-compare.ts';
import { gemmRate, multiplicationsPerToken } from './extract-machine.ts';
import { growingEpisode, type Job, type Measurement, readSet, tokensOf, writeSet } from './extract-set.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    config: { type: 'string', default: 'bench/extract-tau.yaml' },
    model: { type: 'string' },
    hf: { type: 'string' },
    python: { type: 'string', default: 'python3' },
    episodes: { type: 'string', default: '24' },
    threads: { type: 'string', default: '1' },
    chunk: { type: 'string', default: '512' },
    repeats: { type: 'string', default: '1' },
    growth: { type: 'boolean', default: false },
    rivals: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
/** Of the largest magnitude of a tap: what chunks, other kernels and another order of sums may change. */
const BOUND = 5e-5;
const GROWING_TURNS = [5, 10, 20, 40];

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const work = mkdtempSync(join(tmpdir(), 'forewarn-extract-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

const threads = Number(values.threads);
const flags = { output: join(work, 'results'), 'model.folder': values.model, 'model.threads': threads };
const { config } = await loadConfig(values.config, flags);
const model = config.model.folder;
const hf = resolve(values.hf ?? join(dirname(model), 'hf'));

type Engine = Job['engine'] | 'perTurn' | 'onePass';
let jobs = 0;
/** Runs one engine over an exported plan in a process of its own. */
function measure(engine: Engine, plan: string, taps: readonly Tap[]): Measurement & { readonly out: string } {
  const out = join(work, `${engine}-${(jobs += 1)}`);
  const python = engine === 'perTurn' || engine === 'onePass';
  const job = {
    engine,
    plan,
    model: python ? hf : model,
    taps,
    threads,
    chunk: Number(values.chunk),
    rootTokens: planned.plan.rootTokens,
    out,
  };
  writeFileSync(`${out}.job.json`, JSON.stringify(job));
  const { status, stderr, error } = spawnSync(
    python ? values.python : process.execPath,
    python
      ? ['bench/extract_rivals.py', `${out}.job.json`]
      : ['bench/run.mjs', 'bench/extract-worker.ts', `${out}.job.json`],
    { encoding: 'utf8', env: { ...process.env, OMP_NUM_THREADS: String(threads) }, maxBuffer: 1 << 26 },
  );
  if (status !== 0) throw new Error(`${engine}: ${error?.message ?? stderr}`);
  const measured = JSON.parse(readFileSync(`${out}.json`, 'utf8')) as Measurement;
  const rate = measured.computedTokens / measured.seconds;
  say(
    `${engine}: ${measured.seconds.toFixed(1)} s (CPU ${measured.cpuSeconds.toFixed(1)}), ${rate.toFixed(0)} tokens/s`,
  );
  return { ...measured, out };
}

/** The fastest of several runs: what else the machine does only adds time. */
const fastest = <T extends Measurement>(runs: readonly T[]): T =>
  runs.reduce((best, one) => (one.seconds < best.seconds ? one : best));

const silent = { start: () => {}, advance: () => {}, note: () => {}, end: () => {} };
const planned = await run(
  values.config,
  { until: 'plan', flags, resume: null, exportTo: join(work, 'plan') },
  {
    clock: { now: () => performance.now(), date: () => new Date() },
    progress: silent,
    signal: new AbortController().signal,
  },
);
const { taps } = planned.plan;
const everything = await readSet(join(work, 'plan'));
const chosen = chooseEpisodes(everything, Number(values.episodes));
const set = join(work, 'set');
await writeSet(
  set,
  everything.map((shard) => shard.filter(({ episode }) => chosen.includes(episode))),
  taps,
);
const { naive, distinct, distinctWithinEpisodes } = tokensOf(await readSet(set));
say(`${chosen.length} episodes, naive ${naive} tokens, distinct ${distinct}, ${taps.length} taps, ${threads} threads`);

const own: ReturnType<typeof measure>[] = [];
const bare: ReturnType<typeof measure>[] = [];
for (let repeat = 0; repeat < Number(values.repeats); repeat += 1) {
  own.push(measure('ours', set, taps));
  bare.push(measure('bare', set, taps));
}
const ours = fastest(own);
const raw = fastest(bare);
const alone = measure('alone', set, taps);
const onePass = values.rivals ? measure('onePass', set, taps) : null;
const perTurn = values.rivals ? measure('perTurn', set, taps) : null;
const agreement: Record<string, Agreement> = {};
for (const [name, other] of Object.entries({ raw, alone, onePass, perTurn }))
  if (other !== null) agreement[name] = await compareStates(ours.out, other.out);
const worst = Math.max(...Object.values(agreement).map(({ largestRatio }) => largestRatio));

const machineRate = await gemmRate(threads);
const perToken = await multiplicationsPerToken(model, taps);
const share = (m: Measurement): number => (m.computedTokens * perToken) / m.seconds / machineRate;
const over = (rival: Measurement | null, mine: Measurement): number | null =>
  rival === null ? null : rival.seconds / mine.seconds;
const overCpu = (rival: Measurement | null, mine: Measurement): number | null =>
  rival === null ? null : rival.cpuSeconds / mine.cpuSeconds;
const naiveRate = (m: Measurement): number => naive / m.seconds;

const result = {
  ratios: { perTurn: over(perTurn, ours), onePass: over(onePass, ours), rawDistinct: ours.seconds / raw.seconds },
  ratiosOfCpuSeconds: {
    perTurn: overCpu(perTurn, ours),
    onePass: overCpu(onePass, ours),
    rawDistinct: ours.cpuSeconds / raw.cpuSeconds,
  },
  ratiosWithoutSharingBetweenEpisodes: { perTurn: over(perTurn, alone), onePass: over(onePass, alone) },
  naiveTokens: naive,
  distinctTokens: distinct,
  distinctTokensWithinEpisodes: distinctWithinEpisodes,
  agreement: { bound: BOUND, largestRatio: worst, agree: worst <= BOUND, with: agreement },
  engines: Object.fromEntries(
    Object.entries({ ours, raw, alone, onePass, perTurn }).flatMap(([name, m]) =>
      m === null
        ? []
        : [
            [
              name,
              {
                seconds: m.seconds,
                cpuSeconds: m.cpuSeconds,
                computedTokens: m.computedTokens,
                tokensPerSecond: m.computedTokens / m.seconds,
                episodeTokensPerSecond: naiveRate(m),
                peakBytes: m.peakBytes,
                shareOfGemmRate: share(m),
              },
            ],
          ],
    ),
  ),
  extraBytesOverRaw: ours.peakBytes - raw.peakBytes,
  gemm: { multiplyAddsPerSecond: machineRate, multiplyAddsPerToken: perToken },
  growth: values.growth ? await growth() : null,
  setting: { config: values.config, taps, threads, chunk: Number(values.chunk), repeats: Number(values.repeats) },
  episodes: chosen,
  machine: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, node: process.version },
};
process.stdout.write(`${values.json ? JSON.stringify(result) : JSON.stringify(result, null, 1)}\n`);
if (!result.agreement.agree) process.exitCode = 1;

/** Evenly spread over all lengths, by the longest sequence of each. */
function chooseEpisodes(shards: readonly (readonly SequencePlan[])[], count: number): string[] {
  const lengths = new Map<string, number>();
  for (const { episode, ids } of shards.flat()) lengths.set(episode, Math.max(lengths.get(episode) ?? 0, ids.length));
  const order = [...lengths].sort(([a, m], [b, n]) => m - n || (a < b ? -1 : 1)).map(([episode]) => episode);
  if (count >= order.length) return order;
  // One episode is the middle one; more reach from the shortest to the longest.
  return Array.from(
    { length: count },
    (_, i) => order[count === 1 ? order.length >> 1 : Math.round((i * (order.length - 1)) / (count - 1))],
  );
}

/** Ours by turns of one episode (same text a turn) and by taps (same episodes). */
async function growth(): Promise<object> {
  const byTurns = [];
  for (const turns of GROWING_TURNS) {
    const folder = join(work, `turns-${turns}`);
    await writeSet(folder, [growingEpisode(everything.flat(), planned.plan.rootTokens, turns, GROWING_TURNS[3])], taps);
    const tokens = tokensOf(await readSet(folder));
    byTurns.push({
      turns,
      naiveTokens: tokens.naive,
      distinctTokens: tokens.distinct,
      seconds: measure('ours', folder, taps).seconds,
    });
  }
  const all: Tap[] = [
    'embed',
    ...Array.from({ length: planned.cost.blocks - 1 }, (_, i) => `resid_post.${i}`),
    'final_norm',
  ];
  const eight = Array.from({ length: 8 }, (_, i) => all[Math.round((i * (all.length - 1)) / 7)]);
  const byTaps = [];
  for (const list of [all.slice(-1), [...new Set(eight)], all])
    byTaps.push({ taps: list.length, seconds: measure('ours', set, list).seconds });
  return { byTurns, byTaps };
}
