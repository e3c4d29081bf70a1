/**
 * Fitting probes: 10 C × 5 folds on one matrix, against scikit-learn's LogisticRegressionCV (its time is that of the
 * tolerance at which it first reaches a relative objective gap of 1e-6) and ml-logistic-regression, same machine, same run.
 *
 *   npm run bench:probe -- [--json] [--rows 5000x576,20000x576] [--set power|independent] [--threads 2]
 *                          [--python python3] [--max-seconds 3600] [--no-ml] [--stream] [--no-rival]
 *
 * The Python named needs the packages of bench/requirements.txt. With --json the only output is
 * {rows: [{n, d, set, ratio, gap, seconds, rivalSeconds, …}], ml, machine}. ratio = scikit-learn's seconds / ours; where
 * it did not reach the gap within --max-seconds, `atLeast` is true and the ratio is a lower bound.
 * --stream adds `streamed`: the same fits from float16 shards on disk, over their time in memory. --no-rival leaves
 * scikit-learn's fits out (its ratio and gap are then null).
 * gap = the largest of the 50 relative gaps of ours, to the best objective that either side found, in float64.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createGemm } from '../src/model/gemm.ts';
import type { RowBlocks } from '../src/math/row-blocks.ts';
import { type FittedReader, fitLinearBatch, type LinearFitProblem } from '../src/probe/fit-linear.ts';
import type { FeatureMatrix } from '../src/types.ts';
import { measureMl } from './probe-ml.ts';
import { measureStreamed } from './probe-stream.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    rows: { type: 'string', default: '5000x576,20000x576,5000x2048,20000x2048,5000x5120,20000x5120' },
    set: { type: 'string', default: 'power' },
    threads: { type: 'string', default: String(Math.min(2, cpus().length)) },
    python: { type: 'string', default: 'python3' },
    'max-seconds': { type: 'string', default: '3600' },
    seed: { type: 'string', default: '1' },
    ml: { type: 'boolean', default: true },
    rival: { type: 'boolean', default: true },
    stream: { type: 'boolean', default: false },
  },
  allowNegative: true,
});

const FOLDS = 5;
const CS = Array.from({ length: 10 }, (_, i) => 10 ** (-4 + (8 * i) / 9));
const rival = fileURLToPath(new URL('./probe_rival.py', import.meta.url));
const threads = Number(values.threads);
const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

function python(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(values.python, [rival, ...args], {
    encoding: 'utf8',
    env: { ...process.env, OMP_NUM_THREADS: String(threads), OPENBLAS_NUM_THREADS: String(threads) },
    maxBuffer: 1 << 26,
  });
  if (status !== 0) throw new Error(`${values.python} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

interface RivalResult {
  readonly version: string;
  readonly seconds: number | null;
  readonly atLeastSeconds?: number;
  readonly tol: number | null;
  readonly rivalGap: number | null;
  readonly gap: number;
  readonly tried: readonly { readonly tol: number; readonly foldSeconds: number; readonly gap: number | null }[];
}

function problemsOf(n: number, y: Uint8Array): LinearFitProblem[] {
  return Array.from({ length: FOLDS }, (_, fold) => {
    const rows = Int32Array.from({ length: n }, (_, i) => i).filter((i) => i % FOLDS !== fold);
    const labels = Uint8Array.from(rows, (row) => y[row]);
    return CS.map((C) => ({ rows, labels, weights: null, C }));
  }).flat();
}

/** [fits × (d + 1)], intercept last, as the Python side reads it. */
function coefficients(fits: readonly FittedReader[], d: number): Float64Array {
  const out = new Float64Array(fits.length * (d + 1));
  fits.forEach(({ weights, bias }, at) => {
    out.set(weights, at * (d + 1));
    out[at * (d + 1) + d] = bias;
  });
  return out;
}

/** scikit-learn's side. @param tight our coefficients of a tighter run */
function judge(folder: string, n: number, d: number, tight: Float64Array): RivalResult {
  writeFileSync(join(folder, 'tight.f64'), tight);
  return JSON.parse(python('fit', folder, String(n), String(d), values['max-seconds'])) as RivalResult;
}

async function measureRow(n: number, d: number, set: string) {
  const folder = mkdtempSync(join(tmpdir(), 'forewarn-bench-'));
  const { gemm, gemm64, close } = await createGemm({ threads });
  try {
    python('make', folder, String(n), String(d), set, values.seed);
    const bytes = readFileSync(join(folder, 'x.f32'));
    const data = new Float32Array(bytes.buffer, bytes.byteOffset, n * d);
    const y = new Uint8Array(readFileSync(join(folder, 'y.u8')));
    const problems = problemsOf(n, y);
    const x = { data, rows: n, columns: d };
    const fit = async (tolerance?: number, from: FeatureMatrix | RowBlocks = x): Promise<readonly FittedReader[]> => {
      const fits = await fitLinearBatch({ x: from, problems, gemm, gemm64, tolerance, standardize: false });
      return fits.map((each) => {
        if ('undefinedBecause' in each) throw new Error(each.undefinedBecause);
        return each;
      });
    };
    const before = process.memoryUsage.rss();
    // Small rows three times, the middle one counts: on a shared machine one run says little.
    const times: number[] = [];
    let fits: readonly FittedReader[] = [];
    for (let repeat = 0; repeat < (n * d < 4e6 ? 3 : 1); repeat += 1) {
      const from = performance.now();
      fits = await fit();
      times.push((performance.now() - from) / 1000);
    }
    const seconds = times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
    const extraMegabytes = Math.round((process.resourceUsage().maxRSS * 1024 - before) / 1e6);
    say(`${n} x ${d} ${set}: ours ${seconds.toFixed(2)} s`);
    writeFileSync(join(folder, 'ours.f64'), coefficients(fits, d));
    // A tighter run is the optimum that both sides are judged by (with the other side's best, where that is lower).
    const result = values.rival ? judge(folder, n, d, coefficients(await fit(1e-10), d)) : null;
    const rivalSeconds = result === null ? null : (result.seconds ?? result.atLeastSeconds ?? 0);
    const streamed = values.stream
      ? await measureStreamed(
          n,
          d,
          () => data,
          (from) => fit(undefined, from),
        )
      : null;
    if (streamed !== null) say(`${n} x ${d} streamed: ${streamed.timesMemory.toFixed(2)} times the time in memory`);
    return {
      n,
      d,
      set,
      ratio: rivalSeconds === null ? null : rivalSeconds / seconds,
      gap: result?.gap ?? null,
      seconds,
      rivalSeconds,
      ...(result !== null && result.seconds === null ? { atLeast: true } : {}),
      ...(streamed === null ? {} : { streamed }),
      rivalTolerance: result?.tol ?? null,
      rivalGap: result?.rivalGap ?? null,
      notConverged: fits.filter((each) => each.convergence?.converged !== true).length,
      newtonSteps: Math.max(...fits.map((each) => each.convergence?.iterations ?? 0)),
      products: Math.max(...fits.map((each) => each.convergence?.products ?? 0)),
      extraMegabytes,
      rivalVersion: result?.version ?? null,
      rivalTried: result?.tried ?? [],
    };
  } finally {
    await close();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Row = Awaited<ReturnType<typeof measureRow>>;
const rows: Row[] = [];
for (const size of values.rows.split(',').filter((text) => text !== '')) {
  const [n, d] = size.split('x').map(Number);
  const row = await measureRow(n, d, values.set);
  rows.push(row);
  if (row.ratio === null || row.gap === null || row.rivalSeconds === null) continue;
  say(
    `${n} x ${d} ${row.set}: ratio ${row.atLeast === true ? '>= ' : ''}${row.ratio.toFixed(1)}, gap ${row.gap.toExponential(1)}, ours ${row.seconds.toFixed(2)} s, scikit-learn ${row.rivalSeconds.toFixed(1)} s at tol ${row.rivalTolerance}`,
  );
}
const ml = values.ml
  ? await measureMl(5000, 576, rows.find((row) => row.n === 5000 && row.d === 576)?.seconds ?? null)
  : null;
const machine = { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, threads, node: process.version };
if (values.json) process.stdout.write(`${JSON.stringify({ rows, ml, machine })}\n`);
else
  console.table(
    rows.map(({ n, d, set, ratio, gap, seconds, rivalSeconds, extraMegabytes }) => ({
      n,
      d,
      set,
      ratio,
      gap,
      seconds,
      rivalSeconds,
      extraMegabytes,
    })),
  );
