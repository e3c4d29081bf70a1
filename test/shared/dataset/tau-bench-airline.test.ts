import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadMapping } from '../../../src/config/mapping.ts';
import { readEpisodesInOrder, readMetas, type DatasetSource } from '../../../src/dataset/read.ts';
import { selectEpisodes } from '../../../src/dataset/select.ts';
import { assignGroups } from '../../../src/dataset/split.ts';
import { isJsonObject } from '../../../src/lib/json.ts';
import { inspectPaths } from '../../../src/pipeline/inspect.ts';
import type { Episode } from '../../../src/types.ts';
import { sharedPath } from '../fixtures.ts';

const folder = sharedPath('data', 'tau-bench-airline');
const MAPPING = fileURLToPath(new URL('../../../mappings/tau-bench-airline.yaml', import.meta.url));
const mapping = await loadMapping(MAPPING);
const source = (ending: string): DatasetSource => ({
  episodes: [`${folder}/episodes.${ending}`],
  scenarios: [`${folder}/scenarios.${ending}`],
  reportLabels: null,
  tools: null,
});
const problems: string[] = [];
const options = {
  where: {},
  maxBad: 0,
  onExclusion: (exclusion: { readonly detail: string }) => problems.push(exclusion.detail),
  onWarning: (kind: string, detail: string) => problems.push(`${kind}: ${detail}`),
};
const metas = await readMetas(source('parquet'), mapping, options);

/** Rows of the source as they are, for comparison. */
interface LoggedEvent {
  readonly content: string | null;
  readonly tool_name: string | null;
  readonly tool_args: unknown;
  readonly tool_result: string | null;
  readonly user_before: readonly string[];
}
const rows = readFileSync(`${folder}/episodes.jsonl`, 'utf8')
  .trim()
  .split('\n')
  .map(
    (line) =>
      JSON.parse(line) as { readonly episode_id: string; readonly n_turns: number; readonly events_json: string },
  );

describe('tau-bench airline', () => {
  it('reads every episode without a complaint, the same from parquet and JSON lines', async () => {
    expect(problems).toEqual([]);
    const other = await readMetas(source('jsonl'), mapping, options);
    const withoutPlace = (list: typeof metas): unknown[] => list.map(({ source: _source, ...meta }) => meta);
    expect(withoutPlace(other)).toEqual(withoutPlace(metas));
    expect(metas.map((meta) => [meta.episodeId, meta.turnCount])).toEqual(
      rows.map((row) => [row.episode_id, row.n_turns]),
    );
  });

  it('counts what its README counts', () => {
    const unsafe = metas.filter((meta) => meta.unsafe !== null);
    expect([metas.length, unsafe.length]).toEqual([200, 71]);
    expect(metas.filter((meta) => meta.informed)).toHaveLength(70);
    const steps = unsafe.map((meta) => meta.unsafe ?? -1).sort((a, b) => a - b);
    expect([steps[0], steps[35], steps[70]]).toEqual([3, 10, 28]);
    // 113 episodes with a change that took effect, allowed or not: the second cut of baselines.json.
    expect(metas.filter((meta) => meta.firstCritical !== null)).toHaveLength(113);
    const ends = Object.fromEntries(
      ['finished', 'escalated', 'limit'].map((end) => [end, metas.filter((meta) => meta.end === end).length]),
    );
    expect(ends).toEqual({ finished: 147, escalated: 48, limit: 5 });
  });

  it('has one group for each task, and no worlds', () => {
    const groups = assignGroups(metas);
    expect(new Set(groups).size).toBe(50);
    for (const [index, meta] of metas.entries()) {
      expect(meta.world).toBe('none');
      expect(groups[index]).toBe(groups[metas.findIndex((other) => other.scenarioId === meta.scenarioId)]);
    }
  });

  it('keeps every turn word for word, with the policy as system message and 14 tools', async () => {
    const byId = new Map(rows.map((row) => [row.episode_id, JSON.parse(row.events_json) as LoggedEvent[]]));
    let turns = 0;
    for await (const episode of readEpisodesInOrder(source('parquet'), mapping, metas)) {
      expect(episode.opening).toEqual([
        { role: 'system', content: expect.stringContaining('# Airline Agent Policy') as string },
      ]);
      expect(episode.tools).toHaveLength(14);
      const logged = byId.get(episode.episodeId) ?? [];
      expect(episode.turns.map(shortly)).toEqual(
        logged.map((event) => ({
          content: event.content,
          calls: event.tool_name === null ? [] : [event.tool_name],
          arguments: event.tool_name === null ? [] : [Object.keys(event.tool_args as object)],
          results: event.tool_result === null ? [] : [event.tool_result],
          before: event.user_before,
        })),
      );
      turns += episode.turns.length;
    }
    expect(turns).toBe(2454);
  });

  it('gives the small configuration 12 episodes of each class, at most two of a task in a class', () => {
    const selected = selectEpisodes(metas, {
      shortest: 12,
      requires: ['reveal', 'critical_after_reveal'],
      maxPerScenario: 2,
    });
    for (const unsafe of [true, false]) {
      const some = selected.filter((meta) => (meta.unsafe !== null) === unsafe);
      expect(some).toHaveLength(12);
      for (const meta of some)
        expect(some.filter((other) => other.scenarioId === meta.scenarioId).length).toBeLessThanOrEqual(2);
    }
    for (const meta of selected) expect(meta.firstCritical ?? -1).toBeGreaterThan(meta.reveal ?? 1e9);
  });

  it('is what inspect proposes of it, but for what only its README can tell', async () => {
    const found = await inspectPaths(
      { paths: [folder], mapping: MAPPING, out: null },
      {
        clock: { now: () => 0, date: () => new Date(0) },
        progress: { start() {}, advance() {}, note() {}, end() {} },
        signal: new AbortController().signal,
      },
    );
    expect(found).toMatchObject({ episodes: 200, unsafe: 71, trial: { episodes: 200, setAside: 0, groups: 50 } });
    expect(found.proposal.mapping).toMatchObject({
      world: 'none',
      status: { finished: ['user_stop'], escalated: ['transferred'], limit: ['step_limit'] },
      tools: 'scenarios.tools',
    });
    expect(found.log.tools.reduce((sum, tool) => sum + tool.calls, 0)).toBe(
      metas.reduce((sum, meta) => sum + meta.toolNames.flat().length, 0),
    );
  });
});

function shortly(turn: Episode['turns'][number]): object {
  return {
    content: turn.content,
    calls: turn.calls.map((call) => call.name),
    arguments: turn.calls.map((call) => (isJsonObject(call.arguments) ? [...call.arguments.keys()] : null)),
    results: turn.results.map((result) => result.text),
    before: turn.before.map((message) => message.content),
  };
}
