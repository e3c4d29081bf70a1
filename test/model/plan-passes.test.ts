import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkBoundaries, gridBelow, planPasses } from '../../src/model/plan-passes.ts';
import type { ReplaySequence } from '../../src/types.ts';

/** Few different ids and short sequences, so that prefixes, duplicates and extensions are common. */
const sequence: fc.Arbitrary<ReplaySequence> = fc
  .array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 9 })
  .chain((ids) =>
    fc.subarray([...ids.keys()]).map((rows) => ({ ids: Int32Array.from(ids), rows: Int32Array.from(rows) })),
  );
const sequences = fc.array(sequence, { maxLength: 12 });

/** Ids up to the last wanted row: what has to be computed at all. */
const needed = (s: ReplaySequence): Int32Array => s.ids.subarray(0, (s.rows.at(-1) ?? -1) + 1);

function distinctPrefixes(list: readonly ReplaySequence[]): number {
  const seen = new Set<string>();
  for (const s of list) for (let n = 1; n <= needed(s).length; n++) seen.add(s.ids.subarray(0, n).join());
  return seen.size;
}

describe('gridBelow', () => {
  it('is the last boundary at or below a position that the chunks of every longer sequence have', () => {
    fc.assert(
      fc.property(fc.nat(60), fc.nat(40), fc.integer({ min: 1, max: 9 }), (position, root, chunk) => {
        const bounds = [position + 3 * chunk, position + 5 * chunk + 1].map((more) =>
          chunkBoundaries(0, root + more, chunk, root > 0 ? [root] : []),
        );
        const common = bounds[0].filter((bound) => bounds[1].includes(bound) && bound <= position);
        expect(gridBelow(position, root, chunk)).toBe(Math.max(...common));
      }),
    );
  });
});

describe('planPasses', () => {
  it.each(['prefix', 'whole', 'none'] as const)(
    'delivers every wanted row once, from a token with the same past (%s)',
    (reuse) => {
      fc.assert(
        fc.property(sequences, (list) => {
          const given = new Set<string>();
          for (const pass of planPasses(list, reuse)) {
            const leader = list[pass.sequence].ids;
            expect([...pass.wanted]).toEqual([...new Set(pass.wanted)].sort((a, b) => a - b));
            for (const [k, position] of pass.wanted.entries()) {
              expect(position).toBeGreaterThanOrEqual(pass.start);
              expect(position).toBeLessThan(pass.end);
              for (const taker of pass.takers[k]) {
                const { ids, rows } = list[taker.sequence];
                expect(rows[taker.row]).toBe(position);
                expect(ids.subarray(0, position + 1)).toEqual(leader.subarray(0, position + 1));
                const key = `${taker.sequence}:${taker.row}`;
                expect(given.has(key)).toBe(false);
                given.add(key);
              }
            }
          }
          expect(given.size).toBe(list.reduce((n, s) => n + s.rows.length, 0));
        }),
      );
    },
  );

  it('computes each distinct prefix once, each pass going on from what the one before left behind', () => {
    fc.assert(
      fc.property(sequences, (list) => {
        let computed = 0;
        let held = new Int32Array(0);
        const branches = new Set<number>([0]);
        for (const pass of planPasses(list, 'prefix')) {
          const ids = list[pass.sequence].ids;
          expect(held.subarray(0, pass.start)).toEqual(ids.subarray(0, pass.start));
          // A state that cannot be rewound must have been kept where this pass starts.
          expect(branches.has(pass.start) || pass.start === held.length).toBe(true);
          for (const at of branches) if (at > pass.start) branches.delete(at);
          for (const at of pass.branches) branches.add(at);
          computed += pass.end - pass.start;
          held = ids.slice(0, pass.end);
        }
        expect(computed).toBe(distinctPrefixes(list));
      }),
    );
  });

  it('runs no sequence that is a prefix of another when states cannot be kept', () => {
    fc.assert(
      fc.property(sequences, (list) => {
        const paths = new Set(list.filter((s) => s.rows.length > 0).map((s) => needed(s).join()));
        const leaves = [...paths].filter((p) => ![...paths].some((q) => q.startsWith(`${p},`)));
        expect(planPasses(list, 'whole')).toHaveLength(leaves.length);
      }),
    );
  });

  it('does not depend on the order of the sequences for what is computed', () => {
    fc.assert(
      fc.property(sequences, (list) => {
        const ranges = (l: readonly ReplaySequence[]): string[] =>
          planPasses(l, 'prefix').map((p) => `${l[p.sequence].ids.subarray(0, p.end).join()}@${p.start}`);
        expect(ranges([...list].reverse())).toEqual(ranges(list));
      }),
    );
  });
});

describe('chunkBoundaries', () => {
  it('covers the range, cuts at every branch, and keeps chunks between a half and one and a half of the size where nothing is cut', () => {
    const size = fc.integer({ min: 1, max: 50 });
    fc.assert(
      fc.property(
        fc.nat(300),
        fc.integer({ min: 1, max: 300 }),
        size,
        fc.array(fc.nat(600)),
        (start, length, chunk, at) => {
          const end = start + length;
          const branches = [...new Set(at)].sort((a, b) => a - b);
          const bounds = chunkBoundaries(start, end, chunk, branches);
          expect(bounds[0]).toBe(start);
          expect(bounds.at(-1)).toBe(end);
          for (const b of branches) if (b > start && b < end) expect(bounds).toContain(b);
          for (let i = 1; i < bounds.length; i++) {
            const step = bounds[i] - bounds[i - 1];
            expect(step).toBeGreaterThan(0);
            expect(step).toBeLessThan(1.5 * chunk);
          }
          const plain = chunkBoundaries(start, end, chunk);
          for (let i = 1; i + 1 < plain.length; i++) expect(plain[i] - plain[i - 1]).toBe(chunk);
          if (plain.length > 2) expect(end - plain.at(-2)!).toBeGreaterThanOrEqual(chunk / 2);
        },
      ),
    );
  });

  it('gives one chunk for an unlimited size', () => {
    expect(chunkBoundaries(3, 9000, Infinity)).toEqual([3, 9000]);
  });
});
