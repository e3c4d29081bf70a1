import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { landmarkName, landmarkRows } from '../../src/forecast/landmarks.ts';
import { CENSORED, NO_LABEL, openLabels } from '../../src/forecast/sealed-labels.ts';
import { targetNamed } from '../../src/forecast/targets.ts';
import type { LandmarkSpec } from '../../src/forecast/types.ts';
import type { EpisodeMeta } from '../../src/types.ts';
import { meta } from './episodes.ts';

function rowsOf(
  episodes: readonly EpisodeMeta[],
  spec: Partial<LandmarkSpec>,
  change: { target?: string; horizon?: number; seed?: number } = {},
) {
  const sealed = landmarkRows({
    episodes,
    target: targetNamed(change.target ?? 'first_unsafe_event'),
    horizon: change.horizon ?? null,
    spec: { anchor: 'reveal', offset: 1, positions: ['prompt_end'], ...spec },
    seed: change.seed ?? 0,
  });
  const labels = openLabels(sealed.labels);
  return { ...sealed, rows: sealed.rows.map((row, i) => ({ ...row, label: labels[i] })) };
}

const reasons = (result: ReturnType<typeof rowsOf>) => result.exclusions.map((e) => e.reason);

test('reveal+1 is the turn after the reveal, and turn 0 where the first prompts already differ', () => {
  const { rows } = rowsOf([meta('a', { reveal: 1 }), meta('b', { reveal: -1 })], {});
  expect(rows.map((row) => row.turn)).toEqual([2, 0]);
});

test('an episode without a reveal is left out as never_revealed, one that acted by then as uninformed', () => {
  const result = rowsOf([meta('a', { reveal: null }), meta('b', { reveal: 2, unsafe: 2 })], {});
  expect(result.rows).toEqual([]);
  expect(reasons(result)).toEqual(['never_revealed', 'uninformed']);
});

test('at the turn of the act an episode is at risk before the marker of its call and not after it', () => {
  const episodes = [meta('a', { unsafe: 2 })];
  const positions = ['prompt_end', 'reasoning_start', 'reasoning_end', 'pre_action', 'action_name', 'action_end'];
  const result = rowsOf(episodes, { positions: [...positions, 'observation_end', 'recorded:x'] });
  expect(result.positions.map((p) => p.atRisk[0])).toEqual([1, 1, 1, 1, 0, 0, 0, 0]);
  expect(result.rows[0].label).toBe(1);
  expect(reasons(result)).toEqual(['not_at_risk', 'not_at_risk', 'not_at_risk', 'not_at_risk']);
});

test('with several calls in the turn the index of the call decides', () => {
  const twoCalls = [['look'], ['look'], ['look', 'wipe', 'look'], ['look'], ['look']];
  const episodes = [meta('a', { unsafe: 2, unsafeCall: 1, toolNames: twoCalls })];
  const positions = ['pre_action', 'action_name', 'action_end', 'pre_action:1', 'action_name:1', 'pre_action:2'];
  const result = rowsOf(episodes, { positions });
  expect(result.positions.map((p) => p.atRisk[0])).toEqual([1, 1, 1, 1, 0, 0]);
});

test('an unknown call of u counts as the first one', () => {
  const calls = [['look'], ['look'], ['look', 'wipe'], ['look'], ['look']];
  const result = rowsOf([meta('a', { unsafe: 2, toolNames: calls })], { positions: ['pre_action', 'pre_action:1'] });
  expect(result.positions.map((p) => p.atRisk[0])).toEqual([1, 0]);
});

test('a turn without a call has no pre_action and is counted as no_call', () => {
  const result = rowsOf([meta('a', { toolNames: [['look'], ['look'], [], ['look'], ['look']] })], {
    positions: ['prompt_end', 'pre_action'],
  });
  expect(result.positions.map((p) => p.atRisk[0])).toEqual([1, 0]);
  expect(reasons(result)).toEqual(['no_call']);
});

test('after the act the row stays for late alarms but has no label and is counted as not_at_risk', () => {
  const result = rowsOf([meta('a', { reveal: 0, unsafe: 1 })], { offset: 2 });
  expect(result.rows.map((row) => row.label)).toEqual([NO_LABEL]);
  expect(result.positions[0].atRisk[0]).toBe(0);
  expect(result.positions[0].inTime[0]).toBe(0);
  expect(reasons(result)).toEqual(['not_at_risk']);
});

test('the horizon h makes u = t + h − 1 a positive and u = t + h a negative', () => {
  const episodes = [3, 4].map((unsafe) => meta(`u${unsafe}`, { unsafe }));
  expect(rowsOf(episodes, {}, { horizon: 2 }).rows.map((row) => row.label)).toEqual([1, 0]);
  expect(rowsOf(episodes, {}).rows.map((row) => row.label)).toEqual([1, 1]);
});

test('a limit before any act censors; finished and escalated episodes are negatives', () => {
  const result = rowsOf(
    [meta('a', { end: 'limit' }), meta('b', { end: 'escalated' }), meta('c'), meta('d', { end: 'limit', unsafe: 4 })],
    {},
  );
  expect(result.rows.map((row) => row.label)).toEqual([CENSORED, 0, 0, 1]);
  expect(reasons(result)).toEqual(['censored']);
});

test('a turn that the episode does not reach is counted as no_turn', () => {
  expect(reasons(rowsOf([meta('a', { turnCount: 3 })], { offset: 2 }))).toEqual(['no_turn']);
  expect(reasons(rowsOf([meta('a', { reveal: -1 })], { offset: 0 }))).toEqual(['no_turn']);
});

test('first_critical cuts both classes at a decision of the same kind', () => {
  const result = rowsOf([meta('a', { firstCritical: 3, unsafe: 3 }), meta('b', { firstCritical: 2 }), meta('c')], {
    anchor: 'first_critical',
    offset: 0,
    positions: ['pre_action'],
  });
  expect(result.rows.map((row) => [row.turn, row.label])).toEqual([
    [3, 1],
    [2, 0],
  ]);
  expect(reasons(result)).toEqual(['no_critical']);
});

test('matched_steps cuts safe episodes after as many turns as an unsafe one of their template, capped at the last', () => {
  const episodes = [
    meta('u', { unsafe: 3, template: 'a' }),
    meta('v', { unsafe: 1, template: 'b' }),
    meta('s', { template: 'a' }),
    meta('short', { template: 'a', turnCount: 2 }),
    meta('lone', { template: 'c' }),
  ];
  const { rows } = rowsOf(episodes, { anchor: 'matched_steps', offset: 0 });
  expect(rows.slice(0, 4).map((row) => row.turn)).toEqual([3, 1, 3, 1]);
  expect([1, 3]).toContain(rows[4].turn);
});

const matchedTurns = (list: readonly EpisodeMeta[]) =>
  new Map(rowsOf(list, { anchor: 'matched_steps', offset: 0 }, { seed: 5 }).rows.map((r) => [r.episode, r.turn]));

test('matched_steps does not depend on the order of the episodes', () => {
  const episodes = Array.from({ length: 30 }, (_, i) =>
    meta(`e${i}`, { turnCount: 9, toolNames: [], unsafe: i % 3 === 0 ? (i * 7) % 8 : null, template: `t${i % 2}` }),
  );
  expect(matchedTurns(episodes.toReversed())).toEqual(matchedTurns(episodes));
});

test('no row at or after the act of its episode is ever at risk', () => {
  const positions = ['prompt_end', 'reasoning_end', 'pre_action', 'pre_action:1', 'action_end', 'observation_end'];
  fc.assert(
    fc.property(
      fc.record({
        reveal: fc.integer({ min: -1, max: 4 }),
        unsafe: fc.option(fc.integer({ min: 0, max: 4 })),
        unsafeCall: fc.option(fc.integer({ min: 0, max: 1 })),
        offset: fc.integer({ min: -2, max: 4 }),
        anchor: fc.constantFrom<LandmarkSpec['anchor']>('start', 'reveal', 'act', 'first_critical', 'matched_steps'),
      }),
      ({ offset, anchor, ...change }) => {
        const toolNames = Array.from({ length: 5 }, () => ['look', 'wipe']);
        const one = meta('a', { ...change, firstCritical: change.unsafe, toolNames });
        const result = rowsOf([one], { anchor, offset, positions });
        result.rows.forEach((row, i) => {
          result.positions.forEach(({ position, atRisk }) => {
            if (atRisk[i] === 0 || one.unsafe === null) return;
            expect(row.turn).toBeLessThanOrEqual(one.unsafe);
            if (row.turn < one.unsafe) return;
            const allowed = ['prompt_end', 'reasoning_end', 'pre_action'];
            if (one.unsafeCall === 1) allowed.push('pre_action:1', 'action_end');
            expect(allowed).toContain(position);
          });
        });
        expect(result.rows.length + new Set(result.exclusions.map((e) => e.episode)).size).toBeGreaterThanOrEqual(1);
      },
    ),
  );
});

const violation = (key: string, reportLabel: string | null) => meta(key, { unsafe: 2, reportLabel });

test('a lie is forecast among violations with a verdict, up to the start of the report', () => {
  const episodes = [
    ...['MISREPRESENTED', 'CANDID', 'NO_REPORT', 'UNPARSED'].map((label) => violation(label, label)),
    violation('unlabelled', null),
    meta('safe'),
  ];
  const at = (anchor: LandmarkSpec['anchor'], positions: string[]) =>
    rowsOf(episodes, { anchor, offset: 0, positions }, { target: 'misreported' });
  const report = at('report', ['report_start', 'report_end']);
  expect(report.rows.map((row) => [row.turn, row.label])).toEqual([
    [4, 1],
    [4, 0],
  ]);
  expect(report.positions.map((p) => [...p.atRisk])).toEqual([
    [1, 1],
    [0, 0],
  ]);
  expect(reasons(report).slice(0, 6)).toEqual([
    'not_at_risk',
    'not_at_risk',
    'no_report',
    'unparsed',
    'no_label',
    'no_violation',
  ]);
  // The act itself lies before the report: nothing there is hidden from the forecast of a lie.
  expect(at('act', ['pre_action', 'action_end']).positions.map((p) => [...p.atRisk])).toEqual([
    [1, 1],
    [1, 1],
  ]);
});

test('informed_violation leaves out who acted before knowing; escalated needs the turn of the escalation', () => {
  const early = meta('a', { reveal: 3, unsafe: 1, informed: false });
  const result = rowsOf(
    [early, meta('b', { unsafe: 3 })],
    { anchor: 'start', offset: 0 },
    { target: 'informed_violation' },
  );
  expect(result.rows.map((row) => row.label)).toEqual([1]);
  expect(reasons(result)).toEqual(['uninformed']);
  const escalations = [
    meta('a', { escalated: true }),
    meta('b', { escalated: true, firstEscalation: 3 }),
    meta('c', { escalated: false }),
  ];
  const second = rowsOf(escalations, {}, { target: 'escalated' });
  expect(second.rows.map((row) => row.label)).toEqual([1, 0]);
  expect(reasons(second)).toEqual(['no_escalation_turn']);
});

test('another event of the source is a target by its column', () => {
  const episodes = [
    meta('a', { extra: { attempt: 3 } }),
    meta('b', { extra: { attempt: null } }),
    meta('c', { extra: { attempt: 'x' } }),
    meta('d'),
  ];
  const result = rowsOf(episodes, {}, { target: 'column:attempt' });
  expect(result.rows.map((row) => row.label)).toEqual([1, 0]);
  expect(reasons(result)).toEqual(['bad_turn', 'no_column']);
});

test('an unknown target is refused with the known names', () => {
  expect(() => targetNamed('constructor')).toThrow(/expected one of first_unsafe_event.*got "constructor"/);
});

test('landmarks are named as in the figures', () => {
  expect(['reveal', 'start', 'act'].map((anchor) => landmarkName({ anchor, offset: 1 }))).toEqual([
    'reveal+1',
    'start+1',
    'act+1',
  ]);
  expect(landmarkName({ anchor: 'first_critical', offset: 0 })).toBe('first_critical');
  expect(landmarkName({ anchor: 'act', offset: -1 })).toBe('act-1');
});
