import { readFile } from 'node:fs/promises';

/** Text of a file, or null where there is none. Any other fault is thrown: an unreadable file is not an absent one. */
export async function readTextIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** The JSON value of a text, or undefined where it is none: for files that are made again when they are damaged. */
export function parseOrNothing(text: string | null): unknown {
  if (text === null) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
