import { DataError } from '../errors.ts';
import type { ModelReplayer } from '../model/open-replayer.ts';
import type { DoneFile } from '../store/activation-shards.ts';
import type { SequencePlan, Tap } from '../types.ts';

/**
 * Looks at the rows of one sequence when the replayer has seen values that no state can have: NaN, infinity, or a row of
 * zeros (an output that was never written; the embedding of a padding token may be zero). Pooling could hide them.
 * @param rows token positions, ascending
 * @param data [taps, rows, width]
 * @throws DataError (65) naming tap, token, turn and episode of the first
 */
export function refuseUnhealthy(
  { taps, health }: Pick<ModelReplayer, 'taps' | 'health'>,
  { episode, turn }: Pick<SequencePlan, 'episode' | 'turn'>,
  rows: Int32Array,
  data: Float32Array,
  width: number,
): void {
  const suspects = health().filter(
    ({ tap, nonFinite, zeroRows }) => nonFinite > 0 || (zeroRows > 0 && tap !== 'embed'),
  );
  for (const { tap, nonFinite, zeroRows } of suspects) {
    const first = taps.indexOf(tap) * rows.length;
    for (const [index, token] of rows.entries()) {
      const row = data.subarray((first + index) * width, (first + index + 1) * width);
      const bad = row.find((value) => !Number.isFinite(value));
      const where = `at token ${token} of turn ${turn}, episode ${episode}`;
      if (bad !== undefined)
        throw new DataError(
          `${tap}: expected finite activations, got ${bad} ${where} (${nonFinite} such values so far). Use a float32 or bfloat16 export of the model`,
        );
      if (tap !== 'embed' && row.every((value) => value === 0))
        throw new DataError(
          `${tap}: expected activations, got only zeros ${where} (${zeroRows} such rows so far). The graph or the execution provider is broken: try another export`,
        );
    }
  }
}

/** One line per tap with values that float16 cannot hold, with the worst of all shards. */
export function healthLines(shards: readonly DoneFile[]): string[] {
  const taps = new Map<Tap, { count: number; largest: number }>();
  for (const { taps: names, maxAbs, beyondFloat16 } of shards) {
    for (const [index, tap] of names.entries()) {
      const before = taps.get(tap) ?? { count: 0, largest: 0 };
      // Done files of earlier versions have no counts.
      const count = before.count + ((beyondFloat16 as readonly number[] | undefined)?.[index] ?? 0);
      taps.set(tap, { count, largest: Math.max(before.largest, maxAbs[index] ?? 0) });
    }
  }
  return [...taps].flatMap(([tap, { count, largest }]) =>
    count === 0
      ? []
      : [
          `${tap}: ${count.toLocaleString('en')} values beyond ±65,504 (largest ${largest.toPrecision(4)}): capture.dtype float16 would refuse them`,
        ],
  );
}
