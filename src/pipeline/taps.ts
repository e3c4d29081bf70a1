import type { Config } from '../config/schema.ts';
import { UserError } from '../errors.ts';
import { joinTaps } from '../lib/joined-taps.ts';
import type { Tap } from '../types.ts';

/**
 * `capture` of the configuration → names of taps, in the order of the flow.
 * @param blocks of the model
 * @throws UserError (2) for a layer the model does not have
 */
export function resolveTaps(capture: Pick<Config['capture'], 'kinds' | 'layers'>, blocks: number): Tap[] {
  const { layers } = capture;
  const wanted =
    layers === 'all'
      ? Array.from({ length: blocks }, (_, block) => block)
      : Array.isArray(layers)
        ? layers
        : // Every n-th, and always the last: the search has to see the end of the stream.
          Array.from({ length: blocks }, (_, block) => block).filter(
            (block) => (blocks - 1 - block) % layers.every === 0,
          );
  const wrong = wanted.find((block) => block >= blocks);
  if (wrong !== undefined)
    throw new UserError(
      `capture.layers: expected blocks in 0..${blocks - 1} of this model, got ${wrong}. Correct the list`,
    );
  const taps: Tap[] = [];
  if (capture.kinds.includes('embed')) taps.push('embed');
  for (const block of [...wanted].sort((a, b) => a - b)) {
    for (const kind of ['resid_mid', 'resid_post'] as const)
      if (capture.kinds.includes(kind)) taps.push(`${kind}.${block}`);
  }
  if (capture.kinds.includes('final_norm')) taps.push('final_norm');
  return taps;
}

/**
 * What selection searches: every captured tap, then the sets that are read together.
 * @throws UserError (2) for a set that names a tap which is not captured, or one twice
 */
export function searchedTaps(taps: readonly Tap[], layerSets: readonly (readonly string[])[]): Tap[] {
  for (const [index, set] of layerSets.entries()) {
    const missing = set.find((tap, at) => !taps.includes(tap) || set.indexOf(tap) !== at);
    if (missing === undefined) continue;
    throw new UserError(
      `train.layerSets[${index}]: expected captured taps, each once (${taps.join(', ')}), got ${missing}. Correct the list, or capture that tap`,
    );
  }
  return [...taps, ...layerSets.map(joinTaps)];
}
