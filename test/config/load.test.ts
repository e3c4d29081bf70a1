import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Flags, loadConfig } from '../../src/config/load.ts';
import { type Config, configSchema, DEFAULTS } from '../../src/config/schema.ts';
import { UserError } from '../../src/errors.ts';
import { POLICIES } from '../../src/intervention/policies.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

const folder = temporaryFolder('config');
const path = join(folder, 'test.yaml');
const MINIMAL = `name: test
dataset:
  episodes: data/episodes.parquet
  mapping: cape.yaml
model: { folder: models/tiny }
`;

async function load(text: string, flags: Flags = {}): Promise<Config> {
  writeFileSync(path, text);
  return (await loadConfig(path, flags)).config;
}
/** The message of the refusal, with the file's folder left out. */
async function refusal(text: string, flags: Flags = {}): Promise<string> {
  const error: unknown = await load(text, flags).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UserError);
  const { message } = error as UserError;
  expect(message.split('\n')).toHaveLength(1);
  return message.replaceAll(`${folder}/`, '');
}

describe('an effective configuration', () => {
  it('has the defaults where the file says nothing', async () => {
    const config = await load(MINIMAL);
    expect(config).toMatchObject({ seed: DEFAULTS.seed, train: DEFAULTS.train, capture: DEFAULTS.capture });
    expect(configSchema.safeParse(config).success).toBe(true);
  });

  it('takes the file over the defaults, key by key, and a list whole', async () => {
    const config = await load(`${MINIMAL}train: { folds: 3, C: [1] }\nreplay: { context: { policy: skip } }\n`);
    expect(config.train).toEqual({ ...DEFAULTS.train, folds: 3, C: [1] });
    expect(config.replay.context).toEqual({ limit: null, policy: 'skip' });
  });

  it('takes flags over the file, and only those that were given', async () => {
    const text = `${MINIMAL}seed: 3\ntrain: { folds: 3 }\n`;
    expect(await load(text, { seed: 9, 'train.folds': undefined })).toMatchObject({ seed: 9, train: { folds: 3 } });
    expect((await load(text, { 'model.threads': 1 })).model).toMatchObject({ threads: 1, chunk: DEFAULTS.model.chunk });
  });

  it('has absolute paths: of the file from its folder, of flags and defaults from here', async () => {
    const config = await load(`${MINIMAL}output: runs\n`);
    expect(config.dataset).toMatchObject({
      episodes: [join(folder, 'data/episodes.parquet')],
      mapping: join(folder, 'cape.yaml'),
    });
    expect(config.model.folder).toBe(join(folder, 'models/tiny'));
    expect(config.output).toBe(join(folder, 'runs'));
    expect((await load(MINIMAL)).output).toBe(resolve('results'));
    expect((await load(`${MINIMAL}output: results\n`)).output).toBe(join(folder, 'results'));
    expect((await load(`${MINIMAL}output: runs\n`, { output: 'elsewhere' })).output).toBe(resolve('elsewhere'));
    expect((await load(MINIMAL, { 'model.folder': '/models/other' })).model.folder).toBe('/models/other');
  });

  it('reads a byte order mark and CRLF, and text that other readers take for truth values', async () => {
    const config = await load(`\ufeff${MINIMAL.replaceAll('\n', '\r\n')}`);
    expect(config.name).toBe('test');
    const where = (
      await load(
        `${MINIMAL}  # country\n`.replace(
          '  mapping',
          '  where: { country: [no, on, 12:30:45], run: "012" }\n  mapping',
        ),
      )
    ).dataset.where;
    expect(where).toEqual({ country: ['no', 'on', '12:30:45'], run: '012' });
  });
});

describe('refusals name the place, the key, what was expected and what was got', () => {
  const cases: [string, string, RegExp][] = [
    [
      'an unknown key',
      'trian: { folds: 3 }\n',
      /^test\.yaml:6: trian: expected one of .*, got the unknown key "trian"\. Did you mean train\?$/,
    ],
    [
      'an unknown key inside',
      'train:\n  folds: 3\n  inerFolds: 2\n',
      /^test\.yaml:8: train\.inerFolds: .*Did you mean innerFolds\?/,
    ],
    [
      'an unknown key in a list',
      'landmarks:\n  - { anchor: reveal, ofset: 1, position: pre_action }\n',
      /^test\.yaml:7: landmarks\.0\.ofset: .*Did you mean offset\?/,
    ],
    ['an unknown key in a nullable part', 'dataset:\n', /the key "dataset" twice/],
    ['a wrong type', 'train: { folds: five }\n', /^test\.yaml:6: train\.folds: expected .*, got the text "five"/],
    ['a number as text', 'seed: "7"\n', /^test\.yaml:6: seed: expected .*number.*, got the text "7"/],
    ['a fraction', 'seed: 7.5\n', /^test\.yaml:6: seed: expected int.*, got 7\.5/],
    [
      'a number that is rounded when read',
      'seed: 12345678901234567890\n',
      /seed: expected .*, got 12345678901234567890\./,
    ],
    ['infinity', 'train: { C: .inf }\n', /^test\.yaml:6: train\.C: expected .*, got \.inf/],
    ['NaN', 'train: { tolerance: .nan }\n', /train\.tolerance: expected .*, got \.nan/],
    ['zero where it is not allowed', 'train: { C: 0 }\n', /train\.C: expected number >0, got 0\. Correct/],
    [
      'a word that is no choice',
      'replay: { role: observer }\n',
      /replay\.role: expected .*"agent"\|"reader", got the text "observer"/,
    ],
    [
      'a value of neither type',
      'capture: { layers: some }\n',
      /capture\.layers: expected "all" or object or array, got the text "some"/,
    ],
    ['an item of a list', 'capture:\n  layers: [1, 2, -3]\n', /^test\.yaml:7: capture\.layers\.2: expected .*, got -3/],
    ['an empty list', 'forecast: { alphas: [] }\n', /forecast\.alphas: expected array of >=1 items, got \[\]/],
    ['an item twice', 'capture: { layers: [4, 8, 4] }\n', /capture\.layers\.2: expected each layer once/],
    ['a position twice', 'capture: { positions: [prompt_end, pre_action, prompt_end] }\n', /each position once/],
    [
      'a position that is none',
      'capture: { positions: [prompt_end, pre_acton] }\n',
      /capture\.positions\.1: expected prompt_end, .*, got the text "pre_acton"/,
    ],
    [
      'a target that is none',
      'forecast: { targets: [report_lie] }\n',
      /forecast\.targets\.0: expected first_unsafe_event, .*, got the text "report_lie"/,
    ],
    [
      'a landmark that is not captured',
      'capture: { positions: [prompt_end] }\n',
      /landmarks\.1\.position: expected one of capture\.positions \(prompt_end\), got the text "pre_action"/,
    ],
    [
      'tools from a file that is not named',
      'replay: { tools: file }\n',
      /dataset\.tools: expected a JSON file .*, got null/,
    ],
    [
      'a date that is none',
      'replay: { date: 2026-13-01 }\n',
      /replay\.date: expected a date as YYYY-MM-DD, got the text "2026-13-01"/,
    ],
    ['a name that is no folder', 'name_: 1\n', /unknown key "name_"/],
    [
      'a value that is no JSON',
      'replay: { templateKwargs: { x: .nan } }\n',
      /replay\.templateKwargs\.x: expected .*, got \.nan/,
    ],
    [
      'an octal number',
      'capture: { layers: [010] }\n',
      /^test\.yaml:6: expected plain decimal numbers, got 010 in capture\.layers/,
    ],
    ['a merge key', 'train: { <<: { folds: 3 } }\n', /unknown key "<<"/],
    ['a key of objects', 'train: { __proto__: { folds: 3 } }\n', /unknown key "__proto__"/],
    [
      'an address as output',
      'output: s3://bucket/key\n',
      /^test\.yaml:6: output: expected a local path, got a s3 address\. Fetch/,
    ],
    ['a home folder', 'output: ~/runs\n', /output: expected a path without ~, got ~\/runs/],
  ];
  for (const [what, lines, message] of cases) {
    it(what, async () => expect(await refusal(MINIMAL + lines)).toMatch(message));
  }

  it('a key that has to be there', async () => {
    expect(await refusal(MINIMAL.replace('  mapping: cape.yaml\n', ''))).toMatch(
      /^test\.yaml:\d+: dataset\.mapping: expected string \(the key is missing\), got nothing/,
    );
    expect(await refusal('name: test\n')).toMatch(/dataset\.\w+: expected .*the key is missing/);
  });

  it('a flag, not a line of the file that it overrides', async () => {
    expect(await refusal(`${MINIMAL}train: { folds: 3 }\n`, { 'train.folds': 1 })).toMatch(
      /^command line: train\.folds: expected number >=2, got 1\. /,
    );
    expect(await refusal(MINIMAL, { 'model.threads': 'many' })).toMatch(/^command line: model\.threads: .*"many"/);
    expect(await refusal(MINIMAL, { 'model.thread': 1 })).toMatch(
      /^command line: model\.thread: .*Did you mean threads\?/,
    );
    expect(await refusal(MINIMAL, { output: 'https://x' })).toMatch(/^command line: output: /);
  });

  it('a file that is not there, or is a folder', async () => {
    await expect(loadConfig(join(folder, 'none.yaml'))).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('ENOENT') as string,
    });
    await expect(loadConfig(folder)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining('EISDIR') as string,
    });
  });

  it('without the password or token of an address', async () => {
    const text = MINIMAL.replace('data/episodes.parquet', 'https://user:hunter2@host/x?token=abc123');
    expect(await refusal(text)).toMatch(/dataset\.episodes: expected a local path/);
    expect(await refusal(text)).not.toMatch(/hunter2|abc123/);
    expect(await refusal(`${text}seed: https://user:hunter2@host\n`)).not.toMatch(/hunter2/);
  });
});

const withData = (episodes: string, output: string): string =>
  `${MINIMAL.replace('data/episodes.parquet', episodes)}output: ${output}\n`;

describe('where a run may be written', () => {
  const refused: [string, string][] = [
    ['data/episodes.parquet', 'data'],
    ['data/episodes.parquet', 'data/'],
    ['data/episodes.parquet', 'data/../data/.'],
    ['data/episodes.parquet', 'data/episodes.parquet'],
    ['data', 'data'],
    ['data', 'data/runs/new'],
    ['"data/*.parquet"', 'data/runs'],
    ['"data/*/x-?.parquet"', 'data/runs'],
    ['[other/x.parquet, data/]', 'data/runs'],
  ];
  for (const [episodes, output] of refused) {
    it(`not ${output} when the data are ${episodes}`, async () => {
      expect(await refusal(withData(episodes, output))).toMatch(
        /^test\.yaml:6: output: expected a folder outside the folder of the data set/,
      );
    });
  }
  const fine: [string, string][] = [
    ['episodes.jsonl', 'results'],
    ['data/episodes.parquet', 'results'],
    ['data/episodes.parquet', '.'],
    ['data', 'data-runs'],
    ['data', '..data'],
    ['"data/*.parquet"', 'results'],
  ];
  for (const [episodes, output] of fine) {
    it(`${output} when the data are ${episodes}`, async () => {
      expect((await load(withData(episodes, output))).output).toBe(resolve(folder, output));
    });
  }
});

/** Dotted keys of a schema, with what each says about itself. */
function* keysOf(schema: unknown, path: readonly string[] = []): Generator<[string, string | undefined]> {
  let inner = schema;
  let said: string | undefined;
  while (inner instanceof z.ZodNullable || inner instanceof z.ZodOptional) {
    said ??= inner.description;
    inner = inner.unwrap();
  }
  if (inner instanceof z.ZodArray && inner.element instanceof z.ZodObject) inner = inner.element;
  if (inner instanceof z.ZodObject)
    for (const [key, item] of Object.entries(inner.shape)) yield* keysOf(item, [...path, key]);
  else yield [path.join('.'), said ?? (inner as z.ZodType).description];
}

describe('the schema', () => {
  it('says what every key is for', () => {
    const keys = [...keysOf(configSchema)];
    expect(keys.length).toBeGreaterThan(40);
    expect(keys.filter(([, said]) => said === undefined)).toEqual([]);
  });

  it('knows the policies that there are', () => {
    for (const policy of Object.keys(POLICIES))
      expect(configSchema.shape.intervene.shape.policies.safeParse([policy]).success).toBe(true);
    expect(configSchema.shape.intervene.shape.policies.element.options).toHaveLength(Object.keys(POLICIES).length);
  });
});
