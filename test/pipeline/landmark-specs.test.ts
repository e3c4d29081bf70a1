import { describe, expect, it } from 'vitest';
import { DEFAULTS } from '../../src/config/schema.ts';
import { landmarkSpecs } from '../../src/pipeline/forecast-input.ts';

describe('landmarks of a configuration', () => {
  it('gives each anchor and offset once, with every position named for it, the default configuration too', () => {
    const specs = landmarkSpecs(DEFAULTS.landmarks as unknown as Parameters<typeof landmarkSpecs>[0]);
    expect(specs).toEqual([
      { anchor: 'reveal', offset: 1, positions: ['prompt_end', 'pre_action'] },
      { anchor: 'first_critical', offset: 0, positions: ['pre_action'] },
    ]);
  });
});
