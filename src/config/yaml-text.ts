import { readFile } from 'node:fs/promises';
import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseAllDocuments,
  visit,
} from 'yaml';
import type { z } from 'zod';
import { UserError } from '../errors.ts';

/**
 * YAML files read strictly: one document, plain values, each key once, no tags, no aliases bombs, UTF-8. Errors name the
 * file, the line, the key path, what was expected, what was got, and the nearest known key.
 */

/** Far above any configuration, far below what makes the parser overflow its stack. */
const MAX_NESTING = 50;
const MAX_BYTES = 1 << 20;

export interface YamlFile {
  readonly path: string;
  readonly value: unknown;
  /** Line (from 1) of the node at a key path; of the nearest ancestor where the path ends in a missing key. */
  lineOf(path: readonly PropertyKey[]): number | null;
  /** The scalar as it was written, where it is a scalar. */
  written(path: readonly PropertyKey[]): string | null;
}

/** Addresses with a password or token must not reach a log. */
export function hideSecrets(text: string): string {
  return text.replace(/[a-z][a-z0-9+.-]*:\/\/\S+/gi, (url) => `${url.split('://')[0]}://…`);
}

/** Dotted keys above a node. */
function keyOf(ancestors: readonly unknown[]): string {
  return ancestors.flatMap((item) => (isPair(item) && isScalar(item.key) ? [String(item.key.value)] : [])).join('.');
}

/** @throws UserError (2) */
export async function readYaml(path: string): Promise<YamlFile> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    throw new UserError(
      `${path}: expected a readable file, got ${(error as NodeJS.ErrnoException).code ?? 'an error'}. Check the path`,
    );
  }
  const fail = (line: number | null, expected: string, got: string, hint: string): never => {
    throw new UserError(
      hideSecrets(`${path}${line === null ? '' : `:${line}`}: expected ${expected}, got ${got}. ${hint}`),
    );
  };
  if (bytes.length > MAX_BYTES) fail(null, `at most ${MAX_BYTES} bytes`, `${bytes.length}`, 'Is this the right file?');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    const lines = bytes.toString('latin1').split('\n');
    const bad = lines.findIndex((line) => {
      try {
        new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(line, 'latin1'));
        return false;
      } catch {
        return true;
      }
    });
    const byte = /[\u0080-\u00ff]/.exec(lines[bad] ?? '')?.[0] ?? '';
    fail(bad + 1, 'UTF-8 text', `byte 0x${byte.charCodeAt(0).toString(16).toUpperCase()}`, 'Save the file as UTF-8');
    throw new Error('unreachable');
  }
  // Flow nesting overflows the parser's stack near 900 levels, so brackets are counted first.
  let depth = 0;
  for (const c of text) {
    if (c === '[' || c === '{') depth += 1;
    else if (c === ']' || c === '}') depth -= 1;
    if (depth > MAX_NESTING) fail(null, `nesting of at most ${MAX_NESTING}`, 'deeper brackets', 'Flatten the file');
  }
  for (const [index, line] of text.split('\n').entries()) {
    if (/^ */.exec(line)![0].length > 2 * MAX_NESTING * 2)
      fail(index + 1, `nesting of at most ${MAX_NESTING}`, 'deeper indentation', 'Flatten the file');
  }
  const counter = new LineCounter();
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
    fail(null, 'YAML', (error as Error).message.split('\n')[0], 'Correct the file');
    throw error;
  }
  if (documents.length === 0) fail(null, 'a mapping', 'an empty file', 'See configs/ for examples');
  const line = (node: { range?: readonly number[] | null } | null | undefined): number | null =>
    node?.range ? counter.linePos(node.range[0]).line : null;
  if (documents.length > 1)
    fail(
      text.split('\n').findIndex((row, index) => index > 0 && /^---(\s|$)/.test(row)) + 1,
      'one document',
      `${documents.length} documents`,
      'Remove the --- line',
    );
  const document = documents[0];
  const error = document.errors[0];
  if (error) {
    const at = error.linePos?.[0].line ?? null;
    const got =
      error.code === 'DUPLICATE_KEY'
        ? `the key ${JSON.stringify(/[^\s:]+/.exec(text.slice(error.pos[0]))?.[0] ?? '')} twice (duplicate)`
        : error.message.split('\n')[0].replace(/ at line.*$/, '');
    fail(
      at,
      error.code === 'TAB_AS_INDENT'
        ? 'spaces for indentation'
        : error.code === 'DUPLICATE_KEY'
          ? 'each key once'
          : 'YAML',
      got,
      'Correct the line',
    );
  }
  const warning = document.warnings[0];
  if (warning)
    fail(
      warning.linePos?.[0].line ?? null,
      'plain values',
      warning.message.split('\n')[0].replace(/ at line.*$/, ''),
      'Remove the tag',
    );
  let aliases = 0;
  visit(document, (_key, node, ancestors) => {
    if (isAlias(node)) {
      aliases += 1;
      if (aliases > 20) fail(line(node), 'at most 20 aliases', 'more (an alias bomb?)', 'Write the values out');
    }
    if (
      !isPair(node) &&
      node !== null &&
      typeof node === 'object' &&
      'tag' in node &&
      typeof node.tag === 'string' &&
      !node.tag.startsWith('tag:yaml.org,2002:')
    ) {
      fail(line(node as Node), 'plain values', `the tag ${node.tag}`, 'Remove the tag');
    }
    if (isScalar(node) && typeof node.value === 'number' && /^[-+]?0\d/.test(node.source ?? '')) {
      fail(
        line(node),
        'plain decimal numbers',
        `${node.source ?? ''} in ${keyOf(ancestors)}`,
        'Write it without the leading 0 (or quoted, if it is text)',
      );
    }
  });
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 20 });
    JSON.stringify(value);
  } catch (e) {
    fail(null, 'a tree of plain values, few aliases', (e as Error).message.split('\n')[0], 'Write the values out');
  }
  if (value === null || value === undefined)
    fail(null, 'a mapping', 'a file without content (empty)', 'See configs/ for examples');
  if (typeof value !== 'object' || Array.isArray(value))
    fail(1, 'a mapping', Array.isArray(value) ? 'a list' : `a ${typeof value}`, 'See configs/ for examples');
  const nodeAt = (keys: readonly PropertyKey[]): Node | null => {
    let node: unknown = document.contents;
    for (const [index, key] of keys.entries()) {
      if (isMap(node)) {
        const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key));
        if (!pair) return node ?? null;
        // A block starts on the line after its key; the key is where a reader looks.
        node = index === keys.length - 1 && !isScalar(pair.value) ? pair.key : pair.value;
      } else if (node !== null && typeof node === 'object' && 'items' in node)
        node = (node.items as unknown[])[Number(key)];
      else return node as Node | null;
    }
    return (node as Node | null) ?? null;
  };
  return {
    path,
    value,
    lineOf: (keys) => line(nodeAt(keys)),
    written: (keys) => {
      const node = nodeAt(keys);
      return isScalar(node) ? (node.source ?? null) : null;
    },
  };
}

const dotted = (keys: readonly PropertyKey[]): string => keys.map(String).join('.');

/** Edit distance, for "did you mean". */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'string') return `the text ${JSON.stringify(value)}`;
  if (typeof value === 'number') return String(value);
  return JSON.stringify(value)?.slice(0, 80) ?? typeof value;
}

/**
 * The first problem of a strict parse as one line. `file` null = the values come from flags.
 * @param known keys allowed at a path, for "did you mean"
 */
export function explain(
  error: z.ZodError,
  file: YamlFile | null,
  value: unknown,
  known: (path: readonly PropertyKey[]) => readonly string[],
): UserError {
  // An unknown key explains what follows from it; the outermost first.
  const unknown = error.issues.filter((item) => item.code === 'unrecognized_keys');
  const issue = ([...unknown].sort((a, b) => a.path.length - b.path.length)[0] ?? error.issues[0]) as z.core.$ZodIssue;
  const deepest = ((): { path: PropertyKey[]; message: string; keys?: string[] } => {
    let current: z.core.$ZodIssue = issue;
    let base = [...issue.path];
    // A union reports all its branches; the one that got furthest says most.
    while (current.code === 'invalid_union' && current.errors.length > 0) {
      const branch: z.core.$ZodIssue[] | undefined = [...current.errors].sort(
        (a, b) => (b[0]?.path.length ?? 0) - (a[0]?.path.length ?? 0),
      )[0];
      if (!branch?.[0] || branch[0].path.length === 0) break;
      current = branch[0];
      base = [...base, ...current.path];
    }
    return {
      path: base,
      message: current.message,
      ...(current.code === 'unrecognized_keys' ? { keys: current.keys } : {}),
    };
  })();
  const at = (keys: readonly PropertyKey[]): string => {
    const line = file?.lineOf(keys) ?? null;
    return `${file?.path ?? 'command line'}${line === null ? '' : `:${line}`}`;
  };
  if (deepest.keys) {
    const key = deepest.keys[0];
    const names = known(deepest.path);
    const near = [...names].sort((a, b) => distance(key, a) - distance(key, b))[0];
    const path = [...deepest.path, key];
    return new UserError(
      hideSecrets(
        `${at(path)}: ${dotted(path)}: expected one of ${names.join(', ')}, got the unknown key ${JSON.stringify(key)}.${near === undefined ? '' : ` Did you mean ${near}?`}`,
      ),
    );
  }
  let got: unknown = value;
  for (const key of deepest.path) got = (got as Record<PropertyKey, unknown> | undefined)?.[key];
  const written = file?.written(deepest.path);
  const shown = typeof got === 'number' && written !== null && written !== undefined ? written : describe(got);
  const message = deepest.message
    .replace(/^Invalid input: /, '')
    .replace(/, received .*$/, '')
    .replace(/^expected /, '');
  return new UserError(
    hideSecrets(
      `${at(deepest.path)}: ${dotted(deepest.path)}: expected ${got === undefined ? `${message} (the key is missing)` : message}, got ${shown}. Correct the value`,
    ),
  );
}
