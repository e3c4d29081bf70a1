import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { z } from 'zod';
import { UserError } from '../errors.ts';
import { explain } from './explain.ts';
import { type Config, configSchema, DEFAULTS } from './schema.ts';
import { hideSecrets, readYaml, type YamlFile } from './yaml-text.ts';

export interface LoadedConfig {
  readonly path: string;
  /** Effective: defaults ← file ← flags; every path absolute. */
  readonly config: Config;
}

/** Flags given on the command line, by dotted key: `{'model.threads': 4}`. undefined = not given. */
export type Flags = Readonly<Record<string, unknown>>;

type Plain = Record<string, unknown>;
const isPlain = (value: unknown): value is Plain =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Own keys only, so that `__proto__` in a file is a key like any other (and an unknown one). */
function merge(under: Readonly<Plain>, over: Readonly<Plain>): Plain {
  const out: Plain = Object.create(null) as Plain;
  for (const [key, value] of Object.entries(under)) out[key] = value;
  for (const [key, value] of Object.entries(over)) {
    const below = out[key];
    out[key] = isPlain(below) && isPlain(value) ? merge(below, value) : value;
  }
  return out;
}

/** The schema below optional and nullable wrappers. */
function unwrap(schema: unknown): unknown {
  return schema instanceof z.ZodNullable || schema instanceof z.ZodOptional ? unwrap(schema.unwrap()) : schema;
}

/** Keys a strict object takes at a path, for "did you mean". */
function knownKeys(path: readonly PropertyKey[]): readonly string[] {
  let schema: unknown = configSchema;
  for (const key of path) {
    schema = unwrap(schema);
    if (schema instanceof z.ZodArray) schema = schema.element;
    else if (schema instanceof z.ZodObject) schema = schema.shape[String(key)];
    else return [];
  }
  schema = unwrap(schema);
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

/** Reads, merges and checks a configuration. @throws UserError (2) naming file, line and key path, or the flag */
export async function loadConfig(path: string, flags: Flags = {}): Promise<LoadedConfig> {
  const file = await readYaml(path);
  const given = Object.entries(flags).filter(([, value]) => value !== undefined);
  let merged = merge(DEFAULTS, file.value);
  for (const [dotted, value] of given)
    merged = merge(merged, dotted.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Plain);
  const isFlag = (keys: readonly PropertyKey[]): boolean =>
    given.some(([dotted]) => `${keys.map(String).join('.')}.`.startsWith(`${dotted}.`));
  const parsed = configSchema.safeParse(merged);
  if (!parsed.success) throw explain(parsed.error, { file, value: merged, known: knownKeys, isFlag });
  return { path, config: resolvePaths(parsed.data, new Resolver(file, isFlag)) };
}

/** What may be an address of the hub (hf://datasets/OWNER/NAME@REV, hf://OWNER/NAME@REV). */
const HUB_KEYS: ReadonlySet<string> = new Set([
  'dataset.episodes',
  'dataset.scenarios',
  'dataset.reportLabels',
  'dataset.tools',
  'model.folder',
]);

/** Resolves paths of a configuration: relative to its file, or to the current folder for flags and defaults. */
class Resolver {
  readonly #file: YamlFile;
  readonly #isFlag: (keys: readonly PropertyKey[]) => boolean;

  constructor(file: YamlFile, isFlag: (keys: readonly PropertyKey[]) => boolean) {
    this.#file = file;
    this.#isFlag = isFlag;
  }

  fail(key: string, expected: string, got: string, hint: string): never {
    const keys = key.split('.');
    const line = this.#file.lineOf(keys);
    const where = this.#isFlag(keys) ? 'command line' : `${this.#file.path}${line === null ? '' : `:${line}`}`;
    throw new UserError(hideSecrets(`${where}: ${key}: expected ${expected}, got ${got}. ${hint}`));
  }

  path(key: string, path: string): string {
    const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(path)?.[1];
    // Addresses of the hub stay as they are; what they stand for is fetched when a run is opened.
    if (scheme?.toLowerCase() === 'hf' && HUB_KEYS.has(key)) return path;
    if (scheme !== undefined)
      this.fail(
        key,
        HUB_KEYS.has(key) ? 'a local path or an hf:// address' : 'a local path',
        `a ${scheme} address`,
        'Fetch the files first',
      );
    if (path.includes('\0')) this.fail(key, 'a path', 'one with a NUL character', 'Correct it');
    if (/^~[\\/]/.test(path)) this.fail(key, 'a path without ~', path, 'Write the folder out');
    const fromFile = !this.#isFlag(key.split('.')) && isInFile(this.#file, key);
    return resolve(fromFile ? dirname(resolve(this.#file.path)) : '.', path);
  }

  paths(key: string, paths: string | readonly string[]): string[] {
    return (typeof paths === 'string' ? [paths] : paths).map((path) => this.path(key, path));
  }
}

function isInFile(file: YamlFile, key: string): boolean {
  let node: unknown = file.value;
  for (const part of key.split('.')) node = isPlain(node) && Object.hasOwn(node, part) ? node[part] : undefined;
  return node !== undefined;
}

const DATA_FILE = /\.(?:parquet|jsonl|ndjson|json|gz)$/i;

/** A run must not be written where the next reading of the data set would find it. */
function checkOutput(output: string, inputs: readonly string[], written: string, to: Resolver): void {
  for (const input of inputs) {
    if (/^hf:/i.test(input)) continue;
    const isFile = DATA_FILE.test(input) && !/[*?[]/.test(input);
    const glob = input.search(/[*?[]/);
    const folder = isFile ? dirname(input) : glob < 0 ? input : dirname(`${input.slice(0, glob)}x`);
    const inside = relative(folder, output);
    const within = !isAbsolute(inside) && !/^\.\.(?:[\\/]|$)/.test(inside);
    if (inside === '' || output === input || (within && !isFile))
      to.fail('output', 'a folder outside the folder of the data set', written, 'Choose another folder');
  }
}

function resolvePaths(config: Config, to: Resolver): Config {
  const { dataset, model, forecast } = config;
  const episodes = to.paths('dataset.episodes', dataset.episodes);
  const output = to.path('output', config.output);
  const optional = (key: string, paths: string | readonly string[] | null): string[] | null =>
    paths === null ? null : to.paths(key, paths);
  checkOutput(output, episodes, config.output, to);
  return {
    ...config,
    dataset: {
      ...dataset,
      episodes,
      scenarios: optional('dataset.scenarios', dataset.scenarios),
      reportLabels: optional('dataset.reportLabels', dataset.reportLabels),
      tools: dataset.tools === null ? null : to.path('dataset.tools', dataset.tools),
      mapping: to.path('dataset.mapping', dataset.mapping),
    },
    model: { ...model, folder: to.path('model.folder', model.folder) },
    forecast: {
      ...forecast,
      external: forecast.external.map((item) => ({ ...item, file: to.path('forecast.external', item.file) })),
    },
    output,
  };
}
