import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { writeFileAtomic } from '../../src/lib/atomic-write.ts';
import { sha256 } from '../../src/lib/content-hash.ts';
import { seededRng } from '../../src/lib/rng.ts';
import { encodeSafetensors } from '../../src/lib/safetensors.ts';
import { findDone } from '../../src/store/activation-shards.ts';
import { openFeatures } from '../../src/store/features.ts';
import { importShards, type ImportOptions, type ImportSummary } from '../../src/store/import-shards.ts';
import { exportPlan, type PlanFile, readPlan, writePlan, writePlanShard } from '../../src/store/plan-shards.ts';
import type { Capture, SequencePlan } from '../../src/types.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

const WIDTH = 8;
const TAPS = ['embed', 'resid_post.0'];
const now = new Date('2026-01-01');
let folder: string;
let from: string;

const capture = (turn: number, position: string, start: number, end = start + 1): Capture => ({
  turn,
  position,
  start,
  end,
  pooling: end - start > 1 ? 'mean' : 'none',
  straddles: false,
});
const sequence = (
  episode: string,
  turn: number,
  ids: readonly number[],
  captures: readonly Capture[],
): SequencePlan => ({
  episode,
  turn,
  ids: Int32Array.from(ids),
  promptLength: 3,
  idsFrom: 'logged',
  captures,
  cut: null,
});

/** Two worlds that agree up to token 5, and the second turn of one of them. */
const SHARDS: readonly (readonly SequencePlan[])[] = [
  [
    sequence('minus', 0, [1, 2, 3, 4, 5, 6], [capture(0, 'prompt_end', 2), capture(0, 'pre_action', 4)]),
    sequence(
      'plus',
      0,
      [1, 2, 3, 4, 5, 7],
      [capture(0, 'prompt_end', 2), capture(0, 'pre_action', 4), capture(0, 'action_end', 5)],
    ),
    sequence(
      'minus',
      1,
      [1, 2, 3, 4, 5, 6, 8, 9],
      [capture(0, 'observation_end', 6), capture(1, 'span:reasoning', 5, 8)],
    ),
  ],
  [sequence('other', 0, [1, 2, 9], [capture(0, 'prompt_end', 2)])],
];

/** State of a token: depends on all tokens up to it (the embedding on itself only), as a causal model's does. */
function state(tap: string, ids: Int32Array, at: number): number[] {
  const rng = seededRng(tap, ...(tap === 'embed' ? [ids[at]] : ids.subarray(0, at + 1)));
  return Array.from({ length: WIDTH }, () => rng.next() - 0.5);
}

interface Given {
  readonly rows: [string, number, string][];
  readonly data: Map<string, number[][]>;
  readonly metadata: Record<string, string>;
}

/** What an engine that does everything right gives for a shard. */
function compute(sequences: readonly SequencePlan[]): Given {
  const rows: [string, number, string][] = [];
  const data = new Map<string, number[][]>(TAPS.map((tap) => [tap, []]));
  for (const { episode, ids, captures } of sequences) {
    for (const { turn, position, start, end } of captures) {
      rows.push([episode, turn, position]);
      for (const [tap, list] of data) {
        const states = Array.from({ length: end - start }, (_, i) => state(tap, ids, start + i));
        list.push(
          Array.from({ length: WIDTH }, (_, c) => states.reduce((sum, row) => sum + row[c], 0) / states.length),
        );
      }
    }
  }
  const bytes = Buffer.concat(sequences.map(({ ids }) => Buffer.from(ids.buffer)));
  return { rows, data, metadata: { ids_sha256: sha256(bytes), engine: 'fake 1.0' } };
}

async function give(shard: number, { rows, data, metadata }: Given): Promise<void> {
  const tensors = [...data].map(([name, list]) => ({
    name,
    dtype: 'F32' as const,
    shape: [list.length, list[0]?.length ?? WIDTH],
    data: Float32Array.from(list.flat()),
  }));
  await writeFileAtomic(
    join(from, `shard-0000${shard}.safetensors`),
    encodeSafetensors(tensors, { rows: JSON.stringify(rows), ...metadata }),
  );
}

let plan: PlanFile;
beforeEach(async () => {
  folder = temporaryFolder('import');
  from = temporaryFolder('engine');
  const shards = [];
  for (const [index, sequences] of SHARDS.entries()) {
    const rows = sequences.reduce((sum, { captures }) => sum + captures.length, 0);
    const hash = await writePlanShard(folder, index, sequences);
    shards.push({ index, sequences: sequences.length, rows, naiveTokens: 0, distinctTokens: 0, sha256: hash });
    await give(index, compute(sequences));
  }
  plan = { keyHash: 'k', schemaVersion: 1, shards, taps: TAPS } as unknown as PlanFile;
  await writePlan(folder, plan);
});

const take = (more: Partial<ImportOptions> = {}): Promise<ImportSummary> =>
  importShards({ from, folder, plan, taps: TAPS, width: WIDTH, keyHash: 'k', dtype: 'float32', ...more });
/** Changes what the engine gives for the first shard. */
const spoil = async (change: (given: Given) => Partial<Given> | undefined): Promise<void> => {
  const given = compute(SHARDS[0]);
  await give(0, { ...given, ...change(given) });
};

describe('shards of another engine', () => {
  it('are taken and read like our own, whatever the order of their rows', async () => {
    await spoil(({ rows, data }) => ({
      rows: rows.toReversed(),
      data: new Map([...data].map(([tap, list]) => [tap, list.toReversed()])),
    }));
    const summary = await take();
    // prompt_end and pre_action of the two worlds stand after the same tokens.
    expect(summary).toEqual({ rows: 8, engines: ['fake 1.0'], skipped: [], pairs: 2, largestDifference: 0 });
    expect([...(await findDone(folder, 'k', 2, true, now)).keys()]).toEqual([0, 1]);
    const features = await openFeatures(folder, [0, 1]);
    const read = await features.read('resid_post.0', [
      { episode: 'plus', turn: 0, position: 'action_end' },
      { episode: 'other', turn: 0, position: 'prompt_end' },
    ]);
    const expected = [...state('resid_post.0', SHARDS[0][1].ids, 5), ...state('resid_post.0', SHARDS[1][0].ids, 2)];
    expect([...read.data]).toEqual(expected.map(Math.fround));
  });

  it('may differ a little after the same tokens, as engines round, and the difference is told', async () => {
    await spoil(({ data }) => {
      data.get('resid_post.0')![2][0] += 1e-3;
      return undefined;
    });
    const { largestDifference } = await take();
    expect(largestDifference).toBeGreaterThan(1e-3);
    expect(largestDifference).toBeLessThan(5e-3);
    await expect(take({ tolerance: 1e-4 })).rejects.toThrow(/equal states of resid_post\.0 after the same tokens/);
  });

  it('may leave out sequences they could not do, with the reason', async () => {
    await spoil(({ rows, data, metadata }) => ({
      rows: rows.slice(0, 5),
      data: new Map([...data].map(([tap, list]) => [tap, list.slice(0, 5)])),
      metadata: { ...metadata, skipped: JSON.stringify([['minus', 1, 'out of memory']]) },
    }));
    const { rows, skipped } = await take();
    expect(rows).toBe(6);
    expect(skipped).toMatchObject([{ stage: 'extract', episode: 'minus', turn: 1, detail: 'out of memory' }]);
  });

  const refused: [string, (given: Given) => Partial<Given> | undefined, RegExp][] = [
    [
      'read other tokens',
      ({ metadata }) => ({ metadata: { ...metadata, ids_sha256: sha256('') } }),
      /"ids_sha256" of [0-9a-f]{64}, got e3b0/,
    ],
    ['do not say which tokens they read', () => ({ metadata: {} }), /"ids_sha256" .*got none/],
    [
      'lack a row',
      ({ rows, data }) => ({
        rows: rows.slice(1),
        data: new Map([...data].map(([tap, list]) => [tap, list.slice(1)])),
      }),
      /a row for prompt_end of turn 0, episode minus, got none/,
    ],
    [
      'have a row too many',
      ({ rows, data }) => ({
        rows: [...rows, ['x', 0, 'p']],
        data: new Map([...data].map(([tap, list]) => [tap, [...list, list[0]]])),
      }),
      /only rows of the plan, got x 0 p/,
    ],
    [
      'have a row twice',
      ({ rows }) => ({ rows: [...rows.slice(0, -1), rows[0]] }),
      /each row once, got prompt_end of turn 0, episode minus again/,
    ],
    [
      'name rows in another way',
      () => ({ rows: [{ episode: 'minus' }] as unknown as Given['rows'] }),
      /\[episode, turn, position\]/,
    ],
    [
      'lack a tap',
      ({ data }) => ({ data: new Map([['embed', data.get('embed')!]]) }),
      /the tap resid_post\.0, got embed/,
    ],
    [
      'have another width',
      ({ data }) => ({ data: new Map([...data].map(([tap, list]) => [tap, list.map((row) => row.slice(1))])) }),
      /embed as F32, F16 or BF16 \[7, 8\], got F32 \[7, 7\]/,
    ],
    [
      'hold a number that is none',
      ({ data }) => {
        data.get('embed')![3][2] = Number.NaN;
        return undefined;
      },
      /finite values of embed, got 1 that are not at pre_action of turn 0, episode plus/,
    ],
    [
      'hold a row of zeros',
      ({ data }) => {
        data.get('resid_post.0')![6].fill(0);
        return undefined;
      },
      /got zeros at span:reasoning of turn 1, episode minus/,
    ],
    [
      'hold a state that does not depend on the text',
      ({ data }) => {
        for (const row of data.get('resid_post.0')!) row.fill(1);
        return undefined;
      },
      /resid_post\.0 that depend on the text, got the same in all 7 rows/,
    ],
    [
      'differ where twins have read the same',
      ({ data }) => {
        data.get('resid_post.0')![3] = data.get('resid_post.0')![4];
        return undefined;
      },
      /equal states of resid_post\.0 after the same tokens .* between pre_action of turn 0, episode minus and pre_action of turn 0, episode plus/,
    ],
  ];
  for (const [what, change, message] of refused) {
    it(`are refused when they ${what}, and nothing is stored`, async () => {
      await spoil(change);
      await expect(take()).rejects.toMatchObject({
        exitCode: 65,
        message: expect.stringMatching(message) as string,
      });
      expect(readdirSync(folder).sort()).toEqual(['plan', 'plan.json']);
    });
  }

  it('are all there, and no others', async () => {
    rmSync(join(from, 'shard-00001.safetensors'));
    await expect(take()).rejects.toThrow(/expected 2 shards as in the plan, got 1, without shard-00001/);
    await give(1, compute(SHARDS[1]));
    await give(2, compute(SHARDS[1]));
    await expect(take()).rejects.toThrow(/got 3, with shard-00002/);
  });
});

describe('an exported plan', () => {
  it('is the plan', async () => {
    const to = join(from, 'export');
    await exportPlan(folder, plan, to);
    await exportPlan(folder, plan, to);
    expect(await readPlan(to, 'k', now)).toEqual(plan);
    expect(readdirSync(join(to, 'plan'))).toEqual(['shard-00000.safetensors', 'shard-00001.safetensors']);
  });

  it('does not go where another one is', async () => {
    const to = join(from, 'export');
    await exportPlan(folder, plan, to);
    await expect(exportPlan(folder, { ...plan, keyHash: 'other' }, to)).rejects.toMatchObject({ exitCode: 78 });
  });
});
