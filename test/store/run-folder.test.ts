import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { differences, openRun, type OpenRunOptions, type RunKey, type RunRecord } from '../../src/store/run-folder.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

let root: string;
let clock = 0;
beforeEach(() => {
  root = temporaryFolder('runs');
});

const KEY = {
  extraction: {
    config: { model: { threads: 2, chunk: 512 }, capture: { layers: [0, 1], dtype: 'float32' } },
    data: { files: [{ name: 'a.parquet', sha256: 'd1', rows: 200 }], mapping: { reveal: 'reveal_event' } },
    model: { 'model.onnx': 'm1', 'model.onnx.data': 'm2' },
    tokenizer: 't1',
    template: 'c1',
    versions: { 'onnxruntime-node': '1.30.0' },
  },
  analysis: { seed: 7, train: { C: [0.1, 1] }, forecast: { horizon: null } },
};
const options = (key: RunKey = KEY, more: Partial<OpenRunOptions> = {}): OpenRunOptions => ({
  root,
  name: 'test',
  key,
  machine: { cores: 2 },
  now: () => new Date((clock += 1000)),
  resume: null,
  ...more,
});
const record = (folder: string): RunRecord => JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8')) as RunRecord;

/** Every way to change one leaf of a tree: [dotted path, changed copy]. */
function* changes(value: unknown, path: readonly string[] = []): Generator<[string, (tree: unknown) => unknown]> {
  if (value !== null && typeof value === 'object') {
    for (const [key, item] of Object.entries(value)) yield* changes(item, [...path, key]);
    return;
  }
  yield [
    path.join('.'),
    (tree) => {
      const copy = structuredClone(tree) as Record<string, unknown>;
      let at = copy;
      for (const key of path.slice(0, -1)) at = at[key] as Record<string, unknown>;
      at[path.at(-1) ?? ''] = typeof value === 'number' ? value + 1 : 'changed';
      return copy;
    },
  ];
}

describe('a run', () => {
  it('is a folder named after its configuration and what its activations depend on', async () => {
    const run = await openRun(options());
    expect(basename(run.path)).toMatch(/^test-[0-9a-f]{8}$/);
    expect(run).toMatchObject({ resumed: false, analysisChanges: [], orphansRemoved: 0 });
    expect(record(run.path)).toMatchObject({
      schemaVersion: 1,
      name: 'test',
      key: KEY,
      status: 'running',
      machine: { cores: 2 },
    });
    await run.note('episodes', 200);
    await run.setStatus('done');
    expect(record(run.path)).toMatchObject({ status: 'done', notes: { episodes: 200 } });
    await run.close();
    expect(readdirSync(run.path)).toEqual(['run.json']);
  });

  it('is gone on with under the same key, however its members are ordered', async () => {
    const first = await openRun(options());
    await first.note('seconds', 3);
    await first.close();
    const reordered = {
      analysis: KEY.analysis,
      extraction: Object.fromEntries(Object.entries(KEY.extraction).reverse()),
    };
    const second = await openRun(options(reordered));
    expect(second).toMatchObject({ path: first.path, keyHash: first.keyHash, resumed: true, analysisChanges: [] });
    expect(second.record().startedAt).toBe(first.record().startedAt);
    expect(second.record().notes).toEqual({ seconds: 3 });
    await second.close();
  });

  it('keeps its activations when only the analysis changes, and says what did', async () => {
    const first = await openRun(options());
    await first.close();
    const second = await openRun(options({ ...KEY, analysis: { ...KEY.analysis, seed: 8, train: { C: [0.1] } } }));
    expect(second).toMatchObject({ path: first.path, resumed: true });
    expect(second.analysisChanges.toSorted()).toEqual(['seed: 7 → 8', 'train.C.1: 1 → nothing']);
    await second.close();
    const third = await openRun(options({ ...KEY, analysis: { ...KEY.analysis, seed: 8, train: { C: [0.1] } } }));
    expect(third.analysisChanges).toEqual([]);
    await third.close();
  });

  for (const [path, change] of changes(KEY)) {
    it(`is refused (78) when ${path} differs, and left as it was`, async () => {
      const first = await openRun(options());
      await first.setStatus('done');
      await first.close();
      const before = readFileSync(join(first.path, 'run.json'), 'utf8');
      await expect(openRun(options(change(KEY) as RunKey, { resume: first.path }))).rejects.toMatchObject({
        exitCode: 78,
        message: expect.stringMatching(
          new RegExp(`run\\.json: .*${path.replaceAll('.', '\\.')}: \\S+ → \\S+\\. `),
        ) as string,
      });
      expect(readFileSync(join(first.path, 'run.json'), 'utf8')).toBe(before);
      expect(readdirSync(first.path)).toEqual(['run.json']);
    });
    if (path.startsWith('extraction')) {
      it(`gets a folder of its own when ${path} differs`, async () => {
        const first = await openRun(options());
        const second = await openRun(options(change(KEY) as RunKey));
        expect(second.path).not.toBe(first.path);
        await first.close();
        await second.close();
      });
    }
  }

  it('is refused when a field is there that was not, or is null where it was missing', async () => {
    const first = await openRun(options());
    await first.close();
    for (const extra of [null, 1]) {
      const key = { ...KEY, extraction: { ...KEY.extraction, steering: extra } };
      await expect(openRun(options(key, { resume: first.path }))).rejects.toMatchObject({
        exitCode: 78,
        message: expect.stringContaining(`extraction.steering: nothing → ${extra}`) as string,
      });
    }
  });

  it('is refused when its folder, named after another hash, is at the place of this one', async () => {
    const first = await openRun(options());
    await first.close();
    const forged = { ...record(first.path), key: { ...KEY, extraction: { ...KEY.extraction, tokenizer: 't2' } } };
    writeFileSync(join(first.path, 'run.json'), JSON.stringify(forged));
    await expect(openRun(options())).rejects.toMatchObject({ exitCode: 78 });
  });

  it('cannot be resumed where there is none, and no folder is made', async () => {
    await expect(openRun(options(KEY, { resume: join(root, 'typo') }))).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/typo: expected the folder of a run/) as string,
    });
    expect(readdirSync(root)).toEqual([]);
  });

  for (const text of [
    '',
    '{"schemaVersion":1',
    'null',
    '[]',
    '{"schemaVersion":2,"key":{},"notes":{}}',
    '{"schemaVersion":1}',
  ]) {
    it(`is not begun anew over a run.json of ${JSON.stringify(text)}`, async () => {
      const first = await openRun(options());
      await first.close();
      writeFileSync(join(first.path, 'run.json'), text);
      await expect(openRun(options())).rejects.toMatchObject({
        exitCode: 65,
        message: expect.stringMatching(/run\.json: expected the record of a run/) as string,
      });
      expect(readFileSync(join(first.path, 'run.json'), 'utf8')).toBe(text);
      expect(existsSync(join(first.path, '.lock'))).toBe(false);
    });
  }

  it('clears what dead writers left in its folder', async () => {
    const first = await openRun(options());
    await first.close();
    writeFileSync(join(first.path, `.run.json.${hostname()}.${2 ** 22 + 1}.0123abcd.tmp`), '{');
    const second = await openRun(options());
    expect(second.orphansRemoved).toBe(1);
    await second.close();
    expect(readdirSync(first.path)).toEqual(['run.json']);
  });

  it('reports a root that is no folder as a fault of the disk', async () => {
    writeFileSync(join(root, 'file'), '');
    await expect(openRun(options(KEY, { root: join(root, 'file') }))).rejects.toMatchObject({ exitCode: 74 });
    mkdirSync(join(root, 'fine'));
    await (await openRun(options(KEY, { root: join(root, 'fine') }))).close();
  });

  it('refuses a key that JSON cannot hold', async () => {
    await expect(openRun(options({ ...KEY, analysis: { seed: Number.NaN } }))).rejects.toThrow(TypeError);
  });
});

describe('differences', () => {
  it('are listed field by field, lists by index', () => {
    expect(differences({ a: [1, { b: 2 }], c: 'x' }, { a: [1, { b: 3 }, 4], c: 'x' })).toEqual([
      'a.1.b: 2 → 3',
      'a.2: nothing → 4',
    ]);
    expect(differences({ a: [] }, { a: {} })).toEqual(['a: [] → {}']);
    expect(differences({ a: null }, {})).toEqual(['a: null → nothing']);
  });
});
