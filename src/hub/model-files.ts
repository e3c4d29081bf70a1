/** Weights of other frameworks: never read here, and most of the size of a repository. */
const OTHER_WEIGHTS = /\.(?:safetensors|bin|pt|pth|ckpt|h5|msgpack|gguf|tflite|mlmodel|ot)$/i;
const GRAPH = /(?:^|\/)(?:model|decoder_model_merged|embed_tokens)((?:_[a-z0-9]+)?)\.onnx(?:[._]data(?:_\d+)?)?$/;

/**
 * The files of a model repository that a run needs: one graph with its weights, tokenizer, template and configuration.
 * @param dtype as `model.dtype`; null = the graph without a suffix
 */
export function isModelFile(path: string, dtype: string | null): boolean {
  if (OTHER_WEIGHTS.test(path)) return false;
  if (!/\.onnx/.test(path)) return !path.includes('/') || /^onnx\/[^/]+\.json$/.test(path);
  const suffix = GRAPH.exec(path)?.[1];
  if (suffix === undefined) return false;
  const wanted = dtype === null || dtype === 'fp32' ? '' : dtype === 'q8' ? '_quantized' : `_${dtype}`;
  return suffix === wanted;
}
