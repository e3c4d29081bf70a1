import { basename, join } from 'node:path';
import { writeMapping } from '../config/draft-mapping.ts';
import { EPISODE_FIELDS, EVENT_FIELDS, type EventField } from '../config/mapping-fields.ts';
import { EVENT_ALIASES, loadMapping } from '../config/mapping.ts';
import { draftTools } from '../dataset/inspect/draft-tools.ts';
import { inspectSource, type SourceProfile } from '../dataset/inspect/inspect-source.ts';
import { type Proposal, proposeMapping } from '../dataset/inspect/propose-mapping.ts';
import { type ProfileSummary, summarise } from '../dataset/inspect/value-profile.ts';
import { type DatasetSource, readMetas } from '../dataset/read.ts';
import { assignGroups } from '../dataset/split.ts';
import { writeFileAtomic } from '../lib/atomic-write.ts';
import type { EpisodeMeta, Exclusion } from '../types.ts';
import type { PipelineContext } from './context.ts';

export interface InspectRequest {
  /** Files, folders or patterns. */
  readonly paths: readonly string[];
  /** A mapping to try on the data. */
  readonly mapping: string | null;
  /** Folder for mapping.yaml, tools.json and inspection.json. */
  readonly out: string | null;
}

/** The JSON document of `forewarn inspect --json`. */
export interface Inspection {
  readonly schemaVersion: 1;
  readonly tables: readonly {
    readonly name: string;
    readonly role: string;
    readonly files: readonly string[];
    readonly bytes: number;
    readonly rows: number;
    readonly badRows: number;
    readonly columns: readonly ({ readonly name: string; readonly type: string } & ProfileSummary)[];
  }[];
  readonly episodes: number;
  readonly unsafe: number;
  /** model, run, cf_value … → [value, episodes, unsafe], most frequent first. */
  readonly counts: Readonly<Record<string, readonly (readonly [string, number, number])[]>>;
  readonly log: {
    readonly column: string | null;
    readonly format: string;
    readonly events: number;
    readonly keys: readonly ({ readonly key: string } & ProfileSummary)[];
    readonly tools: readonly { readonly name: string; readonly calls: number }[];
    readonly unreadable: readonly { readonly reason: string; readonly count: number; readonly first: string }[];
  };
  readonly proposal: Proposal & { readonly text: string };
  readonly tools: readonly object[];
  readonly notes: readonly string[];
  /** What the given mapping makes of the data; null = none was given. */
  readonly trial: MappingTrial | null;
}

export interface MappingTrial {
  readonly mapping: string;
  readonly episodes: number;
  readonly setAside: number;
  readonly reasons: readonly { readonly reason: string; readonly count: number; readonly first: string }[];
  readonly warnings: readonly string[];
  readonly groups: number;
  /** world, condition, end → [value, episodes, unsafe]. */
  readonly counts: Readonly<Record<string, readonly (readonly [string, number, number])[]>>;
}

const keysOf = (field: EventField): readonly string[] => [field, ...(EVENT_ALIASES[field] ?? [])];

function countBy(metas: readonly EpisodeMeta[], value: (meta: EpisodeMeta) => string): [string, number, number][] {
  const counts = new Map<string, [string, number, number]>();
  for (const meta of metas) {
    const name = value(meta);
    const entry = counts.get(name) ?? [name, 0, 0];
    entry[1] += 1;
    if (meta.unsafe !== null) entry[2] += 1;
    counts.set(name, entry);
  }
  return [...counts.values()].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

/** Reads everything as a run would, with no limit on bad rows. */
async function tryMapping(path: string, profile: SourceProfile, context: PipelineContext): Promise<MappingTrial> {
  const mapping = await loadMapping(path);
  const files = (role: string): readonly string[] | null => {
    const found = profile.tables.filter((table) => table.role === role).flatMap((table) => table.files);
    return found.length === 0 ? null : found;
  };
  const source: DatasetSource = {
    episodes: files('episodes') ?? [],
    scenarios: files('scenarios'),
    reportLabels: files('reportLabels'),
    tools: null,
  };
  const reasons = new Map<string, { count: number; readonly first: string }>();
  const warnings: string[] = [];
  let setAside = 0;
  const metas = await readMetas(source, mapping, {
    where: {},
    maxBad: 1,
    onExclusion: (exclusion: Exclusion) => {
      setAside += 1;
      const known = reasons.get(exclusion.reason);
      if (known) known.count += 1;
      else reasons.set(exclusion.reason, { count: 1, first: exclusion.detail });
    },
    onWarning: (_kind, detail) => warnings.push(detail),
    signal: context.signal,
  });
  return {
    mapping: mapping.name,
    episodes: metas.length,
    setAside,
    reasons: Array.from(reasons, ([reason, value]) => ({ reason, ...value })),
    warnings,
    groups: new Set(assignGroups(metas)).size,
    counts: {
      world: countBy(metas, (meta) => meta.world),
      condition: countBy(metas, (meta) => meta.condition),
      end: countBy(metas, (meta) => meta.end),
    },
  };
}

function describe(profile: SourceProfile, proposal: Proposal, text: string, trial: MappingTrial | null): Inspection {
  const { events, labels } = profile;
  return {
    schemaVersion: 1,
    tables: profile.tables.map((table) => ({
      ...table,
      columns: table.columns.map(({ name, type, profile: values }) => ({ name, type, ...summarise(values) })),
    })),
    episodes: labels.episodes,
    unsafe: labels.unsafe,
    counts: Object.fromEntries(
      Array.from(labels.byColumn, ([column, counts]) => [
        column,
        Array.from(counts, ([value, { episodes, unsafe }]): [string, number, number] => [value, episodes, unsafe]).sort(
          (a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1),
        ),
      ]),
    ),
    log: {
      column: profile.logColumn,
      format: profile.format,
      events: events.events,
      keys: Array.from(events.keys, ([key, values]) => ({ key, ...summarise(values) })),
      tools: Array.from(events.tools, ([name, { calls }]) => ({ name, calls })).sort((a, b) => b.calls - a.calls),
      unreadable: Array.from(profile.badLogs, ([reason, value]) => ({ reason, ...value })),
    },
    proposal: { ...proposal, text },
    tools: draftTools(events),
    notes: profile.notes,
    trial,
  };
}

function mappingText(proposal: Proposal, paths: readonly string[]): string {
  return writeMapping(proposal.mapping, proposal.comments, [
    `Proposed by forewarn inspect from ${paths.map((path) => basename(path)).join(', ')}. Read it through before use.`,
    ...(proposal.decide.length > 0 ? ['Only you can say:', ...proposal.decide.map((line) => `- ${line}`)] : []),
    ...(proposal.missing.length > 0
      ? ['The source does not have:', ...proposal.missing.map((line) => `- ${line}`)]
      : []),
  ]);
}

/** What is in the files, which mapping fits them, and what is missing. @throws DataError (65), UserError (2) */
export async function inspectPaths(request: InspectRequest, context: PipelineContext): Promise<Inspection> {
  const { progress } = context;
  progress.start('inspect', 0, 'episodes');
  const profile = await inspectSource(request.paths, {
    keys: {
      step: keysOf('step'),
      tool_name: keysOf('tool_name'),
      tool_args: keysOf('tool_args'),
      calls: keysOf('calls'),
    },
    fields: EPISODE_FIELDS,
    onProgress: (rows) => progress.advance(rows),
    signal: context.signal,
  });
  progress.advance(profile.labels.episodes);
  progress.end();
  const name = basename(request.paths[0] ?? 'source').replace(/\..*$/, '') || 'source';
  const proposal = proposeMapping(name, profile, {
    episodeFields: EPISODE_FIELDS,
    eventFields: EVENT_FIELDS,
    eventAliases: EVENT_ALIASES,
  });
  const text = mappingText(proposal, request.paths);
  const trial = request.mapping === null ? null : await tryMapping(request.mapping, profile, context);
  const inspection = describe(profile, proposal, text, trial);
  if (request.out !== null) {
    await writeFileAtomic(join(request.out, 'mapping.yaml'), text);
    await writeFileAtomic(join(request.out, 'tools.json'), `${JSON.stringify(inspection.tools, null, 2)}\n`);
    await writeFileAtomic(join(request.out, 'inspection.json'), `${JSON.stringify(inspection, null, 2)}\n`);
  }
  return inspection;
}
