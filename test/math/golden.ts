import { readFileSync } from 'node:fs';

/** Reference numbers of other people's software; `source` in each file names it with its version. */
export function readGolden(name: string): Record<string, never> {
  return JSON.parse(readFileSync(new URL(`../golden/${name}.json`, import.meta.url), 'utf8')) as Record<string, never>;
}

export function defined<T>(value: T | { readonly undefinedBecause: string }): T {
  if (typeof value === 'object' && value !== null && 'undefinedBecause' in value) {
    throw new Error(`expected a value, got undefined because ${value.undefinedBecause}`);
  }
  return value;
}
