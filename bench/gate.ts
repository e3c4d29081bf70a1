/**
 * What a gate costs while a model generates, and how fast it generates: ours with taps and a probe read at every position
 * against ours without, and ours against onnxruntime-genai on the same int4 model. Same machine, same run, interleaved.
 *
 *   npm run bench:gate -- [--json] [--model ../shared/models/smollm2-135m-instruct-q4] [--python python3]
 *                         [--contexts 128,256,1024] [--tokens 64] [--pairs 7] [--threads 1] [--no-rival]
 *
 * The Python named needs onnxruntime-genai (bench/requirements.txt). A context of 256 is a prompt of 256 − tokens, then
 * `tokens` generated greedily; one run is prompt and generation from nothing. With --json the only output is
 * {ratios: {gateOverhead, generation}, contexts: [{context, gateOverhead, generation, tokensPerSecond, …}], machine}.
 * gateOverhead = time with the gate / without; generation = tokens/s of ours / of onnxruntime-genai: medians over pairs,
 * `ratios` at the largest context up to 256.
 */
import { spawn } from 'node:child_process';
import { cpus } from 'node:os';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openGenerator, type Generator } from '../src/model/open-generator.ts';
import { isAlarm, scoreRow, type GateReader } from '../src/pipeline/probe-gate.ts';
import { seededRng } from '../src/lib/rng.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    model: { type: 'string', default: '../shared/models/smollm2-135m-instruct-q4' },
    python: { type: 'string', default: 'python3' },
    contexts: { type: 'string', default: '128,256,1024' },
    tokens: { type: 'string', default: '64' },
    pairs: { type: 'string', default: '7' },
    threads: { type: 'string', default: '1' },
    rival: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const contexts = values.contexts.split(',').map(Number);
const [tokens, pairs, threads] = [Number(values.tokens), Number(values.pairs), Number(values.threads)];
for (const context of contexts)
  if (!(context > tokens)) throw new Error(`--contexts: expected more than --tokens ${tokens}, got ${context}`);
const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};
const median = (list: readonly number[]): number => {
  const sorted = [...list].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

interface Rival {
  readonly version: string;
  time(ids: Int32Array): Promise<number>;
  close(): void;
}

async function openRival(): Promise<Rival> {
  const script = fileURLToPath(new URL('./gate_rival.py', import.meta.url));
  const child = spawn(values.python, [script, values.model, String(threads)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<Record<string, unknown>> => {
    const line = await lines.next();
    if (line.done === true) throw new Error(`${values.python} ${script} ended; it needs onnxruntime-genai`);
    return JSON.parse(line.value) as Record<string, unknown>;
  };
  const { version } = await next();
  return {
    version: String(version),
    time: async (ids) => {
      child.stdin.write(`${JSON.stringify({ ids: [...ids], tokens })}\n`);
      const { seconds, tokens: made } = await next();
      if (made !== tokens) throw new Error(`expected ${tokens} tokens of onnxruntime-genai, got ${String(made)}`);
      return Number(seconds);
    },
    close: () => child.stdin.end(),
  };
}

/** Seconds of one generation from nothing; with a probe: its score at every captured position. */
async function time(generator: Generator, ids: Int32Array, slot: string, reader: GateReader | null): Promise<number> {
  const start = performance.now();
  const result = await generator.generate({
    ids,
    maxTokens: tokens,
    temperature: 0,
    uniform: () => 0,
    stopIds: [],
    slot,
    capture: reader !== null,
  });
  if (reader !== null) {
    const { positions, data } = result;
    const states = { taps: generator.taps, positions, data, width: generator.info.width };
    for (let row = 0; row < positions.length; row += 1)
      isAlarm({ pre_action: scoreRow(reader.probe, states, row) }, [reader]);
  }
  if (result.ids.length !== tokens) throw new Error(`expected ${tokens} tokens, got ${result.ids.length}`);
  return (performance.now() - start) / 1000;
}

async function main(): Promise<void> {
  const plain = await openGenerator({ folder: values.model, taps: [], threads, keep: 1 });
  const { width, blocks, vocabularySize } = plain.info;
  const tap = `resid_post.${Math.floor((blocks * 2) / 3)}`;
  const gated = await openGenerator({ folder: values.model, taps: [tap], threads, keep: 1, info: plain.info });
  const rng = seededRng('bench-gate');
  const numbers = (): Float64Array => Float64Array.from({ length: width }, () => rng.next() + 0.1);
  const reader: GateReader = {
    position: 'pre_action',
    threshold: 0.5,
    probe: {
      taps: [tap],
      landmark: { anchor: 'reveal', offset: 1, position: 'pre_action' },
      target: 'first_unsafe_event',
      horizon: null,
      estimator: 'logistic',
      C: 1,
      width,
      mean: numbers(),
      scale: numbers(),
      weights: numbers(),
      bias: 0,
      calibration: { kind: 'platt', slope: 1, intercept: 0 },
      thresholds: [],
    },
  };
  const rival = values.rival ? await openRival() : null;
  const rows = [];
  for (const context of contexts) {
    const promptOf = (): Int32Array =>
      Int32Array.from({ length: context - tokens }, () => 20 + rng.below(Math.min(40_000, vocabularySize) - 20));
    const overhead: number[] = [];
    const speed: number[] = [];
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let pair = -1; pair < pairs; pair += 1) {
      const ids = promptOf();
      const slot = `${context} ${pair}`;
      // In turn, so that none is always the first.
      const runs: readonly (() => Promise<readonly [string, number]>)[] = [
        async () => ['plain', await time(plain, ids, slot, null)],
        async () => ['gated', await time(gated, ids, slot, reader)],
        ...(rival === null ? [] : [async () => ['rival', await rival.time(ids)] as const]),
      ];
      const seconds: Record<string, number> = {};
      for (let k = 0; k < runs.length; k += 1) {
        const [name, taken] = await runs[(k + pair + runs.length) % runs.length]();
        seconds[name] = taken;
      }
      if (pair < 0) continue; // warm-up
      overhead.push(seconds['gated'] / seconds['plain']);
      ours.push(tokens / seconds['plain']);
      if (rival !== null) {
        speed.push(seconds['rival'] / seconds['plain']);
        theirs.push(tokens / seconds['rival']);
      }
    }
    const row = {
      context,
      gateOverhead: median(overhead),
      generation: rival === null ? null : median(speed),
      tokensPerSecond: median(ours),
      rivalTokensPerSecond: rival === null ? null : median(theirs),
      pairs,
    };
    rows.push(row);
    say(
      `context ${context}: gate overhead ${row.gateOverhead.toFixed(3)}, ${row.tokensPerSecond.toFixed(1)} tokens/s` +
        (row.generation === null ? '' : `, ${row.generation.toFixed(2)} of onnxruntime-genai`),
    );
  }
  rival?.close();
  await Promise.all([plain.close(), gated.close()]);
  const main = rows.filter((row) => row.context <= 256).sort((a, b) => b.context - a.context)[0] ?? rows[0];
  const result = {
    ratios: { gateOverhead: main?.gateOverhead, generation: main?.generation },
    contexts: rows,
    machine: {
      cpu: cpus()[0]?.model,
      cores: cpus().length,
      node: process.version,
      threads,
      rival: rival?.version ?? null,
    },
  };
  if (values.json) process.stdout.write(`${JSON.stringify(result)}\n`);
}

// Not awaited here: a module that is still being evaluated would keep its own imports waiting.
main().catch((error: unknown) => {
  say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
});
