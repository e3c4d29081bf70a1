import path from 'node:path';
import { InferenceSession, type Tensor } from 'onnxruntime-node';
import { DataError } from '../errors.ts';
import { allTensors, type ExternalFiles } from './graph/external-data.ts';
import { DATA_TYPES, encodeModel, type OnnxModel } from './graph/onnx-schema.ts';
import type { TensorData } from './tensors.ts';

export interface SessionOptions {
  readonly threads: number;
  readonly executionProvider: 'cpu' | 'cuda' | 'webgpu';
  readonly graphOptimization?: 'disabled' | 'basic' | 'extended' | 'all';
}

/** An ORT session of an edited graph. `run` blocks the event loop of its process until it is done. */
export interface Session {
  run(feeds: ReadonlyMap<string, TensorData>): Promise<ReadonlyMap<string, TensorData>>;
  close(): Promise<void>;
}

const TYPE_NUMBERS: ReadonlyMap<string, number> = new Map(
  Object.entries(DATA_TYPES).map(([number, { name }]) => [name, Number(number)]),
);

/**
 * Hands the edited graph to onnxruntime as bytes; external weights stay where they are and are mapped by the runtime.
 * @param model edited; locations of external data may be rewritten in place
 * @throws DataError with onnxruntime's reason
 */
export async function openSession(
  file: string,
  model: OnnxModel,
  external: ExternalFiles,
  options: SessionOptions,
): Promise<Session> {
  // Absolute: the way up from a relative folder has no end.
  const folder = externalFolder(path.resolve(path.dirname(file)), model, external);
  let session: InferenceSession;
  try {
    session = await InferenceSession.create(encodeModel(model), {
      executionProviders: [options.executionProvider],
      intraOpNumThreads: options.threads,
      interOpNumThreads: 1,
      graphOptimizationLevel: options.graphOptimization ?? 'all',
      logSeverityLevel: 3,
      extra: { session: { model_external_initializers_file_folder_path: folder } },
    });
  } catch (error) {
    const reason = (error as Error).message.replace(/\s+/g, ' ').trim();
    throw new DataError(
      `${path.basename(file)}: onnxruntime cannot load it on ${options.executionProvider}: ${reason}`,
      {
        cause: error,
      },
    );
  }
  return {
    run: async (feeds) => {
      const given: Record<string, Tensor> = {};
      for (const [name, t] of feeds) {
        // A plain object: `new Tensor('float16', …)` fails at run time on Node ≥ 23 (it holds a Float16Array there).
        const type = t.type === 11 ? 'float64' : DATA_TYPES[t.type]?.name;
        given[name] = { type, dims: t.dims, data: t.data, location: 'cpu' } as unknown as Tensor;
      }
      const results = await session.run(given);
      const out = new Map<string, TensorData>();
      for (const [name, tensor] of Object.entries(results)) {
        const data = tensor.data as TensorData['data'];
        out.set(name, {
          type: TYPE_NUMBERS.get(tensor.type) ?? 0,
          dims: tensor.dims,
          // Float16Array on Node ≥ 23
          data: tensor.type === 'float16' ? new Uint16Array(data.buffer, data.byteOffset, data.length) : data,
        });
      }
      return out;
    },
    close: () => session.release(),
  };
}

/**
 * The folder that locations are relative to. In a Hugging Face cache the weights are links into `blobs/`, and onnxruntime
 * refuses links that leave its folder: then it is the nearest common ancestor, with locations rewritten to the real files.
 */
function externalFolder(folder: string, model: OnnxModel, external: ExternalFiles): string {
  const outside = [...external.files.values()].some((real) => path.relative(folder, real).startsWith('..'));
  if (!outside) return folder;
  let root = folder;
  while ([...external.files.values()].some((real) => path.relative(root, real).startsWith('..')))
    root = path.dirname(root);
  for (const tensor of allTensors(model.graph)) {
    for (const entry of tensor.data_location === 1 ? (tensor.external_data ?? []) : []) {
      const real = entry.key === 'location' ? external.files.get(entry.value) : undefined;
      if (real !== undefined) entry.value = path.relative(root, real).split(path.sep).join('/');
    }
  }
  return root;
}
