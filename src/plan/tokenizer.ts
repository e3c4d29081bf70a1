import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Tokenizer as HubTokenizer } from '@huggingface/tokenizers';
import { DataError } from '../errors.ts';
import { sha256 } from '../lib/content-hash.ts';
import type { Tokenizer } from '../types.ts';
import { alignedNormaliser, type Normalise, normalised, type NormalizerJson } from './normalise.ts';
import { specialTokensOf } from './special-tokens.ts';

export interface OpenTokenizer extends Tokenizer {
  /** sha256 of tokenizer.json as it lies on disk (after gunzip). */
  readonly sha256: string;
  /** Text as text, also where it reads like a control token. */
  encodeOrdinary(text: string): Int32Array;
  /** Id of a token by its exact text, null where there is none. */
  idOf(token: string): number | null;
  /** Text as the vocabulary spells it, with where it came from; control tokens stay as they are. */
  readonly normalise: Normalise;
  /** Bytes that no token stands for. */
  readonly lostBytes: ReadonlySet<number>;
  /** Variables of the template: bos_token, eos_token … */
  readonly specialTokens: Readonly<Record<string, unknown>>;
}

const MODELS = ['BPE', 'WordPiece', 'Unigram', 'WordLevel'];

interface TokenizerJson {
  readonly model?: { readonly type?: string; readonly vocab?: unknown };
  readonly added_tokens?: readonly { readonly id: number; readonly content: string }[];
  readonly normalizer?: NormalizerJson | null;
  readonly decoder?: { readonly type?: string; readonly decoders?: readonly { readonly type?: string }[] } | null;
}

async function readText(folder: string, name: string): Promise<string | null> {
  const plain = join(folder, name);
  if (existsSync(plain)) return readFile(plain, 'utf8');
  if (existsSync(`${plain}.gz`)) return gunzipSync(await readFile(`${plain}.gz`)).toString('utf8');
  return null;
}

function parse(path: string, text: string): unknown {
  if (text.startsWith('version https://git-lfs'))
    throw new DataError(`${path}: expected JSON, got a Git LFS pointer. Run git lfs pull`);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new DataError(
      `${path}: expected complete JSON, got ${(error as Error).message} (end of file?). Fetch the file again`,
      { cause: error },
    );
  }
}

/** GPT-2's printable stand-ins for bytes: byte-level vocabularies are written in them. */
function byteDecoder(): ReadonlyMap<string, number> {
  const bytes = [...range(0x21, 0x7e), ...range(0xa1, 0xac), ...range(0xae, 0xff)];
  const chars = [...bytes];
  let extra = 0;
  for (let byte = 0; byte < 256; byte += 1) {
    if (bytes.includes(byte)) continue;
    bytes.push(byte);
    chars.push(256 + extra);
    extra += 1;
  }
  return new Map(chars.map((code, index) => [String.fromCharCode(code), bytes[index]]));
}
function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

function bytesWithoutToken(
  decoder: ReadonlyMap<string, number>,
  ids: ReadonlyMap<string, number>,
): ReadonlySet<number> {
  return new Set(Array.from(decoder, ([char, byte]) => (ids.has(char) ? -1 : byte)).filter((byte) => byte >= 0));
}

/** Texts between control tokens repeat across turns and episodes (system prompt, tools); this many characters are kept. */
const CACHE_CHARACTERS = 8 << 20;

/**
 * The tokenizer of a model folder (tokenizer.json, or .gz, and tokenizer_config.json). Ids are those of Python's
 * `tokenizers` with `add_special_tokens=False`; control tokens written in the text are encoded as such.
 * @param vocabulary rows of the model's embedding, to refuse a tokenizer of another model; null = unknown
 * @throws DataError (65)
 */
export async function openTokenizer(folder: string, vocabulary: number | null = null): Promise<OpenTokenizer> {
  const path = join(folder, 'tokenizer.json');
  const text = await readText(folder, 'tokenizer.json');
  if (text === null)
    throw new DataError(
      `${path}: expected a tokenizer, got nothing there. Put the model's tokenizer.json into the folder`,
    );
  const json = parse(path, text) as TokenizerJson;
  if (json.model === undefined || json.model === null)
    throw new DataError(
      `${path}: model: expected it to be present, got a tokenizer without one (missing). Fetch the file again`,
    );
  if (!MODELS.includes(json.model.type ?? 'BPE'))
    throw new DataError(
      `${path}: model.type: expected ${MODELS.join(', ')}, got ${json.model.type}. This tokenizer is not supported`,
    );
  const configText = await readText(folder, 'tokenizer_config.json');
  const config =
    configText === null ? {} : (parse(join(folder, 'tokenizer_config.json'), configText) as Record<string, unknown>);
  const mapText =
    config['added_tokens_decoder'] === undefined ? await readText(folder, 'special_tokens_map.json') : null;
  const specialMap =
    mapText === null ? {} : (parse(join(folder, 'special_tokens_map.json'), mapText) as Record<string, unknown>);
  const hub = new HubTokenizer(json, config);
  const tokens = new Map<number, string>();
  for (const [token, id] of hub.get_vocab(true)) tokens.set(id, token);
  let most = 0;
  for (const id of tokens.keys()) if (id > most) most = id;
  if (vocabulary !== null && most >= vocabulary) {
    throw new DataError(
      `${path}: expected ids below the vocabulary of the model (${vocabulary}), got ids up to ${most}. Is this the tokenizer of another model?`,
    );
  }
  const added = new Map<number, string>((json.added_tokens ?? []).map((token) => [token.id, token.content]));
  const byteLevel =
    json.decoder?.type === 'ByteLevel' || (json.decoder?.decoders ?? []).some((item) => item.type === 'ByteLevel');
  const decoder = byteDecoder();
  const encoder = new TextEncoder();
  const splitter =
    added.size === 0
      ? null
      : new RegExp(
          `(${[...added.values()]
            .sort((a, b) => b.length - a.length)
            .map((token) => token.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
            .join('|')})`,
        );
  const idByToken = new Map(Array.from(tokens, ([id, token]) => [token, id]));

  let cache = new Map<string, Int32Array>();
  let cached = 0;
  // Cuts at control tokens are exact (8,179 of 8,179 measured), so pieces between them are encoded once.
  const encodePiece = (piece: string): Int32Array => {
    const known = cache.get(piece);
    if (known) return known;
    const ids = Int32Array.from(hub.encode(piece, { add_special_tokens: false }).ids);
    if (cached > CACHE_CHARACTERS) {
      cache = new Map();
      cached = 0;
    }
    cache.set(piece, ids);
    cached += piece.length;
    return ids;
  };
  const tokenBytes = (id: number): Uint8Array => {
    const special = added.get(id);
    if (special !== undefined) return encoder.encode(byteLevel ? special : special.replaceAll('\u2581', ' '));
    const token = tokens.get(id);
    if (token === undefined) return new Uint8Array(0);
    if (byteLevel) return Uint8Array.from(token, (char) => decoder.get(char) ?? 0x3f);
    const byte = /^<0x([0-9A-F]{2})>$/.exec(token);
    if (byte) return Uint8Array.of(Number.parseInt(byte[1], 16));
    return encoder.encode(token.replaceAll('\u2581', ' '));
  };
  // Made on first use: only few logs hold text that reads like a control token.
  let encodeBare: ((text: string) => Int32Array) | null = null;
  const eosIds = new Set<number>();
  for (const name of ['eos_token']) {
    const value = config[name];
    const content =
      typeof value === 'string'
        ? value
        : value !== null && typeof value === 'object' && 'content' in value
          ? String(value.content)
          : null;
    const id = content === null ? undefined : idByToken.get(content);
    if (id !== undefined) eosIds.add(id);
  }
  return {
    sha256: sha256(text),
    vocabularySize: most + 1,
    eosIds: [...eosIds],
    specialTokens: specialTokensOf(config, specialMap),
    normalise: (input) => normalised(input, splitter, alignedNormaliser(json.normalizer), byteLevel),
    lostBytes: byteLevel ? bytesWithoutToken(decoder, idByToken) : new Set(),
    encode(input) {
      // Lone surrogates have no bytes; every tokenizer reads them as U+FFFD.
      const pieces = splitter === null ? [input.toWellFormed()] : input.toWellFormed().split(splitter);
      const parts: Int32Array[] = [];
      let length = 0;
      for (const piece of pieces) {
        if (piece === '') continue;
        const part = encodePiece(piece);
        parts.push(part);
        length += part.length;
      }
      const out = new Int32Array(length);
      let at = 0;
      for (const part of parts) {
        out.set(part, at);
        at += part.length;
      }
      return out;
    },
    decode: (ids) => hub.decode(Array.from(ids), { skip_special_tokens: false, clean_up_tokenization_spaces: false }),
    tokenBytes,
    encodeOrdinary(input) {
      const clean = input.toWellFormed();
      if (splitter === null || clean.split(splitter).length === 1) return encodePiece(clean);
      if (encodeBare === null) {
        const bare = new HubTokenizer({ ...json, added_tokens: [] }, config);
        encodeBare = (piece) => Int32Array.from(bare.encode(piece, { add_special_tokens: false }).ids);
      }
      return encodeBare(clean);
    },
    idOf: (token) => idByToken.get(token) ?? null,
  };
}
