import { basename } from 'node:path';
import { sha256File } from '../lib/content-hash.ts';
import { findTables } from './files.ts';
import type { DatasetSource } from './read.ts';

export interface FileHash {
  /** Base name: a run may move with its data. */
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Every file that a source's episodes come from, for the run key; in the order in which they are read. */
export async function hashSource(source: DatasetSource): Promise<readonly FileHash[]> {
  const out: FileHash[] = [];
  for (const inputs of [source.episodes, source.scenarios, source.reportLabels]) {
    for (const file of inputs === null ? [] : await findTables(inputs))
      out.push({ file: basename(file.path), ...(await sha256File(file.path)) });
  }
  if (source.tools !== null) out.push({ file: basename(source.tools), ...(await sha256File(source.tools)) });
  return out;
}
