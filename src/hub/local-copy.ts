import { getHFHubCachePath, getRepoFolderName } from '@huggingface/hub';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { TryAgainError } from '../errors.ts';
import { writeFileAtomic } from '../lib/atomic-write.ts';
import { readTextIfThere } from '../lib/read-text.ts';
import { isUnder, parseHubAddress } from './address.ts';
import { type HubClient, openHubClient } from './client.ts';

export interface LocalCopyOptions {
  /** Files to fetch, of those under the address; default: all. */
  readonly wanted?: (path: string) => boolean;
  /** Default: the cache that the hub's own tools use (HF_HUB_CACHE, HF_HOME). */
  readonly cacheDir?: string;
  /** null = work from the cache alone (default where HF_HUB_OFFLINE is set). */
  readonly client?: HubClient | null;
  /** Bytes of files that are there, and of all wanted ones. */
  readonly onProgress?: (done: number, total: number) => void;
  readonly onNote?: (line: string) => void;
  readonly signal?: AbortSignal;
}

const COMMIT = /^[0-9a-f]{40}$/;
const isSet = (value: string | undefined): boolean => value !== undefined && /^(?:1|on|yes|true)$/i.test(value);

/**
 * The local path that an address of the hub stands for: a folder of its cache, or a path or glob in one. Files that are
 * there whole are not fetched again, so the same command goes on where an interrupted one stopped. Where the hub cannot be
 * reached the cache is used as it is, which is noted.
 * @throws UserError (2) for an address that is none; TryAgainError (75) when neither the hub nor the cache has the revision
 */
export async function localCopy(text: string, options: LocalCopyOptions = {}): Promise<string> {
  const address = parseHubAddress(text);
  const cacheDir = options.cacheDir ?? getHFHubCachePath();
  const { type, name, revision, path } = address;
  const repository = join(cacheDir, getRepoFolderName({ type, name }));
  const client =
    options.client === undefined ? (isSet(process.env['HF_HUB_OFFLINE']) ? null : openHubClient()) : options.client;
  // A commit names itself; what a tag names was written down when it was fetched.
  const known = COMMIT.test(revision) ? revision : await readTextIfThere(join(repository, 'refs', revision));
  const cached = known === null ? null : join(repository, 'snapshots', known.trim());
  let reason = 'the hub is not asked (HF_HUB_OFFLINE)';
  if (client !== null) {
    try {
      const commit = COMMIT.test(revision) ? revision : await client.commitOf(address);
      const files: { readonly path: string; readonly size: number }[] = [];
      for await (const file of client.listFiles(address, commit))
        if (isUnder(address, file.path) && (options.wanted?.(file.path) ?? true)) files.push(file);
      const total = files.reduce((sum, { size }) => sum + size, 0);
      let done = 0;
      for (const file of files) {
        options.signal?.throwIfAborted();
        await client.download(address, commit, file.path, cacheDir);
        done += file.size;
        options.onProgress?.(done, total);
      }
      // Offline, a tag is known by what was written down here, where the hub's own tools look as well.
      if (commit !== revision) await writeFileAtomic(join(repository, 'refs', revision), commit);
      return join(repository, 'snapshots', commit, path);
    } catch (error) {
      options.signal?.throwIfAborted();
      reason = `the hub says: ${(error as Error).message.split('\n')[0]}`;
    }
  }
  if (cached === null || !existsSync(cached))
    throw new TryAgainError(
      `${text}: expected the revision on the hub or in the cache ${cacheDir}, got neither (${reason}). Check the address and the network, or fetch it elsewhere and copy the cache`,
    );
  if (client !== null) options.onNote?.(`${text}: ${reason}; the files in the cache are used`);
  return join(cached, path);
}
