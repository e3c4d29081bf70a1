import { afterAll, describe, expect, it } from 'vitest';
import { readModel } from '../../../src/model/graph/read-model.ts';
import { cpuObstacle } from '../../../src/model/graph/supported-ops.ts';
import { embedObstacle } from '../../../src/model/inspect-model.ts';
import { measureTaps } from '../../../src/model/live-taps.ts';
import { listFixtures } from './models.ts';

const fixtures = listFixtures().filter(({ golden }) => golden.expect !== 'refuse');
let graphs = 0;
let taps = 0;
afterAll(() => console.info(`live taps: ${taps} taps of ${graphs} graphs move the logits`));

describe('every tap of every graph that can run here', () => {
  it.each(fixtures.map((fixture) => [fixture.name, fixture.folder]))(
    'moves the logits when a vector is added there: %s',
    async (_name, folder) => {
      const read = await readModel(folder);
      if ((embedObstacle(read) ?? cpuObstacle(read.model.graph)) !== null) return;
      const names = [...read.taps.keys()];
      const effects = await measureTaps(folder, null, names, { threads: 1, executionProvider: 'cpu' });
      expect(effects.filter(({ moved }) => !(moved > 0))).toEqual([]);
      expect(effects.map(({ tap }) => tap)).toEqual(names);
      graphs += 1;
      taps += names.length;
    },
    120_000,
  );
});
