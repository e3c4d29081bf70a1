import { readFile } from 'node:fs/promises';
import { type Document, isAlias, isMap, isPair, isScalar, isSeq, LineCounter, parseAllDocuments, visit } from 'yaml';
import { UserError } from '../errors.ts';

/**
 * YAML files read strictly: one document, plain values, each key once, no tags, no alias bombs, UTF-8. Errors name the
 * file, the line, what was expected and what was got.
 */

/** Far above any configuration, far below what makes the parser overflow its stack (about 800 levels). */
const MAX_NESTING = 50;
const MAX_INDENT = 4 * MAX_NESTING;
const MAX_BYTES = 1 << 20;
const MAX_ALIASES = 20;

export interface YamlFile {
  readonly path: string;
  /** An object; its members are not checked yet. */
  readonly value: Readonly<Record<string, unknown>>;
  /** Line (from 1) of the node at a key path; of the nearest ancestor where the path ends in a missing key. */
  lineOf(path: readonly PropertyKey[]): number | null;
  /** The scalar as it was written, where it is a scalar. */
  written(path: readonly PropertyKey[]): string | null;
}

/** Addresses with a password or token must not reach a log. */
export function hideSecrets(text: string): string {
  return text.replace(/[a-z][a-z0-9+.-]*:\/\/\S+/gi, (url) => `${url.split('://')[0]}://…`);
}

type Fail = (line: number | null, expected: string, got: string, hint: string) => never;

const firstLine = (error: unknown): string => (error as Error).message.split('\n')[0].replace(/ at line.*$/, '');

/** @throws UserError (2) */
export async function readYaml(path: string): Promise<YamlFile> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new UserError(
      `${path}: expected a readable file, got ${(error as NodeJS.ErrnoException).code ?? 'an error'}. Check the path`,
    );
  });
  const fail: Fail = (line, expected, got, hint) => {
    const at = line === null ? '' : `:${line}`;
    throw new UserError(hideSecrets(`${path}${at}: expected ${expected}, got ${got}. ${hint}`));
  };
  const text = decode(bytes, fail);
  checkNesting(text, fail);
  const counter = new LineCounter();
  const document = parse(text, counter, fail);
  checkNodes(document, counter, fail);
  const value = toPlain(document, fail);
  const nodeAt = (keys: readonly PropertyKey[]): unknown => find(document.contents, keys);
  return {
    path,
    value,
    lineOf: (keys) => lineAt(nodeAt(keys), counter),
    written: (keys) => {
      const node = nodeAt(keys);
      return isScalar(node) ? (node.source ?? null) : null;
    },
  };
}

function decode(bytes: Uint8Array, fail: Fail): string {
  if (bytes.length > MAX_BYTES) fail(null, `at most ${MAX_BYTES} bytes`, `${bytes.length}`, 'Is this the right file?');
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  try {
    return utf8.decode(bytes);
  } catch {
    const lines = Buffer.from(bytes).toString('latin1').split('\n');
    const bad = lines.findIndex((line) => {
      try {
        utf8.decode(Buffer.from(line, 'latin1'));
        return false;
      } catch {
        return true;
      }
    });
    const byte = /[\u0080-\u00ff]/.exec(lines[bad] ?? '')?.[0] ?? '';
    return fail(
      bad + 1,
      'UTF-8 text',
      `byte 0x${byte.charCodeAt(0).toString(16).toUpperCase()}`,
      'Save the file as UTF-8',
    );
  }
}

/** Before parsing, since the parser recurses. */
function checkNesting(text: string, fail: Fail): void {
  for (const [index, line] of text.split('\n').entries()) {
    if (/^ */.exec(line)![0].length > MAX_INDENT)
      fail(index + 1, `nesting of at most ${MAX_NESTING}`, 'deeper indentation', 'Flatten the file');
  }
  let depth = 0;
  for (const c of text) {
    if (c === '[' || c === '{') depth += 1;
    else if (c === ']' || c === '}') depth -= 1;
    if (depth > MAX_NESTING) fail(null, `nesting of at most ${MAX_NESTING}`, 'deeper brackets', 'Flatten the file');
  }
}

function parse(text: string, counter: LineCounter, fail: Fail): Document.Parsed {
  let documents: readonly Document.Parsed[];
  try {
    documents = parseAllDocuments(text, {
      strict: true,
      uniqueKeys: true,
      lineCounter: counter,
      logLevel: 'silent',
      merge: false,
    }) as readonly Document.Parsed[];
  } catch (error) {
    return fail(null, 'YAML', firstLine(error), 'Correct the file');
  }
  const [document] = documents;
  if (document === undefined) return fail(null, 'a mapping', 'an empty file', 'See configs/ for examples');
  if (documents.length > 1) {
    const second = text.split('\n').findIndex((row, index) => index > 0 && /^---(\s|$)/.test(row)) + 1;
    fail(second, 'one document', `${documents.length} documents`, 'Remove the --- line');
  }
  const [error] = document.errors;
  if (error !== undefined) {
    const line = error.linePos?.[0].line ?? null;
    if (error.code === 'DUPLICATE_KEY') {
      const key = /[^\s:]+/.exec(text.slice(error.pos[0]))?.[0] ?? '';
      fail(line, 'each key once', `the key ${JSON.stringify(key)} twice (duplicate)`, 'Remove one');
    }
    const expected = error.code === 'TAB_AS_INDENT' ? 'spaces for indentation' : 'YAML';
    fail(line, expected, firstLine(error), 'Correct the line');
  }
  const [warning] = document.warnings;
  if (warning !== undefined)
    fail(warning.linePos?.[0].line ?? null, 'plain values', firstLine(warning), 'Remove the tag');
  return document;
}

const lineAt = (node: unknown, counter: LineCounter): number | null => {
  const range = (node as { range?: readonly number[] | null } | null)?.range;
  return range ? counter.linePos(range[0]).line : null;
};

/** Dotted keys above a node. */
function keyOf(ancestors: readonly unknown[]): string {
  return ancestors.flatMap((item) => (isPair(item) && isScalar(item.key) ? [String(item.key.value)] : [])).join('.');
}

function checkNodes(document: Document.Parsed, counter: LineCounter, fail: Fail): void {
  let aliases = 0;
  visit(document, (_key, node, ancestors) => {
    const line = lineAt(node, counter);
    if (isAlias(node)) {
      aliases += 1;
      if (aliases > MAX_ALIASES)
        fail(line, `at most ${MAX_ALIASES} aliases`, 'more (an alias bomb?)', 'Write the values out');
    }
    const tag = node !== null && typeof node === 'object' && 'tag' in node ? node.tag : undefined;
    if (typeof tag === 'string' && !tag.startsWith('tag:yaml.org,2002:'))
      fail(line, 'plain values', `the tag ${tag}`, 'Remove the tag');
    // Octal in YAML 1.1, decimal in YAML 1.2: whoever wrote it may mean either.
    if (isScalar(node) && typeof node.value === 'number' && /^[-+]?0\d/.test(node.source ?? '')) {
      fail(
        line,
        'plain decimal numbers',
        `${node.source} in ${keyOf(ancestors)}`,
        'Write it without the leading 0 (or quoted, if it is text)',
      );
    }
  });
}

function toPlain(document: Document.Parsed, fail: Fail): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
    // An anchor that holds an alias to itself makes a cycle.
    JSON.stringify(value);
  } catch (error) {
    fail(null, 'a tree of plain values, few aliases', firstLine(error), 'Write the values out');
  }
  if (value === null || value === undefined)
    fail(null, 'a mapping', 'a file without content (empty)', 'See configs/ for examples');
  if (typeof value !== 'object' || Array.isArray(value))
    fail(1, 'a mapping', Array.isArray(value) ? 'a list' : `a ${typeof value}`, 'See configs/ for examples');
  return value as Readonly<Record<string, unknown>>;
}

/** The node at a key path, or the one where the path ends. */
function find(root: unknown, keys: readonly PropertyKey[]): unknown {
  let node = root;
  for (const [index, key] of keys.entries()) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key));
      if (pair === undefined) return node;
      // A block starts on the line after its key; the key is where a reader looks.
      node = index === keys.length - 1 && !isScalar(pair.value) ? pair.key : pair.value;
    } else if (isSeq(node)) node = node.items[Number(key)];
    else return node;
  }
  return node;
}
