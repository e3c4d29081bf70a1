import type { z } from 'zod';
import { UserError } from '../errors.ts';
import { hideSecrets, type YamlFile } from './yaml-text.ts';

/** Edit distance, for "did you mean". */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1)
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length];
}

function nearest(key: string, names: readonly string[]): string | null {
  return [...names].sort((a, b) => distance(key, a) - distance(key, b))[0] ?? null;
}

function show(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'string') return `the text ${JSON.stringify(value)}`;
  if (typeof value === 'number') return String(value);
  return (JSON.stringify(value) ?? typeof value).slice(0, 80);
}

interface Problem {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  /** Keys that are not known at the path. */
  readonly keys: readonly string[];
}

const withoutFrame = (message: string): string =>
  message
    .replace(/^Invalid (?:input|option): /, '')
    .replace(/^Too (?:small|big): expected (\w+) to be /, '$1 ')
    .replace(/^Too (?:small|big): expected (\w+) to have /, '$1 of ')
    .replace(/, received .*$/, '')
    .replace(/^expected /, '');

/** The problem to report first: an unknown key explains what follows from it; the outermost one. */
function firstProblem(error: z.ZodError): Problem {
  const unknown = error.issues.filter((item) => item.code === 'unrecognized_keys');
  const issue: z.core.$ZodIssue = [...unknown].sort((a, b) => a.path.length - b.path.length)[0] ?? error.issues[0];
  return problemOf(issue, issue.path);
}

function problemOf(issue: z.core.$ZodIssue, path: readonly PropertyKey[]): Problem {
  if (issue.code === 'unrecognized_keys') return { path, message: issue.message, keys: issue.keys };
  if (issue.code !== 'invalid_union') return { path, message: withoutFrame(issue.message), keys: [] };
  // A union reports all its branches. The one that got furthest says most; then one that took the type but not the value.
  const branches = issue.errors.flatMap((branch) => branch.slice(0, 1));
  const deepest = [...branches].sort((a, b) => b.path.length - a.path.length)[0];
  const chosen =
    deepest !== undefined && deepest.path.length > 0
      ? deepest
      : branches.find(({ code }) => code !== 'invalid_type' && code !== 'invalid_value' && code !== 'invalid_union');
  if (chosen !== undefined) return problemOf(chosen, [...path, ...chosen.path]);
  const expected = branches.map((branch) => problemOf(branch, path).message);
  return { path, message: [...new Set(expected)].join(' or '), keys: [] };
}

export interface ExplainOptions {
  readonly file: YamlFile;
  /** What was checked: the file's values with everything merged over and under them. */
  readonly value: unknown;
  /** Keys allowed at a path, for "did you mean". */
  readonly known: (path: readonly PropertyKey[]) => readonly string[];
  /** Whether the value at a path was given on the command line. */
  readonly isFlag?: (path: readonly PropertyKey[]) => boolean;
}

/** The first problem of a strict parse as one line: where, which key, what was expected, what was got, what to do. */
export function explain(error: z.ZodError, { file, value, known, isFlag }: ExplainOptions): UserError {
  const { path, message, keys } = firstProblem(error);
  const where = (keyPath: readonly PropertyKey[]): string => {
    const dotted = keyPath.map(String).join('.');
    if (isFlag?.(keyPath) === true) return `command line: ${dotted}`;
    const line = file.lineOf(keyPath);
    return `${file.path}${line === null ? '' : `:${line}`}: ${dotted}`;
  };
  if (keys.length > 0) {
    const [key] = keys;
    const names = known(path);
    const near = nearest(key, names);
    return new UserError(
      hideSecrets(
        `${where([...path, key])}: expected one of ${names.join(', ')}, got the unknown key ${JSON.stringify(key)}.${near === null ? '' : ` Did you mean ${near}?`}`,
      ),
    );
  }
  const got = path.reduce<unknown>(
    (node, key) => (node as Record<PropertyKey, unknown> | null | undefined)?.[key],
    value,
  );
  // As it was written: 1e400 and 12345678901234567890 are something else by now.
  const written = typeof got === 'number' && isFlag?.(path) !== true ? file.written(path) : null;
  return new UserError(
    hideSecrets(
      `${where(path)}: expected ${message}${got === undefined ? ' (the key is missing)' : ''}, got ${written ?? show(got)}. Correct the value`,
    ),
  );
}
