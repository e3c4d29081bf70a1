import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `../shared` beside the repository. Tests that need it fail here, with the path, where it is missing. */
export const SHARED = fileURLToPath(new URL('../../../shared', import.meta.url));

function needed(path: string, variable?: string): string {
  if (!existsSync(path)) {
    throw new Error(
      `${path} is missing: these tests need the shared fixtures beside the repository${variable === undefined ? '' : ` (or ${variable} naming a folder of the same form)`}`,
    );
  }
  return path;
}

const fromEnvironment = (variable: string, folder: string): string =>
  needed(
    process.env[variable] === undefined ? join(SHARED, 'fixtures', folder) : resolve(process.env[variable]),
    variable,
  );

export const hostileFixtures = (): string => fromEnvironment('HOSTILE_FIXTURES', 'hostile');
export const chatFixtures = (): string => fromEnvironment('CHAT_FIXTURES', 'chat');
export const onnxFixtures = (): string => fromEnvironment('ONNX_FIXTURES', 'onnx');
export const sharedPath = (...parts: string[]): string => needed(join(SHARED, ...parts));

export interface HostileCase {
  readonly id: string;
  readonly file: string;
  readonly kind: string;
  readonly outcome: 'refuse' | 'quarantine-row' | 'accept' | 'accept-with-warning';
  readonly also_ok?: readonly string[];
  readonly must_name: Readonly<Record<string, unknown>>;
  readonly match?: readonly string[];
  readonly setup?: unknown;
  readonly needs?: string;
  readonly rows_in?: number;
  readonly rows_out?: number;
  readonly bad_rows?: readonly number[];
  readonly bad_lines?: readonly number[];
  readonly limits?: { readonly rss_mib?: number; readonly seconds?: number };
}

export function hostileCases(kind: string): readonly HostileCase[] {
  const all = JSON.parse(readFileSync(join(hostileFixtures(), 'expected.json'), 'utf8')) as { cases: HostileCase[] };
  return all.cases.filter((item) => item.kind === kind);
}

/** What the message lacks of what it has to name; empty = it names everything. */
export function missingFrom(message: string, item: HostileCase): string[] {
  const missing: string[] = [];
  const has = (text: string): boolean => message.toLowerCase().includes(text.toLowerCase());
  const base = item.file.split('/').at(-1)!;
  if (item.must_name['file'] === true && !has(base)) missing.push(`file ${base}`);
  for (const key of ['line', 'row'] as const) {
    const value = item.must_name[key];
    if (typeof value === 'number' && !new RegExp(`\\b${value}\\b`).test(message)) missing.push(`${key} ${value}`);
  }
  const field = item.must_name['field'];
  if (typeof field === 'string' && !has(field)) missing.push(`field ${field}`);
  const ids = item.must_name['ids'];
  if (Array.isArray(ids)) for (const id of ids) if (!has(String(id))) missing.push(`id ${String(id)}`);
  for (const pattern of item.match ?? []) if (!new RegExp(pattern, 'i').test(message)) missing.push(`/${pattern}/`);
  if (/\n\s+at /.test(message)) missing.push('a message without a stack trace');
  return missing;
}
