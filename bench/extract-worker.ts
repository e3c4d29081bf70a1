// One engine of bench/extract.ts in a process of its own: node bench/run.mjs bench/extract-worker.ts JOB.json
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { commonPrefix, compareIds } from '../src/lib/token-order.ts';
import { encodeModel } from '../src/model/graph/onnx-schema.ts';
import { readModel } from '../src/model/graph/read-model.ts';
import { ROWS_INPUT, tapGraph, tapOutput } from '../src/model/graph/tap-graph.ts';
import { openReplayer } from '../src/model/open-replayer.ts';
import { chunkBoundaries } from '../src/model/plan-passes.ts';
import type { SequencePlan, Tap } from '../src/types.ts';
import { type Job, type Measurement, readSet, rowName, wantedTokens, writeStates } from './extract-set.ts';

type States = Map<Tap, Map<string, Float32Array>>;

/** CPU seconds of this process's children so far (Linux). */
function childCpuSeconds(): number {
  const tasks = readdirSync('/proc/self/task');
  const children = tasks.flatMap((task) => readFileSync(`/proc/self/task/${task}/children`, 'latin1').split(' '));
  return children
    .filter((pid) => pid.trim() !== '')
    .reduce((sum, pid) => {
      const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ');
      return sum + (Number(fields[11]) + Number(fields[12])) / 100;
    }, 0);
}
const ownCpuSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};
const ownPeakBytes = (): number => process.resourceUsage().maxRSS * 1024;

/** What a run does: shards of the plan through the replayer's child process. */
async function ours(job: Job, shards: readonly SequencePlan[][], states: States): Promise<Measurement> {
  const alone = job.engine === 'alone';
  const replayer = await openReplayer({
    folder: job.model,
    taps: job.taps,
    threads: job.threads,
    chunk: job.chunk,
    carry: !alone,
    rootTokens: job.rootTokens,
  });
  const { width } = replayer.info;
  const groups = alone ? shards.flatMap((shard) => byEpisode(shard)) : shards;
  const cpu = childCpuSeconds() + ownCpuSeconds();
  const started = performance.now();
  for (const group of groups) {
    const requests = group.map((sequence) => ({ ids: sequence.ids, rows: wantedTokens(sequence) }));
    for await (const { sequence, data } of replayer.replay(requests)) {
      const { rows } = requests[sequence];
      for (const [k, tap] of job.taps.entries())
        for (const [row, token] of rows.entries())
          states
            .get(tap)
            ?.set(
              rowName(group[sequence], token),
              data.slice((k * rows.length + row) * width, (k * rows.length + row + 1) * width),
            );
    }
  }
  const seconds = (performance.now() - started) / 1000;
  const { computedTokens, peakRssBytes } = replayer.stats();
  const cpuSeconds = childCpuSeconds() + ownCpuSeconds() - cpu;
  await replayer.close();
  return { seconds, cpuSeconds, computedTokens, peakBytes: peakRssBytes + ownPeakBytes() };
}

function byEpisode(shard: readonly SequencePlan[]): SequencePlan[][] {
  const groups = new Map<string, SequencePlan[]>();
  for (const sequence of shard) groups.set(sequence.episode, [...(groups.get(sequence.episode) ?? []), sequence]);
  return [...groups.values()];
}

/**
 * The least that onnxruntime has to do: the same pruned graph without its taps, every distinct token once in the same
 * chunks, past state fed back as it came out. Only the deepest tap's last row is read, so that no block is pruned away.
 */
async function bare(job: Job, shards: readonly SequencePlan[][], states: States): Promise<Measurement> {
  const read = await readModel(job.model);
  const deepest = job.taps[job.taps.length - 1];
  const tapped = tapGraph(read.model, read.index, read, { taps: [deepest], logits: false });
  const session = await InferenceSession.create(encodeModel(tapped.model), {
    executionProviders: ['cpu'],
    intraOpNumThreads: job.threads,
    interOpNumThreads: 1,
    extra: { session: { model_external_initializers_file_folder_path: path.dirname(read.file) } },
  });
  const past = tapped.states.map(({ input, output, dims, lengthAxis }) => {
    if (lengthAxis === null) throw new Error(`${input}: this comparison needs a cache that can be cut`);
    return { input, output, dims, axis: lengthAxis };
  });
  const int64 = (values: readonly number[], dims: readonly number[]): Tensor =>
    new Tensor('int64', BigInt64Array.from(values, BigInt), dims);
  const wanted = shards
    .flat()
    .map((sequence) => ({ sequence, ids: sequence.ids.subarray(0, Math.max(...sequence.captures.map((c) => c.end))) }))
    .sort((a, b) => compareIds(a.ids, b.ids));
  let state: Tensor[] = past.map(({ dims }) => new Tensor('float32', new Float32Array(0), dims));
  let before: Int32Array = new Int32Array(0);
  let computedTokens = 0;
  const cpu = ownCpuSeconds();
  const started = performance.now();
  for (const [index, { sequence, ids }] of wanted.entries()) {
    const next = wanted[index + 1];
    if (next !== undefined && commonPrefix(ids, next.ids) === ids.length) continue;
    const start = commonPrefix(before, ids);
    if (start < before.length) state = state.map((tensor, k) => cut(tensor, past[k].axis, start));
    const bounds = chunkBoundaries(start, ids.length, job.chunk);
    for (let at = 0; at + 1 < bounds.length; at += 1) {
      const [from, to] = [bounds[at], bounds[at + 1]];
      const positions = Array.from({ length: to - from }, (_, i) => from + i);
      const feeds: Record<string, Tensor> = {
        input_ids: int64(Array.from(ids.subarray(from, to)), [1, to - from]),
        attention_mask: int64(
          Array.from({ length: to }, () => 1),
          [1, to],
        ),
        position_ids: int64(positions, [1, to - from]),
        [ROWS_INPUT]: int64([to - from - 1], [1]),
      };
      for (const name of Object.keys(feeds)) if (!tapped.inputs.has(name)) delete feeds[name];
      for (const [k, { input }] of past.entries()) feeds[input] = state[k];
      const outputs = await session.run(feeds);
      state = past.map(({ output }) => outputs[output]);
      computedTokens += to - from;
      if (to === ids.length)
        states.get(deepest)?.set(rowName(sequence, to - 1), outputs[tapOutput(0)]?.data as Float32Array);
    }
    before = ids;
  }
  const seconds = (performance.now() - started) / 1000;
  return { seconds, cpuSeconds: ownCpuSeconds() - cpu, computedTokens, peakBytes: ownPeakBytes() };
}

/** The first `length` slots of an axis. */
function cut(tensor: Tensor, axis: number, length: number): Tensor {
  const { dims } = tensor;
  const data = tensor.data as Float32Array;
  const outer = dims.slice(0, axis).reduce((a, b) => a * b, 1);
  const inner = dims.slice(axis + 1).reduce((a, b) => a * b, 1);
  const kept = new Float32Array(outer * length * inner);
  for (let o = 0; o < outer; o += 1)
    kept.set(data.subarray(o * dims[axis] * inner, (o * dims[axis] + length) * inner), o * length * inner);
  return new Tensor(
    'float32',
    kept,
    dims.map((d, i) => (i === axis ? length : d)),
  );
}

const job = JSON.parse(readFileSync(process.argv[2], 'utf8')) as Job;
const shards = await readSet(job.plan);
const deepest = job.taps.slice(-1);
const states: States = new Map((job.engine === 'bare' ? deepest : job.taps).map((tap) => [tap, new Map()]));
const measured = await (job.engine === 'bare' ? bare : ours)(job, shards, states);
const width = [...([...states.values()][0] ?? new Map<string, Float32Array>()).values()][0]?.length ?? 0;
await writeStates(job.out, width, states);
await writeFile(`${job.out}.json`, JSON.stringify(measured));
