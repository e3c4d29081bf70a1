import { splitTap } from '../lib/joined-taps.ts';
import type { FeatureMatrix } from '../types.ts';
import type { Features } from './features.ts';

/** The same features, which also read joined taps: [rows, Σ widths], columns in the order of the taps. */
export function joinedFeatures(features: Features): Features {
  return {
    ...features,
    async read(tap, keys) {
      const taps = splitTap(tap);
      if (taps.length === 1) return features.read(tap, keys);
      const columns = taps.length * features.width;
      const data = new Float32Array(keys.length * columns);
      for (const [index, each] of taps.entries()) {
        const part: FeatureMatrix = await features.read(each, keys);
        for (let row = 0; row < keys.length; row += 1) {
          const from = row * features.width;
          data.set(part.data.subarray(from, from + features.width), row * columns + index * features.width);
        }
      }
      return { data, rows: keys.length, columns };
    },
  };
}
