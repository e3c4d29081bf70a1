import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { Gemm } from '../types.ts';
import { encodeModel, FLOAT, intAttribute } from './graph/onnx-schema.ts';

/**
 * Matrix products on onnxruntime's CPU kernels, in this process: operands are read where they lie (no copy in; the result
 * is one fresh array). A product blocks the event loop while it runs, so large ones are cut into pieces of about
 * {@link PIECE} multiplications, between which signals and timers are served.
 */
const PIECE = 2e10;

/**
 * @param options.threads intra-op threads; the same number gives the same bytes
 * @throws RangeError from the returned function when an operand's length does not match its shape
 */
export async function createGemm(options: {
  readonly threads: number;
}): Promise<{ readonly gemm: Gemm; readonly close: () => Promise<void> }> {
  const sessions: InferenceSession[] = [];
  for (let kind = 0; kind < 4; kind++) {
    sessions.push(
      await InferenceSession.create(gemmModel((kind & 1) > 0, (kind & 2) > 0), {
        executionProviders: ['cpu'],
        intraOpNumThreads: options.threads,
        interOpNumThreads: 1,
        // Results of very different sizes come and go; an arena would keep the sum of them.
        enableCpuMemArena: false,
        logSeverityLevel: 3,
      }),
    );
  }
  const product = async (
    a: Float32Array,
    b: Float32Array,
    [m, n, k]: readonly [number, number, number],
    [transposeA, transposeB]: readonly [boolean, boolean],
  ): Promise<Float32Array> => {
    const session = sessions[(transposeA ? 1 : 0) + (transposeB ? 2 : 0)];
    if (!session) throw new Error('the gemm is closed');
    const result = await session.run({
      a: new Tensor('float32', a, transposeA ? [k, m] : [m, k]),
      b: new Tensor('float32', b, transposeB ? [n, k] : [k, n]),
    });
    return result['c']?.data as Float32Array;
  };
  const gemm: Gemm = async (a, b, m, n, k, { transposeA = false, transposeB = false } = {}) => {
    if (a.length !== m * k) throw new RangeError(`expected a of ${m} × ${k} = ${m * k} numbers, got ${a.length}`);
    if (b.length !== k * n) throw new RangeError(`expected b of ${k} × ${n} = ${k * n} numbers, got ${b.length}`);
    if (m === 0 || n === 0 || k === 0) return new Float32Array(m * n);
    if (m * n * k <= PIECE) return product(a, b, [m, n, k], [transposeA, transposeB]);
    if (!transposeA) {
      const c = new Float32Array(m * n);
      const rows = Math.max(1, Math.floor(PIECE / (n * k)));
      for (let at = 0; at < m; at += rows) {
        const count = Math.min(rows, m - at);
        c.set(await product(a.subarray(at * k, (at + count) * k), b, [count, n, k], [false, transposeB]), at * n);
      }
      return c;
    }
    if (transposeB) return product(a, b, [m, n, k], [true, true]);
    // Aᵀ·B: pieces along k are contiguous in both operands; their products are added up.
    const c = new Float32Array(m * n);
    const depth = Math.max(1, Math.floor(PIECE / (m * n)));
    for (let at = 0; at < k; at += depth) {
      const count = Math.min(depth, k - at);
      const part = await product(
        a.subarray(at * m, (at + count) * m),
        b.subarray(at * n, (at + count) * n),
        [m, n, count],
        [true, false],
      );
      for (let i = 0; i < c.length; i++) c[i] = c[i] + part[i];
    }
    return c;
  };
  return {
    gemm,
    close: async () => {
      for (const session of sessions.splice(0)) await session.release();
    },
  };
}

const matrix = (name: string, rows: string, columns: string) => ({
  name,
  type: { tensor_type: { elem_type: FLOAT, shape: { dim: [{ dim_param: rows }, { dim_param: columns }] } } },
});

/** One Gemm node; alpha and beta keep their default 1, C is absent. */
function gemmModel(transposeA: boolean, transposeB: boolean): Uint8Array {
  return encodeModel({
    ir_version: 8,
    producer_name: 'forewarn',
    opset_import: [{ domain: '', version: 17 }],
    functions: [],
    graph: {
      name: 'gemm',
      node: [
        {
          op_type: 'Gemm',
          name: 'gemm',
          input: ['a', 'b'],
          output: ['c'],
          attribute: [intAttribute('transA', transposeA ? 1 : 0), intAttribute('transB', transposeB ? 1 : 0)],
        },
      ],
      initializer: [],
      input: [
        matrix('a', transposeA ? 'k' : 'm', transposeA ? 'm' : 'k'),
        matrix('b', transposeB ? 'n' : 'k', transposeB ? 'k' : 'n'),
      ],
      output: [matrix('c', 'm', 'n')],
      value_info: [],
    },
  });
}
