import { afterAll, describe, expect, it } from 'vitest';
import { FLOAT16 } from '../../../src/model/graph/onnx-schema.ts';
import { readModel } from '../../../src/model/graph/read-model.ts';
import { cpuObstacle } from '../../../src/model/graph/supported-ops.ts';
import { tapValues } from '../../../src/model/graph/tap-graph.ts';
import { openReplayer } from '../../../src/model/open-replayer.ts';
import {
  everyRow,
  listFixtures,
  plainRun,
  relativeError,
  replayHere,
  tapRows,
  type Fixture,
  type ReplayMode,
} from './models.ts';

const MODES: readonly ReplayMode[] = [
  { chunk: 512, sharing: true, threads: 1 },
  { chunk: 7, sharing: true, threads: 1 },
  { chunk: 1, sharing: true, threads: 2 },
  { chunk: 64, sharing: false, threads: 2 },
  { chunk: Infinity, sharing: false, threads: 1 },
];
/** Of the largest magnitude of the tap. */
const TOLERANCE = 5e-5;
/** Against a plain run of the same half-precision or quantised file, whole sequences. */
const PLAIN_TOLERANCE = 2e-4;
/** Half precision rounds keys, values and sums anew at each chunk: a few units of 2^-10 after four blocks. */
const HALF_CHUNKED_TOLERANCE = 1e-2;

const fixtures = listFixtures().filter((f) => f.golden.expect !== 'refuse' && f.tensors.size > 0);
const report: string[] = [];
let taps = 0;
afterAll(() =>
  console.info(
    `replay: ${report.length} graphs, ${taps} taps compared, largest error of the value scale:\n${report.join('\n')}`,
  ),
);

/** The two golden sequences, a fork of the first after 9 tokens, a prefix of it, and three ways on from its fourth token. */
function sequencesOf(f: Fixture): Int32Array[] {
  const a = f.tensors.get('seq0.input_ids') as Int32Array;
  const b = f.tensors.get('seq1.input_ids') as Int32Array;
  const stem = a.subarray(0, 4);
  return [
    a,
    b,
    Int32Array.of(...a.subarray(0, 9), 7, 8, 9),
    a.subarray(0, 12),
    stem,
    Int32Array.of(...stem, 11, 12, 13),
    Int32Array.of(...stem, 21, 22),
  ];
}

describe('each tap equals the golden hidden state, in every chunk, thread and sharing setting', () => {
  it.each(fixtures.map((f) => [f.name, f] as const))('%s', async (_, f) => {
    const read = await readModel(f.folder);
    const names = tapValues(read.stream);
    const all = [...names.keys()];
    if (cpuObstacle(read.model.graph) !== null) {
      // Traced, but refused with the reason; and a plain run of the file fails too, so the refusal is no excuse.
      await expect(openReplayer({ folder: f.folder, taps: ['resid_post.0'], threads: 1 })).rejects.toThrow(
        /CUDA|WebGPU/,
      );
      const [first] = sequencesOf(f);
      await expect(plainRun(f.folder, ['logits'], first)).rejects.toThrow();
      report.push(`${f.name}: no CPU kernel`);
      return;
    }
    if (!read.io.ids) {
      report.push(`${f.name}: takes embeddings, not run`);
      return;
    }
    const sequences = sequencesOf(f);
    const inexact =
      read.model.graph.initializer.some((t) => t.data_type === FLOAT16) ||
      /Quant|NBits|Integer/.test(read.model.graph.node.map((n) => n.op_type).join());
    const want = new Map<string, Float32Array>();
    for (const s of [0, 1]) {
      const plain = inexact
        ? await plainRun(
            f.folder,
            [...names.values()].map((r) => r.name || `${read.index.nodes[r.node]?.name}#${r.slot}`),
            sequences[s],
          )
        : null;
      for (const [k, tap] of all.entries()) {
        const value = plain ? [...plain.values()][k] : f.tensors.get(`seq${s}.${tap}`);
        if (value) want.set(`${s}.${tap}`, value as Float32Array);
      }
    }
    const half = read.model.graph.initializer.some((t) => t.data_type === FLOAT16);
    let worst = 0;
    for (const mode of MODES) {
      const chunked = mode.chunk < (sequences[0]?.length ?? 0) || mode.sharing;
      const tolerance = half && chunked ? HALF_CHUNKED_TOLERANCE : inexact ? PLAIN_TOLERANCE : TOLERANCE;
      const blocks = await replayHere(f.folder, all, sequences.map(everyRow), mode);
      for (const [key, value] of want) {
        const [s, ...rest] = key.split('.');
        const got = tapRows(blocks[Number(s)], all.length, all.indexOf(rest.join('.')));
        const error = relativeError(got, value);
        worst = Math.max(worst, error);
        expect(error, `${key} with ${JSON.stringify(mode)}`).toBeLessThan(tolerance);
        taps++;
      }
      // Shared prefixes: rows of the fork and of the prefix are those of the first sequence.
      const [a, , fork, prefix] = blocks as [Float32Array, Float32Array, Float32Array, Float32Array];
      const dynamic = /DynamicQuantize/.test(read.model.graph.node.map((n) => n.op_type).join());
      for (const [k] of dynamic ? [] : all.entries()) {
        const [whole, cut, short] = [a, fork, prefix].map((block) => tapRows(block, all.length, k)) as [
          Float32Array,
          Float32Array,
          Float32Array,
        ];
        const width = read.config.width ?? 0;
        expect(relativeError(cut.subarray(0, 9 * width), whole.subarray(0, 9 * width))).toBeLessThan(tolerance);
        expect(relativeError(short, whole.subarray(0, 12 * width))).toBeLessThan(tolerance);
      }
    }
    report.push(`${f.name}: ${worst.toExponential(1)}${inexact ? ' (against a plain run)' : ''}`);
  });
});

const expected = (tap: string): number => {
  const k = Number(tap.split('.')[1]);
  return tap === 'embed' ? -1 : tap.startsWith('resid_mid') ? k - 0.75 : k;
};
const ids = (n: number, seed: number): Int32Array =>
  Int32Array.from({ length: n }, (_, i) => (i * 7 + seed * seed * 3 + seed) % 32);

describe('predictable', () => {
  const predictable = listFixtures().find((f) => f.golden.arch === 'predictable');
  it('reads k + position / 1000 at block k, in every batch, chunk and prefix setting', async () => {
    if (!predictable) throw new Error('expected the fixture predictable, got none');
    const { folder } = predictable;
    const { stream } = await readModel(folder);
    const all = [...tapValues(stream).keys()].filter((t) => t !== 'final_norm');
    const stem = ids(150, 1);
    const batch = [
      everyRow(ids(300, 2)),
      everyRow(Int32Array.of(...stem, ...ids(40, 3))),
      { ids: Int32Array.of(...stem, ...ids(90, 4)), rows: Int32Array.of(0, 63, 64, 149, 150, 239) },
      everyRow(stem),
      { ids: ids(500, 5), rows: Int32Array.of(499) },
      everyRow(Int32Array.of(...stem, ...ids(40, 3), ...ids(200, 6))),
    ];
    let rows = 0;
    for (const chunk of [1, 7, 64, 512, Infinity]) {
      for (const sharing of [true, false]) {
        for (const sequences of [batch, ...batch.map((s) => [s]), [...batch].reverse()]) {
          const blocks = await replayHere(folder, all, sequences, { chunk, sharing, threads: 1 });
          for (const [s, sequence] of sequences.entries()) {
            for (const [k, tap] of all.entries()) {
              const values = tapRows(blocks[s], all.length, k);
              const width = values.length / sequence.rows.length;
              for (const [r, position] of sequence.rows.entries()) {
                const row = values.subarray(r * width, (r + 1) * width);
                const want = expected(tap) + position * 1e-3;
                if (!row.every((v) => Math.abs(v - want) < 1e-5))
                  throw new Error(`${tap} at ${position}, chunk ${chunk}: expected ${want}, got ${row[0]}`);
                rows++;
              }
            }
          }
        }
      }
    }
    console.info(`predictable: ${rows} rows read`);
    expect(rows).toBeGreaterThan(0);
  });
});
