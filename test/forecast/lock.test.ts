import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { canonical, lockChanges, makeLock, type LockContent } from '../../src/forecast/lock.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const content: LockContent = {
  config: { forecast: { depth: 'full', taps: ['resid_post.1'] }, seed: 1 },
  rows: ['a 2 pre_action', 'b 2 pre_action'],
  hypotheses: ['probe minus text:so_far > 0 at reveal+1, x-'],
  thresholds: { '0.05': 0.61 },
};
const lock = (change: Partial<LockContent> = {}) => makeLock({ ...content, ...change }, '2026-01-01T00:00:00Z', sha256);

test('the hash depends on content only, not on the order of keys or rows', () => {
  const reordered = lock({
    config: { seed: 1, forecast: { taps: ['resid_post.1'], depth: 'full' } },
    rows: content.rows.toReversed(),
  });
  expect(reordered.hash).toBe(lock().hash);
  expect(lockChanges(lock(), reordered)).toEqual([]);
});

test('every change after the lock is named by its field', () => {
  const later = lock({
    config: { forecast: { depth: 'full', taps: ['resid_post.2'] }, seed: 1 },
    rows: ['a 2 pre_action'],
    thresholds: { '0.05': 0.7 },
  });
  expect(later.hash).not.toBe(lock().hash);
  expect(lockChanges(lock(), later)).toEqual([
    { field: 'config.forecast.taps', locked: '["resid_post.1"]', now: '["resid_post.2"]' },
    { field: 'thresholds.0.05', locked: '0.61', now: '0.7' },
    { field: 'rows', locked: '2 rows', now: '1 rows' },
  ]);
});

test('a lock survives being written as JSON', () => {
  const read = JSON.parse(JSON.stringify(lock())) as ReturnType<typeof lock>;
  expect(lockChanges(lock(), read)).toEqual([]);
  expect(canonical(read)).toBe(canonical(lock()));
});
