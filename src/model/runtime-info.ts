import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { listSupportedBackends } from 'onnxruntime-node';

/** Version of onnxruntime-node and the execution providers that this build has. */
export async function runtimeInfo(): Promise<{ readonly version: string; readonly providers: readonly string[] }> {
  const entry = createRequire(import.meta.url).resolve('onnxruntime-node');
  const text = await readFile(new URL('../package.json', `file://${entry}`), 'utf8');
  return {
    version: (JSON.parse(text) as { version: string }).version,
    providers: listSupportedBackends().map((backend) => backend.name),
  };
}
