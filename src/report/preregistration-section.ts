import type { Preregistration } from '../types.ts';
import { escapeHtml } from './escape.ts';
import { table } from './tables.ts';

/** What was decided before any test row was read, and what was changed after; a run without a lock says so. */
export function preregistrationSection(locked: Preregistration | undefined): string {
  if (locked === undefined) {
    return '<p>Nothing was locked before the test rows were read (<code>forewarn lock</code>), so every figure here is exploratory.</p>';
  }
  const { hash, lockedAt, rows, hypotheses, thresholds, folder, changes } = locked;
  const where =
    folder === null
      ? ''
      : ` It was locked for <code>${escapeHtml(folder)}</code>: the settings of data, model or capture are not those of this run.`;
  const changed =
    changes.length === 0
      ? '<p>Nothing was changed after the lock: configuration, rows, hypotheses and thresholds are those that were locked.</p>'
      : `<p><strong>${changes.length} changed after the lock</strong>, so figures that depend on them are exploratory:</p>${table(
          ['what', 'locked', 'now'],
          changes.map((change) => [change.field, shorten(change.locked), shorten(change.now)]),
        )}`;
  return `<p>Locked at ${escapeHtml(lockedAt)}, before outcomes of test rows were read: ${rows.toLocaleString('en')} rows, sha256 <code>${escapeHtml(hash)}</code>.${where}</p>
<ul>${hypotheses.map((line) => `<li>${escapeHtml(line)}</li>`).join('')}</ul>
${table(
  ['threshold', ''],
  Object.entries(thresholds).map(([name, value]) => [name, String(value)]),
)}
${changed}`;
}

const shorten = (text: string): string => (text.length > 120 ? `${text.slice(0, 120)}…` : text);
