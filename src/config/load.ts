import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { z } from 'zod';
import { UserError } from '../errors.ts';
import { type Config, configSchema, DEFAULTS } from './schema.ts';
import { explain, hideSecrets, readYaml, type YamlFile } from './yaml-text.ts';

export interface LoadedConfig {
  readonly path: string;
  /** Effective: defaults ← file ← flags; every path absolute. */
  readonly config: Config;
}

/** A flag given on the command line, by dotted key: `{'model.threads': 4}`. */
export type Flags = Readonly<Record<string, unknown>>;

type Plain = Record<string, unknown>;
const isPlain = (value: unknown): value is Plain =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Own keys only, so that `__proto__` in a file is a key like any other (and an unknown one). */
function merge(under: Plain, over: Plain): Plain {
  const out: Plain = Object.create(null) as Plain;
  for (const [key, value] of Object.entries(under)) out[key] = value;
  for (const [key, value] of Object.entries(over)) {
    const below = out[key];
    out[key] = isPlain(below) && isPlain(value) ? merge(below, value) : value;
  }
  return out;
}

/** Keys a strict object takes at a path, for "did you mean". */
function knownKeys(path: readonly PropertyKey[]): readonly string[] {
  let schema: unknown = configSchema;
  for (const key of path) {
    while (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) schema = schema.unwrap();
    if (schema instanceof z.ZodArray) schema = schema.element;
    else if (schema instanceof z.ZodObject) schema = (schema.shape as Record<string, unknown>)[String(key)];
    else return [];
  }
  while (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) schema = schema.unwrap();
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

/** Reads, merges and checks a configuration. @throws UserError (2) naming file, line and key path */
export async function loadConfig(path: string, flags: Flags = {}): Promise<LoadedConfig> {
  const file = await readYaml(path);
  let merged = merge(DEFAULTS, file.value as Plain);
  for (const [dotted, value] of Object.entries(flags)) {
    if (value === undefined) continue;
    const nested = dotted.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Plain;
    merged = merge(merged, nested);
  }
  const parsed = configSchema.safeParse(merged);
  if (!parsed.success) throw explain(parsed.error, file, merged, knownKeys);
  return { path, config: resolvePaths(parsed.data, file) };
}

function resolvePaths(config: Config, file: YamlFile): Config {
  const base = dirname(resolve(file.path));
  const fail = (key: string, expected: string, got: string, hint: string): never => {
    const line = file.lineOf(key.split('.'));
    throw new UserError(
      hideSecrets(`${file.path}${line === null ? '' : `:${line}`}: ${key}: expected ${expected}, got ${got}. ${hint}`),
    );
  };
  const local = (key: string, path: string): string => {
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path))
      fail(key, 'a local path', `an ${path.split('://')[0]} address`, 'Fetch the files first');
    if (path.includes('\0')) fail(key, 'a path', 'one with a NUL character', 'Correct it');
    return isAbsolute(path) ? path : resolve(base, path);
  };
  const list = (key: string, paths: string | readonly string[]): string[] =>
    (typeof paths === 'string' ? [paths] : paths).map((path) => local(key, path));
  const episodes = list('dataset.episodes', config.dataset.episodes);
  const output = isAbsolute(config.output)
    ? config.output
    : resolve(config.output === DEFAULTS.output ? '.' : base, config.output);
  for (const input of episodes) {
    const folder = /\.(parquet|jsonl|json|gz|ndjson)$|[*?[]/.test(input) ? dirname(input) : input;
    const inside = relative(folder, output);
    if (inside === '' || (!inside.startsWith('..') && !isAbsolute(inside) && inside.split(/[\\/]/).length <= 1)) {
      fail('output', 'a folder outside the folder of the data set', config.output, 'Choose another folder');
    }
  }
  for (const [index, layer] of (Array.isArray(config.capture.layers) ? config.capture.layers : []).entries()) {
    if ((config.capture.layers as number[]).indexOf(layer) !== index)
      fail('capture.layers', 'each layer once', `${layer} twice`, 'Remove one');
  }
  return {
    ...config,
    dataset: {
      ...config.dataset,
      episodes,
      scenarios: config.dataset.scenarios === null ? null : list('dataset.scenarios', config.dataset.scenarios),
      reportLabels:
        config.dataset.reportLabels === null ? null : list('dataset.reportLabels', config.dataset.reportLabels),
      tools: config.dataset.tools === null ? null : local('dataset.tools', config.dataset.tools),
      mapping: local('dataset.mapping', config.dataset.mapping),
    },
    model: { ...config.model, folder: local('model.folder', config.model.folder) },
    forecast: {
      ...config.forecast,
      external: config.forecast.external.map((item) => ({ ...item, file: local('forecast.external', item.file) })),
    },
    output,
  };
}
