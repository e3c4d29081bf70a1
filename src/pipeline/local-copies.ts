import type { Config } from '../config/schema.ts';
import { isHubAddress } from '../hub/address.ts';
import { type LocalCopyOptions, localCopy } from '../hub/local-copy.ts';
import { isModelFile } from '../hub/model-files.ts';
import type { PipelineContext } from './context.ts';

/**
 * The configuration with a local path in place of every hf:// address, after fetching what is not in the cache. Hashes of
 * the files, not addresses, determine a run.
 * @param context null = without progress
 * @throws UserError (2) for an address that is none, TryAgainError (75) when it can be had neither from the hub nor the cache
 */
export async function withLocalCopies(
  config: Config,
  context: Pick<PipelineContext, 'progress' | 'signal'> | null,
  from: Pick<LocalCopyOptions, 'cacheDir' | 'client'> = {},
): Promise<Config> {
  const one = async (text: string, wanted: (path: string) => boolean = () => true): Promise<string> => {
    if (!isHubAddress(text)) return text;
    if (context === null) return localCopy(text, { ...from, wanted });
    const { progress, signal } = context;
    let started = false;
    const local = await localCopy(text, {
      ...from,
      wanted,
      signal,
      onNote: (line) => progress.note(`warning: ${line}`),
      onProgress: (done, total) => {
        if (!started) progress.start(`fetch ${text}`, total, 'bytes');
        started = true;
        progress.advance(done);
      },
    });
    if (started) progress.end();
    return local;
  };
  const all = async (texts: string | readonly string[]): Promise<string[]> => {
    const local: string[] = [];
    for (const text of typeof texts === 'string' ? [texts] : texts) local.push(await one(text));
    return local;
  };
  const { dataset, model } = config;
  return {
    ...config,
    dataset: {
      ...dataset,
      episodes: await all(dataset.episodes),
      scenarios: dataset.scenarios === null ? null : await all(dataset.scenarios),
      reportLabels: dataset.reportLabels === null ? null : await all(dataset.reportLabels),
      tools: dataset.tools === null ? null : await one(dataset.tools),
    },
    model: { ...model, folder: await one(model.folder, (path) => isModelFile(path, model.dtype)) },
  };
}
