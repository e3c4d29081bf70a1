import { appendFile, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CorruptFileError, MismatchError } from '../errors.ts';
import type { RolloutConfig } from '../config/rollout.ts';
import { scenarioToRow } from '../environment/scenario-row.ts';
import type { Scenario } from '../environment/scenario.ts';
import { writeFileAtomic } from '../lib/atomic-write.ts';
import { hashValue } from '../lib/content-hash.ts';
import type { Played } from './rollout-record.ts';

/** Finished episodes, one JSON line each; the first line says which rollout they belong to. */
const PARTIAL = 'episodes.partial.jsonl';

export interface PartialFile {
  readonly done: ReadonlyMap<string, Played>;
  add(id: string, item: Played): Promise<void>;
  remove(): Promise<void>;
}

/** What determines the episodes beside the model. */
export interface PlayKey {
  readonly config: RolloutConfig;
  readonly scenarios: readonly Scenario[];
  /** Gate, direction or the like; null = none. */
  readonly identity: unknown;
}

/** Finished episodes of an earlier, interrupted call. A last line that was cut off is dropped. */
export async function openPartial(
  folder: string,
  { config, scenarios, identity }: PlayKey,
  modelHash: string,
): Promise<PartialFile> {
  const file = join(folder, PARTIAL);
  const { seed, name, chat, sampling, maxTurns } = config;
  const { folder: _, ...model } = config.model;
  const key = hashValue({
    settings: { seed, name, chat, sampling, maxTurns, model },
    identity,
    modelHash,
    scenarios: scenarios.map(scenarioToRow),
  });
  const text = await readFile(file, 'utf8').catch(() => '');
  const lines = text.split('\n').slice(0, -1);
  // What follows a torn line must not be glued to it.
  if (!text.endsWith('\n') && text !== '') await writeFileAtomic(file, lines.map((line) => `${line}\n`).join(''));
  const done = new Map<string, Played>();
  for (const [index, line] of lines.entries()) {
    const value = readLine(file, index, line);
    if ('key' in value) {
      if (value.key !== key)
        throw new MismatchError(
          `${file}: expected the beginning of this rollout, got another (scenarios, model or settings differ). Choose another output folder, or remove the file`,
        );
    } else if (index > 0) done.set(value.id, value.item);
  }
  if (lines.length === 0) await appendFile(file, `${JSON.stringify({ key })}\n`);
  // One line after the other: several lanes finish episodes.
  let written: Promise<void> = Promise.resolve();
  return {
    done,
    add: (id, item) => (written = written.then(() => appendFile(file, `${JSON.stringify({ id, item })}\n`))),
    remove: () => rm(file, { force: true }),
  };
}

type PartialLine = { readonly key: string } | { readonly id: string; readonly item: Played };

function readLine(file: string, index: number, line: string): PartialLine {
  try {
    return JSON.parse(line) as PartialLine;
  } catch (error) {
    throw new CorruptFileError(
      `${file}: line ${index + 1}: expected JSON, got a damaged line. Remove the file to start again`,
      {
        cause: error,
      },
    );
  }
}
