import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { Gemm, Gemm64 } from '../types.ts';
import { encodeModel, FLOAT, intAttribute } from './graph/onnx-schema.ts';

/**
 * Matrix products on onnxruntime's CPU kernels, in this process: operands are read where they lie (no copy in; the result
 * is one fresh array). A product blocks the event loop while it runs, so large ones are cut into pieces of about
 * {@link PIECE} multiplications, between which signals and timers are served.
 */
const PIECE = 2e10;

/** Element type of ONNX for doubles. */
const DOUBLE = 11;

/**
 * @param options.threads intra-op threads; the same number gives the same bytes
 * @returns `gemm64`: the same products in double precision (its sessions are made when it is first called)
 * @throws RangeError from the returned functions when an operand's length does not match its shape
 */
export async function createGemm(options: {
  readonly threads: number;
}): Promise<{ readonly gemm: Gemm; readonly gemm64: Gemm64; readonly close: () => Promise<void> }> {
  const single = await openSessions(FLOAT, options.threads);
  let double: Promise<InferenceSession[]> | null = null;
  const gemm: Gemm = pieces<Float32Array>(Float32Array, 'float32', () => single);
  const gemm64: Gemm64 = pieces<Float64Array>(
    Float64Array,
    'float64',
    () => (double ??= openSessions(DOUBLE, options.threads)),
  );
  return {
    gemm,
    gemm64,
    close: async () => {
      for (const session of single.splice(0)) await session.release();
      for (const session of (await double)?.splice(0) ?? []) await session.release();
    },
  };
}

/** One session per combination of transposes. */
async function openSessions(elementType: number, threads: number): Promise<InferenceSession[]> {
  const sessions: InferenceSession[] = [];
  for (let kind = 0; kind < 4; kind++) {
    sessions.push(
      await InferenceSession.create(gemmModel(elementType, (kind & 1) > 0, (kind & 2) > 0), {
        executionProviders: ['cpu'],
        intraOpNumThreads: threads,
        interOpNumThreads: 1,
        // Results of very different sizes come and go; an arena would keep the sum of them.
        enableCpuMemArena: false,
        logSeverityLevel: 3,
      }),
    );
  }
  return sessions;
}

/** A product that is cut into pieces along rows or depth where it is large. */
function pieces<A extends Float32Array | Float64Array>(
  ArrayOf: new (length: number) => A,
  type: 'float32' | 'float64',
  open: () => InferenceSession[] | Promise<InferenceSession[]>,
) {
  const product = async (
    a: A,
    b: A,
    [m, n, k]: readonly [number, number, number],
    [transposeA, transposeB]: readonly [boolean, boolean],
  ): Promise<A> => {
    const session = (await open())[(transposeA ? 1 : 0) + (transposeB ? 2 : 0)];
    if (!session) throw new Error('the gemm is closed');
    const result = await session.run({
      a: new Tensor(type, a, transposeA ? [k, m] : [m, k]),
      b: new Tensor(type, b, transposeB ? [n, k] : [k, n]),
    });
    return result['c']?.data as A;
  };
  return async (
    a: A,
    b: A,
    m: number,
    n: number,
    k: number,
    { transposeA = false, transposeB = false }: { readonly transposeA?: boolean; readonly transposeB?: boolean } = {},
  ): Promise<A> => {
    if (a.length !== m * k) throw new RangeError(`expected a of ${m} × ${k} = ${m * k} numbers, got ${a.length}`);
    if (b.length !== k * n) throw new RangeError(`expected b of ${k} × ${n} = ${k * n} numbers, got ${b.length}`);
    if (m === 0 || n === 0 || k === 0) return new ArrayOf(m * n);
    if (m * n * k <= PIECE) return product(a, b, [m, n, k], [transposeA, transposeB]);
    if (!transposeA) {
      const c = new ArrayOf(m * n);
      const rows = Math.max(1, Math.floor(PIECE / (n * k)));
      for (let at = 0; at < m; at += rows) {
        const count = Math.min(rows, m - at);
        const part = a.subarray(at * k, (at + count) * k) as A;
        c.set(await product(part, b, [count, n, k], [false, transposeB]), at * n);
      }
      return c;
    }
    if (transposeB) return product(a, b, [m, n, k], [true, true]);
    // Aᵀ·B: pieces along k are contiguous in both operands; their products are added up.
    const c = new ArrayOf(m * n);
    const depth = Math.max(1, Math.floor(PIECE / (m * n)));
    for (let at = 0; at < k; at += depth) {
      const count = Math.min(depth, k - at);
      const part = await product(
        a.subarray(at * m, (at + count) * m) as A,
        b.subarray(at * n, (at + count) * n) as A,
        [m, n, count],
        [true, false],
      );
      for (let i = 0; i < c.length; i++) c[i] = c[i] + part[i];
    }
    return c;
  };
}

const matrix = (elementType: number, name: string, rows: string, columns: string) => ({
  name,
  type: { tensor_type: { elem_type: elementType, shape: { dim: [{ dim_param: rows }, { dim_param: columns }] } } },
});

/** One Gemm node; alpha and beta keep their default 1, C is absent. */
function gemmModel(elementType: number, transposeA: boolean, transposeB: boolean): Uint8Array {
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
        matrix(elementType, 'a', transposeA ? 'k' : 'm', transposeA ? 'm' : 'k'),
        matrix(elementType, 'b', transposeB ? 'n' : 'k', transposeB ? 'k' : 'n'),
      ],
      output: [matrix(elementType, 'c', 'm', 'n')],
      value_info: [],
    },
  });
}
