import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { DataError } from '../errors.ts';

/** What the toolkit needs from a model's config.json (its text part). null = the file does not say. */
export interface ModelConfig {
  readonly modelType: string | null;
  readonly blocks: number | null;
  readonly width: number | null;
  readonly vocabularySize: number | null;
  readonly contextLimit: number | null;
  readonly headDim: number | null;
  readonly kvHeads: number | null;
  /** Gemma 4: full-attention layers have another head size and count. */
  readonly globalHeadDim: number | null;
  readonly globalKvHeads: number | null;
  readonly slidingWindow: number | null;
  readonly layerTypes: readonly string[] | null;
}

export const NO_CONFIG: ModelConfig = {
  modelType: null,
  blocks: null,
  width: null,
  vocabularySize: null,
  contextLimit: null,
  headDim: null,
  kvHeads: null,
  globalHeadDim: null,
  globalKvHeads: null,
  slidingWindow: null,
  layerTypes: null,
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** @throws DataError if the file is there but cannot be used; null if it is not there */
export async function readModelConfig(folder: string): Promise<ModelConfig | null> {
  let text: string | null = null;
  for (const place of [folder, path.dirname(folder)]) {
    text = await readFile(path.join(place, 'config.json'), 'utf8').catch(() => null);
    if (text !== null || path.basename(folder) !== 'onnx') break;
  }
  if (text === null) return null;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new DataError(
      `config.json: expected JSON, got ${(error as Error).message}. Fetch the model's config.json again.`,
    );
  }
  if (!isRecord(json)) throw new DataError('config.json: expected an object. Fetch the model’s config.json again.');
  const text_config = json['text_config'];
  const config: Readonly<Record<string, unknown>> = isRecord(text_config) ? text_config : json;
  const count = (...keys: readonly string[]): number | null => {
    for (const key of keys) {
      const value = config[key];
      if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
    }
    return null;
  };
  const width = count('hidden_size', 'n_embd', 'd_model', 'dim');
  const heads = count('num_attention_heads', 'n_head', 'num_heads', 'n_heads');
  const types = config['layer_types'];
  return {
    modelType: typeof config['model_type'] === 'string' ? config['model_type'] : null,
    blocks: count('num_hidden_layers', 'n_layer', 'num_layers', 'n_layers'),
    width,
    vocabularySize: count('vocab_size'),
    contextLimit: count('max_position_embeddings', 'n_positions', 'n_ctx', 'max_seq_len'),
    headDim: count('head_dim') ?? (width !== null && heads !== null ? Math.floor(width / heads) : null),
    kvHeads: count('num_key_value_heads', 'num_kv_heads') ?? heads,
    globalHeadDim: count('global_head_dim'),
    globalKvHeads: count('num_global_key_value_heads'),
    slidingWindow: count('sliding_window', 'sliding_window_size'),
    layerTypes: Array.isArray(types) && types.every((t) => typeof t === 'string') ? types : null,
  };
}
