import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/errors.ts';
import { resolveTaps } from '../../src/pipeline/taps.ts';

describe('taps of a configuration', () => {
  it('stand in the order of the flow, each kind for each layer', () => {
    expect(resolveTaps({ kinds: ['final_norm', 'resid_post', 'resid_mid', 'embed'], layers: [1, 0] }, 2)).toEqual([
      'embed',
      'resid_mid.0',
      'resid_post.0',
      'resid_mid.1',
      'resid_post.1',
      'final_norm',
    ]);
  });
  it('always hold the last block when every n-th is asked for', () => {
    expect(resolveTaps({ kinds: ['resid_post'], layers: { every: 3 } }, 8)).toEqual([
      'resid_post.1',
      'resid_post.4',
      'resid_post.7',
    ]);
  });
  it('are refused for a block the model does not have, with the block and the model’s range', () => {
    const ask = (): unknown => resolveTaps({ kinds: ['resid_post'], layers: [4, 99] }, 30);
    expect(ask).toThrow(UserError);
    expect(ask).toThrow('capture.layers: expected blocks in 0..29 of this model, got 99');
  });
});
