import { datasetInfo, downloadFileToCacheDir, listFiles, modelInfo } from '@huggingface/hub';
import process from 'node:process';
import type { HubAddress } from './address.ts';

/** What is asked of the hub over the network; a fake stands for it in tests. */
export interface HubClient {
  /** Commit that a revision names. */
  commitOf(address: HubAddress): Promise<string>;
  listFiles(address: HubAddress, commit: string): AsyncIterable<{ readonly path: string; readonly size: number }>;
  /** Puts one file into the cache, unless it is there whole. */
  download(address: HubAddress, commit: string, path: string, cacheDir: string): Promise<void>;
}

/** The hub itself. A token for closed repositories is taken from HF_TOKEN, as the hub's own tools do. */
export function openHubClient(): HubClient {
  const token = process.env['HF_TOKEN'];
  const credentials = token === undefined || token === '' ? {} : { accessToken: token };
  const repoOf = ({ type, name }: HubAddress): { type: 'model' | 'dataset'; name: string } => ({ type, name });
  return {
    commitOf: async (address) => {
      const { name, revision, type } = address;
      const options = { name, revision, additionalFields: ['sha' as const], ...credentials };
      return (type === 'dataset' ? await datasetInfo(options) : await modelInfo(options)).sha;
    },
    async *listFiles(address, commit) {
      const list = listFiles({ repo: repoOf(address), recursive: true, revision: commit, ...credentials });
      for await (const { type, path, size } of list) if (type === 'file') yield { path, size };
    },
    download: async (address, commit, path, cacheDir) => {
      await downloadFileToCacheDir({ repo: repoOf(address), path, revision: commit, cacheDir, ...credentials });
    },
  };
}
