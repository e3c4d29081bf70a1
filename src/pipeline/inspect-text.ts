import { quote } from '../dataset/cell.ts';
import type { ProfileSummary } from '../dataset/inspect/value-profile.ts';
import type { Inspection } from './inspect.ts';

/** An inspection as lines for a terminal. Everything that comes from the data is quoted: logs are hostile. */

const number = (value: number): string => value.toLocaleString('en');
const name = (text: string): string => (/^[\w.[\]()/ -]{1,60}$/.test(text) ? text : quote(text));
const share = (part: number, of: number): string =>
  of === 0 ? '–' : part === of ? '100 %' : `${Math.min(99.9, Math.max(0.1, (100 * part) / of)).toFixed(1)} %`;

function kinds(profile: ProfileSummary): string {
  const total = profile.count;
  return Object.entries(profile.kinds)
    .sort((a, b) => b[1] - a[1])
    .map(([kind, count]) => (count === total ? kind : `${kind} ${share(count, total)}`))
    .join(', ');
}

function values(profile: ProfileSummary): string {
  const parts: string[] = [];
  if (profile.empty > 0) parts.push(`empty ${share(profile.empty, profile.count)}`);
  if (profile.minimum !== null)
    parts.push(`${number(profile.minimum)} … ${number(profile.maximum ?? profile.minimum)}`);
  if (profile.values !== null && profile.minimum === null && (profile.distinct ?? 0) <= 60) {
    const shown = profile.values.filter(([value]) => value !== '').slice(0, 4);
    const more = (profile.distinct ?? 0) - shown.length;
    if (shown.length > 0)
      parts.push(
        shown.map(([value, count]) => `${name(value)} ${number(count)}`).join(', ') +
          (more > 0 ? `, ${more} more` : ''),
      );
  }
  return parts.join('; ');
}

const MAX_GROUPS = 12;

function groups(title: string, counts: readonly (readonly [string, number, number])[]): string[] {
  if (counts.length === 0) return [];
  const shown = counts.slice(0, MAX_GROUPS);
  return [
    `${title}:`,
    ...shown.map(([value, episodes, unsafe]) => `  ${name(value)}  ${number(episodes)} (${number(unsafe)} unsafe)`),
    ...(counts.length > shown.length ? [`  … and ${counts.length - shown.length} more`] : []),
  ];
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.min(40, Math.max(...rows.map((row) => row[column]?.length ?? 0))),
  );
  return rows.map((row) =>
    `  ${row.map((cell, column) => cell.padEnd(column === row.length - 1 ? 0 : (widths[column] ?? 0))).join('  ')}`.trimEnd(),
  );
}

function trialLines(trial: NonNullable<Inspection['trial']>): string[] {
  return [
    '',
    `With mapping ${trial.mapping}: ${number(trial.episodes)} episodes in ${number(trial.groups)} groups, ${number(trial.setAside)} rows set aside`,
    ...trial.reasons.map((item) => `  ${name(item.reason)} ${number(item.count)}, first: ${item.first}`),
    ...trial.warnings.map((line) => `  warning: ${line}`),
    ...Object.entries(trial.counts).flatMap(([title, counts]) => groups(title, counts)),
  ];
}

export function inspectionText(inspection: Inspection): string[] {
  const { log, proposal } = inspection;
  const lines: string[] = [];
  for (const item of inspection.tables) {
    lines.push(
      `${name(item.name)}: ${item.role}, ${number(item.rows)} rows in ${number(item.files.length)} ${item.files.length === 1 ? 'file' : 'files'}, ${number(Math.ceil(item.bytes / 1e6))} MB${item.badRows > 0 ? `, ${number(item.badRows)} unreadable rows` : ''}`,
      ...table(item.columns.map((column) => [name(column.name), name(column.type), kinds(column), values(column)])),
      '',
    );
  }
  lines.push(
    `${number(inspection.episodes)} episodes, ${number(inspection.unsafe)} unsafe (${share(inspection.unsafe, inspection.episodes)})`,
    ...Object.entries(inspection.counts).flatMap(([title, counts]) => groups(title, counts)),
  );
  if (log.column !== null) {
    lines.push(
      '',
      `${name(log.column)}: ${log.format}, ${number(log.events)} events; key, coverage, types`,
      ...table(
        log.keys.map((key) => [
          name(key.key),
          key.key.includes('.') ? '' : share(key.count, log.events),
          kinds(key),
          values(key),
        ]),
      ),
      ...log.unreadable.map(
        (item) => `  unreadable: ${number(item.count)} logs, ${item.reason} (first: ${item.first})`,
      ),
    );
    if (log.tools.length > 0)
      lines.push(
        `tools called: ${log.tools
          .slice(0, 20)
          .map((tool) => `${name(tool.name)} ${number(tool.calls)}`)
          .join(', ')}`,
      );
  }
  lines.push(...inspection.notes.map((note) => `note: ${note}`));
  if (inspection.trial !== null) lines.push(...trialLines(inspection.trial));
  lines.push(
    '',
    'Only you can say:',
    ...(proposal.decide.length === 0 ? ['  nothing'] : proposal.decide.map((line) => `  - ${line}`)),
  );
  lines.push(
    'Missing:',
    ...(proposal.missing.length === 0 ? ['  nothing'] : proposal.missing.map((line) => `  - ${line}`)),
  );
  return lines;
}
