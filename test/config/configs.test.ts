import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { loadMapping } from '../../src/config/mapping.ts';

const folder = fileURLToPath(new URL('../../configs', import.meta.url));
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml'));

describe('the configurations in configs/', () => {
  it('are there', () => expect(files.length).toBeGreaterThan(0));

  for (const name of files) {
    it(`${name} is valid, is named after its file, and its mapping is valid`, async () => {
      const { config } = await loadConfig(join(folder, name));
      expect(config.name).toBe(name.replace(/\.yaml$/, '').replaceAll('/', '-'));
      await loadMapping(config.dataset.mapping);
    });
  }
});
