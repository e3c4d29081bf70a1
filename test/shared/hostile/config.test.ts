import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { ForewarnError } from '../../../src/errors.ts';
import { hostileCases, hostileFixtures, missingFrom } from '../fixtures.ts';
import { temporaryFolder } from '../../fakes/temporary-folder.ts';

/**
 * The example's keys, line by line, in our words: the faults and their lines stay where they are.
 * dataset → dataset.episodes, model → model.folder, layers/positions → capture (action_start → pre_action, and prompt_end,
 * which the default landmarks read), probe → train (kind → estimators, l2 → C, learning_rate → tolerance). C is strictly
 * positive where l2 may be 0.
 */
function translate(bytes: Buffer): Buffer {
  const lines = bytes.toString('latin1').split('\n');
  const out = lines.map((line) => {
    const text = line.replace(/\r$/, '');
    const top = /^(\ufeff|\u00ef\u00bb\u00bf)?(\w+):(?: (.*))?$/.exec(text);
    const value = top?.[3];
    const mark = top?.[1] ?? '';
    const end = line.endsWith('\r') ? '\r' : '';
    if (top && value !== undefined) {
      if (top[2] === 'dataset')
        return `${mark}dataset: { episodes: ${value.startsWith('http') ? JSON.stringify(value) : value}, mapping: m.yaml }${end}`;
      if (top[2] === 'model') return `model: { folder: ${value} }${end}`;
      if (top[2] === 'layers' || top[2] === 'layres') return `capture: { ${top[2]}: ${value},${end}`;
      if (top[2] === 'positions')
        return `  positions: ${value.replace('[', '[prompt_end, ').replace('action_start', 'pre_action')} }${end}`;
      if (top[2] === 'output') return `output: ${value}${end}`;
    }
    return line
      .replace(/^probe:/, 'train:')
      .replace(/^(\s+)kind: (\w+)/, '$1estimators: [$2]')
      .replace(/^(\s+)kind: /, '$1estimators: ')
      .replace(/^(\s+)l2:/, '$1C:')
      .replace(/^(\s+)learning_rate:/, '$1tolerance:')
      .replace(/^(\s+)learning_rte:/, '$1tolerence:');
  });
  return Buffer.from(out.join('\n'), 'latin1');
}

const ours = (text: string): string =>
  text
    .replace('probe.learning_rte', 'train.tolerence')
    .replace('learning_rte', 'tolerence')
    .replace('probe.learning_rate', 'train.tolerance')
    .replace('learning_rate', 'tolerance')
    .replace('probe.kind', 'train.estimators')
    .replace('kind', 'estimators')
    .replace('probe.l2', 'train.C')
    .replace(/^l2$/, 'C')
    .replace('probe.folds', 'train.folds');

describe('configuration files that make good tools fail', () => {
  const folder = temporaryFolder('config');
  for (const item of hostileCases('config')) {
    it(`${item.id}: ${item.outcome}`, async () => {
      const source = join(hostileFixtures(), item.file);
      const path = join(folder, basename(item.file));
      writeFileSync(path, translate(readFileSync(source)));
      let message: string | null = null;
      let capture: readonly number[] = [];
      try {
        const { config } = await loadConfig(path, { name: 'hostile' });
        capture = config.capture.layers as number[];
        expect(config.train.folds).toBe(5);
      } catch (error) {
        expect(error).toBeInstanceOf(ForewarnError);
        expect((error as ForewarnError).exitCode).toBe(2);
        message = (error as Error).message;
      }
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
      if (item.id.includes('layer-out-of-range')) {
        // Needs the model: refused by resolveTaps (test/pipeline/taps.test.ts), with the layer and the model's count.
        expect(capture).toContain(99);
        return;
      }
      if (item.outcome === 'accept') expect(message).toBeNull();
      else {
        expect(message).not.toBeNull();
        const named = {
          ...item,
          must_name: {
            ...item.must_name,
            ...(typeof item.must_name['field'] === 'string' ? { field: ours(item.must_name['field']) } : {}),
          },
          match: item.match?.map(ours),
        };
        expect({ message, missing: missingFrom(message!, named as typeof item) }).toEqual({ message, missing: [] });
        expect(message).not.toMatch(/hunter2|abc123/);
      }
    });
  }
});
