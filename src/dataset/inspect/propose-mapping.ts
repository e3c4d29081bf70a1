import type { EpisodeField, EventField } from '../../config/mapping-fields.ts';
import { bare, findColumn } from './column-names.ts';
import type { SourceProfile } from './inspect-source.ts';
import type { ValueProfile } from './value-profile.ts';

/** A mapping as far as the data show it, and what only somebody who knows the source can say. */
export interface Proposal {
  /** Keys of a mapping file; plain values. */
  readonly mapping: Readonly<Record<string, unknown>>;
  /** Comment above a key of the file. */
  readonly comments: Readonly<Record<string, string>>;
  /** Questions that the data cannot answer. */
  readonly decide: readonly string[];
  /** What the source does not have, and what follows. */
  readonly missing: readonly string[];
}

export interface Vocabulary {
  readonly episodeFields: readonly EpisodeField[];
  readonly eventFields: readonly EventField[];
  readonly eventAliases: Readonly<Partial<Record<EventField, readonly string[]>>>;
}

const TRUE = ['true', 'True', 'TRUE', 'yes', 'Yes', 'y', 't'];
const FALSE = ['false', 'False', 'FALSE', 'no', 'No', 'n', 'f'];
const FLAGS: readonly EpisodeField[] = [
  'nuisance',
  'unsafe_episode',
  'informed_violation',
  'escalated',
  'critical_done',
  'success',
];
const INTEGERS: readonly EpisodeField[] = ['reveal_event', 'first_unsafe_event', 'first_critical_event'];

const END_WORDS: readonly (readonly ['limit' | 'escalated' | 'finished', RegExp])[] = [
  ['limit', /limit|max|time_?out|length|truncat|budget|exhaust/i],
  ['escalated', /escalat|transfer|hand_?off|permission/i],
  ['finished', /done|complet|finish|stop|success|ended|ok$/i],
];

interface Draft {
  readonly mapping: Record<string, unknown>;
  readonly comments: Record<string, string>;
  readonly decide: string[];
  readonly missing: string[];
}

/** Columns under other names, fields the source lacks, and how values read. */
function proposeColumns(profile: SourceProfile, words: Vocabulary, draft: Draft): Map<EpisodeField, ValueProfile> {
  const table = profile.tables.filter((item) => item.role === 'episodes');
  const names = [...new Set(table.flatMap((item) => item.columns.map((column) => column.name)))];
  const columns: Record<string, string> = {};
  const absent: EpisodeField[] = [];
  const found = new Map<EpisodeField, ValueProfile>();
  for (const field of words.episodeFields) {
    const name = field === 'events_json' ? profile.logColumn : findColumn(field, names);
    if (name === null) {
      absent.push(field);
      continue;
    }
    if (name !== field && !(field === 'events_json' && name === 'messages' && profile.format !== 'events'))
      columns[field] = name;
    const own = table.flatMap((item) => item.columns).find((column) => column.name === name);
    if (own) found.set(field, own.profile);
  }
  if (Object.keys(columns).length > 0) draft.mapping['columns'] = columns;
  const optional = absent.filter((field) => field !== 'episode_id' && field !== 'events_json');
  if (optional.length > 0) draft.mapping['absent'] = optional;
  for (const field of ['episode_id', 'events_json'] as const)
    if (absent.includes(field))
      draft.missing.push(`a column for ${field}: no episode can be read without it (columns: {${field}: …})`);
  if (absent.includes('first_unsafe_event'))
    draft.missing.push(
      'a column for first_unsafe_event: it is taken from the first unsafe_action of the events, if they have that',
    );
  if (absent.includes('reveal_event')) draft.missing.push('reveal_event: there are no reveal landmarks');
  if (!['run', 'model'].every((field) => found.has(field as EpisodeField)) && absent.includes('run'))
    draft.mapping['key'] = ['episode_id'];
  return found;
}

function proposeValues(profile: SourceProfile, found: ReadonlyMap<EpisodeField, ValueProfile>, draft: Draft): void {
  const words = new Set<string>();
  for (const field of FLAGS)
    for (const value of found.get(field)?.values?.keys() ?? []) if (found.get(field)!.kinds.text > 0) words.add(value);
  const [yes, no] = [TRUE, FALSE].map((list) => list.filter((word) => words.has(word)));
  if (yes && yes.length > 0) draft.mapping['trueWords'] = yes;
  if (no && no.length > 0) draft.mapping['falseWords'] = no;
  const strange = [...words].filter((word) => word !== '' && !TRUE.includes(word) && !FALSE.includes(word));
  if (strange.length > 0)
    draft.decide.push(
      `trueWords, falseWords: what ${strange
        .slice(0, 6)
        .map((word) => JSON.stringify(word))
        .join(', ')} mean`,
    );
  if (INTEGERS.some((field) => (found.get(field)?.kinds.text ?? 0) > 0)) draft.mapping['numbersAsText'] = 'accept';
  const minus = profile.labels.minusOne;
  if (minus.has('reveal_event')) {
    draft.mapping['revealMinusOne'] = 'unknown';
    draft.comments['revealMinusOne'] =
      `reveal_event is −1 in ${minus.get('reveal_event')} episodes: first_prompt = the worlds' first prompts differ, none = never revealed`;
    draft.decide.push('revealMinusOne: what −1 in reveal_event means (those rows are set aside until then)');
  }
  const other = ['first_unsafe_event', 'first_critical_event'].filter((column) => minus.has(column));
  if (other.length > 0) {
    draft.mapping['eventMinusOne'] = 'none';
    draft.comments['eventMinusOne'] =
      `−1 stands in ${other.map((column) => `${column} (${minus.get(column)})`).join(', ')}; taken for "no such event"`;
  }
  const { steps } = profile.labels;
  if (steps.compared > 0 && steps.fromOne > steps.fromZero) {
    draft.mapping['stepsFrom'] = 1;
    draft.comments['stepsFrom'] =
      `first_unsafe_event fits the first unsafe_action in ${steps.fromOne} of ${steps.compared} episodes if steps count from 1, in ${steps.fromZero} from 0`;
  } else if (profile.events.firstSteps.minimum === 1 && profile.events.firstSteps.maximum === 1) {
    draft.mapping['stepsFrom'] = 1;
    draft.comments['stepsFrom'] = 'events are numbered from 1';
  }
  if (steps.compared > 0 && Math.max(steps.fromOne, steps.fromZero) < steps.compared)
    draft.decide.push(
      `${steps.compared - Math.max(steps.fromOne, steps.fromZero)} episodes whose first_unsafe_event is not the first unsafe_action of the events: they will be set aside`,
    );
  if (profile.format !== 'events' && steps.outside > 0) draft.mapping['stepsCount'] = 'messages';
}

function proposeWorlds(profile: SourceProfile, found: ReadonlyMap<EpisodeField, ValueProfile>, draft: Draft): void {
  const { pairs } = profile.labels;
  const twins = [...pairs.values()].filter((bits) => (bits & 3) === 3).length;
  if (!found.has('cf_value') || (pairs.size > 0 && twins === 0)) {
    draft.mapping['world'] = 'none';
    draft.comments['world'] = found.has('cf_value')
      ? `none of ${pairs.size} pairs has episodes of both worlds`
      : 'no column says which world an episode is from';
    draft.missing.push('matched worlds: pair figures are undefined, repeated trials of a task are compared instead');
  } else {
    const values = [...(found.get('cf_value')?.values?.keys() ?? [])];
    if (!values.every((value) => value === 'safe' || value === 'unsafe')) {
      draft.mapping['world'] = { unsafe: ['unsafe'], safe: ['safe'] };
      draft.decide.push(
        `world: which of ${values.slice(0, 8).join(', ')} is the world where the action is allowed (safe) and where not (unsafe)`,
      );
    }
  }
  const runs = [...(profile.labels.byColumn.get('run')?.keys() ?? [])];
  const rules = [
    { match: 'obfuscate', name: 'obfuscate' },
    { match: 'reasoning|monitor', name: 'monitored' },
    { match: 'candid', name: 'candid' },
  ].filter((rule) => runs.some((run) => new RegExp(rule.match).test(run)));
  if (rules.length > 0) {
    draft.mapping['condition'] = {
      from: 'run',
      rules,
      default: rules.some((rule) => rule.name === 'candid') ? 'all' : 'candid',
    };
    draft.comments['condition'] = `from the names of ${runs.length} runs; check`;
  }
  const status = [...(profile.labels.byColumn.get('status')?.keys() ?? [])];
  const ends: Record<'finished' | 'escalated' | 'limit', string[]> = { finished: [], escalated: [], limit: [] };
  const unclear: string[] = [];
  for (const value of status) {
    const kind = END_WORDS.find(([, pattern]) => pattern.test(value))?.[0];
    if (kind) ends[kind].push(value);
    else unclear.push(value);
  }
  if (status.length > 0) {
    draft.mapping['status'] = ends;
    draft.comments['status'] = 'guessed from the words; limit = stopped before the agent was done (censored)';
  }
  if (unclear.length > 0)
    draft.decide.push(`status: which end ${unclear.slice(0, 8).join(', ')} is (finished, escalated or limit)`);
}

function proposeEvents(profile: SourceProfile, words: Vocabulary, draft: Draft): void {
  const seen = [...profile.events.keys.keys()];
  const top = seen.filter((key) => !/[.[]/.test(key));
  if (profile.format !== 'events') draft.mapping['format'] = profile.format;
  const events: Record<string, string> = {};
  const known = new Set<string>();
  for (const field of words.eventFields) {
    const names = [field, ...(words.eventAliases[field] ?? [])];
    for (const name of names) known.add(name);
    if (names.some((name) => top.includes(name))) continue;
    const near = top.find((key) => names.some((name) => bare(name) === bare(key)));
    if (near !== undefined) {
      events[field] = near;
      known.add(near);
    }
  }
  if (Object.keys(events).length > 0) draft.mapping['events'] = events;
  const message = new Set(['role', 'name', 'tool_call_id', 'function_call', 'refusal', 'id', 'type']);
  const unknown = top.filter((key) => !known.has(key) && !(profile.format !== 'events' && message.has(key)));
  if (unknown.length > 0)
    draft.decide.push(`events: what the keys ${unknown.slice(0, 12).join(', ')} hold (they are not read)`);
  const positions = words.eventAliases.positions?.concat('positions').filter((key) => top.includes(key)) ?? [];
  const flat = unknown.filter(
    (key) =>
      /tok(en)?_?(pos|idx|index)|_pos(ition)?$/i.test(key) && (profile.events.keys.get(key)?.kinds.integer ?? 0) > 0,
  );
  if (positions.length > 0 || flat.length > 0) {
    draft.mapping['positions'] = {
      origin: 'sequence',
      from: 0,
      ...(flat.length > 0 ? { keys: Object.fromEntries(flat.map((key) => [key, key])) } : {}),
    };
    draft.comments['positions'] =
      'the data cannot say what recorded token positions count from: forewarn plan compares them with its own';
    draft.decide.push(
      'positions: whether recorded token positions count from the sequence, the prompt, the generation or the transcript, and from 0 or 1',
    );
  } else draft.missing.push('recorded token positions: replay cannot be checked against them');
  if (!top.some((key) => ['prompt_ids', ...(words.eventAliases.prompt_ids ?? [])].includes(key)))
    draft.missing.push('token ids (prompt_ids, generated_ids): prompts are rendered again from the chat template');
}

function proposeTables(profile: SourceProfile, draft: Draft): void {
  const episodes = profile.tables.find((table) => table.role === 'episodes');
  const scenarios = profile.tables.find((table) => table.role === 'scenarios');
  const column = (name: string): string | null =>
    episodes?.columns.some((item) => item.name === name)
      ? `episodes.${name}`
      : scenarios?.columns.some((item) => item.name === name)
        ? `scenarios.${name}`
        : null;
  const [system, user, tools] = [
    column('system_prompt') ?? column('system'),
    column('task_prompt') ?? column('task'),
    column('tools'),
  ];
  draft.mapping['opening'] = { system, user };
  draft.comments['opening'] =
    'which texts the model was given; null for one it never saw (such as instructions to a simulated user)';
  draft.mapping['tools'] = tools;
  if (tools === null)
    draft.missing.push('tool schemas: name a file with them (dataset.tools; tools.json is a draft from the calls)');
  if (profile.format === 'events' && system === null)
    draft.missing.push('a system prompt: no column is called so (opening: {system: …})');
  if (scenarios === undefined) draft.missing.push('a scenarios table (system prompts, tasks)');
  if (!profile.tables.some((table) => table.role === 'reportLabels'))
    draft.missing.push('report labels: lies cannot be studied');
  const duplicate = [user, column('files')].filter((name) => name !== null);
  draft.mapping['duplicateText'] = duplicate;
}

/** @throws nothing: a source that cannot be read at all still gets a proposal that says what is missing */
export function proposeMapping(name: string, profile: SourceProfile, words: Vocabulary): Proposal {
  const draft: Draft = { mapping: { name }, comments: {}, decide: [], missing: [] };
  const found = proposeColumns(profile, words, draft);
  proposeEvents(profile, words, draft);
  proposeValues(profile, found, draft);
  proposeWorlds(profile, found, draft);
  proposeTables(profile, draft);
  const { labels } = profile;
  if (labels.episodes > 0 && (labels.unsafe === 0 || labels.unsafe === labels.episodes))
    draft.missing.push(`both classes: ${labels.unsafe} of ${labels.episodes} episodes are unsafe`);
  if (labels.duplicates > 0)
    draft.decide.push(`key: ${labels.duplicates} ids stand twice in a run (${labels.duplicateIds.join(', ')})`);
  for (const [reason, { count, first }] of profile.badLogs)
    draft.decide.push(`${count} logs that cannot be read: ${reason} (first: ${first})`);
  if ([...profile.badLogs.keys()].some((reason) => reason.startsWith('NaN'))) draft.mapping['nanLiteral'] = 'missing';
  return draft;
}
