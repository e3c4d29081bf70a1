import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { DataError } from '../../errors.ts';

/** Suffix of `model<suffix>.onnx` for a dtype, as transformers.js names the files of the hub. */
const suffixOf = (dtype: string): string => (dtype === 'fp32' ? '' : dtype === 'q8' ? '_quantized' : `_${dtype}`);

/** Names of a decoder, the plain one first. `decoder_model_merged` is the decoder of a folder that keeps its embeddings apart. */
const DECODERS: readonly string[] = ['model', 'decoder_model_merged'];

/**
 * The embedding graph of a decoder that is a file of its own (`embed_tokens<suffix>.onnx` beside it), or null. A folder
 * without one of the decoder's dtype may have the plain one.
 */
export async function findEmbeddings(decoder: string): Promise<string | null> {
  const folder = path.dirname(decoder);
  const suffix = /(?:^model|_merged)(_[a-z0-9]+)?\.onnx$/.exec(path.basename(decoder))?.[1] ?? '';
  for (const name of [`embed_tokens${suffix}.onnx`, 'embed_tokens.onnx']) {
    const file = path.join(folder, name);
    if (await stat(file).catch(() => null)) return file;
  }
  return null;
}

/** Every .onnx file of a model folder, by its path in it; those of `onnx/` too. */
export async function listGraphs(folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const place of ['', 'onnx']) {
    for (const name of await readdir(path.join(folder, place)).catch(() => [])) {
      if (name.endsWith('.onnx')) found.push(path.posix.join(place, name));
    }
  }
  return found.sort();
}

/**
 * The decoder of a model folder.
 * @param folder a model folder (`model.onnx` or `onnx/model….onnx` in it), or a .onnx file
 * @param dtype picks `model_<dtype>.onnx` where a folder has several
 * @throws DataError when there is none, or several and no dtype that picks one
 */
export async function findGraphFile(folder: string, dtype: string | undefined): Promise<string> {
  const info = await stat(folder).catch(() => null);
  if (!info) throw new DataError(`${folder}: expected a model folder, got no such file or directory.`);
  if (info.isFile()) return folder;
  const label = path.basename(folder);
  if (label.endsWith('.onnx')) throw new DataError(`${label}: expected a file, got a directory.`);
  const found = await listGraphs(folder);
  if (found.length === 0) {
    throw new DataError(
      `${label}: expected a .onnx file in the model folder or in onnx/, got none. Export the model to ONNX.`,
    );
  }
  const names = DECODERS.map((base) => `${base}${dtype === undefined ? '' : suffixOf(dtype)}.onnx`);
  const wanted =
    names.flatMap((name) => [name, `onnx/${name}`]).find((name) => found.includes(name)) ??
    (dtype === undefined && found.length === 1 ? found[0] : undefined);
  if (wanted === undefined) {
    throw new DataError(
      `${label}: expected ${dtype === undefined ? 'one .onnx file or a dtype that picks one' : `a file for dtype ${dtype}`}, got ${found.join(', ')}. Set model.dtype.`,
    );
  }
  const file = path.join(folder, wanted);
  if (!(await stat(file)).isFile()) throw new DataError(`${wanted}: expected a file, got a directory.`);
  return file;
}
