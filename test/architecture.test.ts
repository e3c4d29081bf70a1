import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SRC = join(ROOT, 'src');

interface Import {
  readonly from: string;
  readonly to: string;
  /** Erased by the compiler. `import { type A }` is not: it leaves a bare import behind. */
  readonly typeOnly: boolean;
}

/** Code without comments; strings stay. */
function withoutComments(code: string): string {
  return code.replace(
    /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\*[\s\S]*?\*\/|(?<![\\/])\/\/.*/g,
    (part) => (part.startsWith('/') ? ' ' : part),
  );
}

/** Every static, re-exporting and dynamic import of a file. */
function importsOf(file: string, code: string): Import[] {
  const out: Import[] = [];
  const text = withoutComments(code);
  const statement = /(?:^|;|\n)\s*(?:import|export)\s+(type\s+)?(?:[\w*{}\s,$]+?\sfrom\s+)?(['"])([^'"]+)\2/g;
  for (const match of text.matchAll(statement))
    out.push({ from: file, to: match[3], typeOnly: match[1] !== undefined });
  for (const match of text.matchAll(/\bimport\(\s*(['"])([^'"]+)\1\s*\)/g))
    out.push({ from: file, to: match[2], typeOnly: false });
  return out;
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => join(SRC, name))
  .sort();
const codeOf = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));
const imports = files.flatMap((file) => importsOf(file, codeOf.get(file) ?? ''));

const name = (file: string): string => relative(ROOT, file);
/** `probe`, or `types` / `errors` / `index` for the files at the top. */
const partOf = (file: string): string => relative(SRC, file).split('/')[0].replace(/\.ts$/, '');
const packageOf = (specifier: string): string =>
  specifier.startsWith('@') ? specifier.split('/').slice(0, 2).join('/') : specifier.split('/')[0];

/** Open to every part. */
const COMMON = ['errors', 'lib', 'types'];

interface Rule {
  readonly parts: ReadonlySet<string>;
  readonly packages: ReadonlySet<string>;
}

const list = (cell: string): string[] =>
  cell
    .replaceAll(/\([^)]*\)/g, '')
    .split(/[,;]/)
    .map((item) => item.trim());

/** The table of CONTRIBUTING.md, read as it stands there, so that what people read is what is checked. */
function readTable(): ReadonlyMap<string, Rule> {
  const lines = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8').split('\n');
  const start = lines.findIndex((line) => line.startsWith('| folder | may import'));
  const rules = new Map<string, Rule>();
  for (const line of lines.slice(start + 2)) {
    if (!line.startsWith('|')) break;
    const cells = line.split('|').map((cell) => cell.trim());
    const packages = new Set(list(cells[3]).filter((item) => /^(?:@[\w-]+\/)?[\w.-]+$/.test(item)));
    const parts = cells[2] === 'every folder above' ? [...rules.keys()] : list(cells[2]);
    for (const part of list(cells[1])) rules.set(part, { parts: new Set(parts), packages });
  }
  return rules;
}

const rules = readTable();

/** A run-time import of another part that the table does not allow. */
function crossesTable({ from, to, typeOnly }: Import): boolean {
  if (typeOnly || !to.startsWith('.')) return false;
  const own = partOf(from);
  const other = partOf(resolve(dirname(from), to));
  if (own === other) return false;
  if (own === 'index') return other === 'cli';
  if (own === 'types' || own === 'errors') return true;
  return !COMMON.includes(other) && !rules.get(own)?.parts.has(other);
}

/** A run-time import of a package that the table does not allow in this part. */
function usesForeign({ from, to, typeOnly }: Import): boolean {
  return !typeOnly && !to.startsWith('.') && !isBuiltin(to) && !rules.get(partOf(from))?.packages.has(packageOf(to));
}

describe('the table of imports in CONTRIBUTING.md', () => {
  it('has a row for every folder and file at the top of src/ but the index', () => {
    const parts = new Set(files.map(partOf));
    parts.delete('index');
    expect([...parts].filter((part) => !rules.has(part))).toEqual([]);
    expect(rules.size).toBeGreaterThan(10);
  });

  it('holds between the parts of the program', () => {
    expect(imports.filter(crossesTable).map(({ from, to }) => `${name(from)} imports ${to}`)).toEqual([]);
  });

  it('holds for packages from outside', () => {
    expect(imports.filter(usesForeign).map(({ from, to }) => `${name(from)} imports ${to}`)).toEqual([]);
  });

  it('leaves onnxruntime to src/model alone, even as a type', () => {
    const broken = imports.filter(({ from, to }) => to.startsWith('onnxruntime') && partOf(from) !== 'model');
    expect(broken.map(({ from }) => name(from))).toEqual([]);
  });
});

describe('the import graph', () => {
  it('reaches only files that exist, written with their ending', () => {
    const broken = imports
      .filter(({ to }) => to.startsWith('.'))
      .filter(({ from, to }) => !codeOf.has(resolve(dirname(from), to)));
    expect(broken.map(({ from, to }) => `${name(from)} imports ${to}`)).toEqual([]);
  });

  it('has no cycle at run time', () => {
    const next = new Map<string, string[]>();
    for (const { from, to, typeOnly } of imports)
      if (!typeOnly && to.startsWith('.')) next.set(from, [...(next.get(from) ?? []), resolve(dirname(from), to)]);
    const done = new Set<string>();
    const cycles: string[] = [];
    const walk = (file: string, path: readonly string[]): void => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].map(name).join(' → '));
      if (done.has(file) || path.includes(file)) return;
      for (const other of next.get(file) ?? []) walk(other, [...path, file]);
      done.add(file);
    };
    for (const file of files) walk(file, []);
    expect(cycles).toEqual([]);
  });

  it('has no index.ts below src/, and types.ts imports nothing', () => {
    expect(files.filter((file) => /[\\/]index\.ts$/.test(file) && file !== join(SRC, 'index.ts')).map(name)).toEqual(
      [],
    );
    expect(imports.filter(({ from }) => from === join(SRC, 'types.ts'))).toEqual([]);
  });

  it('ends at cli: nothing imports it, and only cli and the index import pipeline, even as a type', () => {
    const broken = imports
      .filter(({ to }) => to.startsWith('.'))
      .filter(({ from, to }) => {
        const own = partOf(from);
        const other = partOf(resolve(dirname(from), to));
        return (
          (other === 'cli' && own !== 'cli') || (other === 'pipeline' && !['pipeline', 'cli', 'index'].includes(own))
        );
      });
    expect(broken.map(({ from, to }) => `${name(from)} imports ${to}`)).toEqual([]);
  });
});

/** Entry points of child processes have nobody to hand an exit to. */
const isEntry = (file: string): boolean => /(?:^|[-\\/])child\.ts$/.test(file);

describe('effects are handed in', () => {
  const forbidden: readonly [string, RegExp, (file: string) => boolean][] = [
    ['console', /\bconsole\s*\./, (file) => partOf(file) === 'cli'],
    ['process.exit', /\bprocess\s*\.\s*exit\b/, (file) => partOf(file) === 'cli' || isEntry(file)],
    ['Math.random', /\bMath\s*\.\s*random\b/, () => false],
    ['the wall clock', /\bDate\s*\.\s*now\b|\bnew Date\(\)/, (file) => partOf(file) === 'cli'],
  ];
  for (const [what, pattern, allowed] of forbidden) {
    it(`${what} is used only where a program meets the world`, () => {
      const broken = files.filter((file) => !allowed(file) && pattern.test(withoutComments(codeOf.get(file) ?? '')));
      expect(broken.map(name)).toEqual([]);
    });
  }
});

const between = (from: string, to: string, typeOnly = false): Import => ({ from: join(SRC, from), to, typeOnly });

describe('this test', () => {
  it('refuses a stage that imports a stage, and a package in the wrong folder', () => {
    for (const [from, to] of [
      ['store/x.ts', '../model/y.ts'],
      ['math/x.ts', '../probe/y.ts'],
      ['lib/x.ts', '../store/y.ts'],
      ['errors.ts', './lib/y.ts'],
      ['cli/x.ts', '../store/y.ts'],
      ['index.ts', './cli/main.ts'],
    ])
      expect([from, crossesTable(between(from, to))]).toEqual([from, true]);
    expect(crossesTable(between('store/x.ts', '../model/y.ts', true))).toBe(false);
    expect(crossesTable(between('probe/x.ts', '../math/y.ts'))).toBe(false);
    expect(crossesTable(between('store/x.ts', '../lib/y.ts'))).toBe(false);
    expect(usesForeign(between('store/x.ts', 'onnxruntime-node'))).toBe(true);
    expect(usesForeign(between('dataset/x.ts', '@duckdb/node-api/lib/x.js'))).toBe(false);
    expect(usesForeign(between('lib/x.ts', 'node:fs'))).toBe(false);
  });

  it('sees every form of import, and none in comments', () => {
    const code = `
      import a from './a.ts';
      import { b, type C } from "./b.ts";
      import {
        d,
      } from 'd';
      import type { E } from './e.ts';
      export * from './f.ts';
      export type * from './g.ts';
      import './h.ts';
      const i = await import('./i.ts');
      // import j from './j.ts';
      /* import k from './k.ts'; */
      const text = 'https://x'; import l from './l.ts';
    `;
    const seen = importsOf('x.ts', code).map(({ to, typeOnly }) => `${typeOnly ? 'type ' : ''}${to}`);
    expect(seen.sort()).toEqual(
      ['./a.ts', './b.ts', 'd', 'type ./e.ts', './f.ts', 'type ./g.ts', './h.ts', './i.ts', './l.ts'].sort(),
    );
  });
});
