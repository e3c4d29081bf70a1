import { z } from 'zod';
import { EPISODE_FIELDS, EVENT_FIELDS, LOG_FORMATS, type EventField, type Mapping } from './mapping-fields.ts';
import { explain } from './explain.ts';
import { readYaml } from './yaml-text.ts';

/** Mapping files (mappings/*.yaml): what a source calls things and what its values mean. Defaults are CAPE-Bench's. */

function isPattern(text: string): boolean {
  try {
    return new RegExp(text) instanceof RegExp;
  } catch {
    return false;
  }
}

const names = z.union([z.string().min(1), z.array(z.string().min(1))]);
const reference = z.string().regex(/^(episodes|scenarios)\.\S+$/, 'episodes.COLUMN or scenarios.COLUMN');
const pattern = z.string().min(1).refine(isPattern, 'a regular expression');
const joinColumns = z
  .array(z.union([z.string().min(1), z.strictObject({ episodes: z.string().min(1), other: z.string().min(1) })]))
  .min(1)
  .describe('columns of both tables, or {episodes: COLUMN, other: COLUMN} where their names differ');
const scalar = z.union([z.string(), z.number(), z.boolean()]);
const from = z.union([z.literal(0), z.literal(1)]);
const origin = z
  .enum(['sequence', 'prompt', 'generation', 'transcript'])
  .describe('sequence = prompt ++ generated of the turn; transcript = the whole episode as one text');

const mappingSchema = z.strictObject({
  name: z.string().min(1),
  format: z.enum(LOG_FORMATS).describe('events = one object a turn; the others are message lists'),
  columns: z.partialRecord(z.enum(EPISODE_FIELDS), names).describe('only where a column is not called by its own name'),
  absent: z
    .array(z.enum(EPISODE_FIELDS))
    .describe('fields the source does not have, or whose column means another thing'),
  required: z.array(z.enum(EPISODE_FIELDS)),
  key: z.array(z.enum(EPISODE_FIELDS)).min(1).describe('fields that together name an episode'),
  world: z.union([z.literal('none'), z.strictObject({ unsafe: names, safe: names })]),
  condition: z.strictObject({
    from: z.enum(EPISODE_FIELDS),
    rules: z
      .array(z.strictObject({ match: pattern, name: z.string().min(1) }))
      .describe('the first that matches counts'),
    default: z.string().min(1),
  }),
  status: z.strictObject({ finished: z.array(z.string()), escalated: z.array(z.string()), limit: z.array(z.string()) }),
  revealMinusOne: z.enum(['first_prompt', 'none', 'unknown']).describe('what −1 in reveal_event means'),
  eventMinusOne: z.enum(['none', 'refuse']),
  stepsFrom: from,
  stepsCount: z.enum(['turns', 'messages']),
  resultOrder: z
    .enum(['calls', 'log'])
    .describe('of the results of several calls in a turn: that of the calls, or as the messages stand in the log'),
  missing: z.partialRecord(z.enum(EPISODE_FIELDS), z.array(scalar).min(1)).describe('values that mean "no value"'),
  numbersAsText: z.enum(['accept', 'refuse']),
  nanLiteral: z.enum(['missing', 'refuse']).describe('NaN written in JSON text'),
  trueWords: z.array(z.string()),
  falseWords: z.array(z.string()),
  opening: z.strictObject({ system: reference.nullable(), user: reference.nullable() }),
  tools: reference.nullable(),
  duplicateText: z.array(reference),
  join: z.strictObject({ scenarios: joinColumns, reportLabels: joinColumns }),
  events: z.partialRecord(z.enum(EVENT_FIELDS), names).describe('event keys that are not called by their own name'),
  positions: z.strictObject({
    origin,
    from,
    perModel: z.array(z.strictObject({ match: pattern, origin, from })),
    names: z.array(z.string().min(1)).describe('names of a flat list’s entries, in their order within a turn'),
    keys: z.record(z.string().min(1), z.string().min(1)).describe('position → event key, where events hold them flat'),
  }),
  reportLabel: z.string().min(1),
  limits: z.array(z.string()).describe('weak points of the labels, for the report'),
});

/** What CAPE-Bench's data card says, and the commonest spellings of what it leaves open. */
const DEFAULTS = {
  format: 'events',
  columns: {},
  absent: [],
  required: ['episode_id', 'events_json', 'first_unsafe_event'],
  key: ['run', 'episode_id'],
  world: { unsafe: ['unsafe'], safe: ['safe'] },
  condition: { from: 'run', rules: [], default: 'all' },
  status: {
    finished: ['completed', 'finished', 'done'],
    escalated: ['escalated'],
    limit: ['step_limit', 'max_steps', 'max_turns', 'timeout', 'token_limit', 'limit'],
  },
  revealMinusOne: 'unknown',
  eventMinusOne: 'refuse',
  stepsFrom: 0,
  stepsCount: 'turns',
  resultOrder: 'calls',
  missing: {},
  numbersAsText: 'refuse',
  nanLiteral: 'refuse',
  trueWords: [],
  falseWords: [],
  opening: { system: 'scenarios.system_prompt', user: 'scenarios.task_prompt' },
  tools: null,
  duplicateText: ['scenarios.task_prompt', 'scenarios.files'],
  join: { scenarios: ['scenario_id'], reportLabels: ['run', 'episode_id'] },
  events: {},
  positions: {
    origin: 'sequence',
    from: 0,
    perModel: [],
    names: ['prompt_end', 'reasoning_end', 'action_start', 'action_end'],
    keys: {},
  },
  reportLabel: 'label',
  limits: [],
} as const;

/** Objects whose keys a file may give in part; the others are taken whole. */
const MERGED = ['condition', 'status', 'opening', 'join', 'positions'] as const;

/** Other spellings seen in agent logs, tried after the field's own name. */
export const EVENT_ALIASES: Readonly<Partial<Record<EventField, readonly string[]>>> = {
  step: ['turn', 'turn_index', 'index'],
  reasoning: ['thinking', 'reasoning_content', 'analysis', 'thought'],
  content: ['text', 'response'],
  tool_name: ['tool', 'function'],
  tool_args: ['arguments', 'args', 'tool_arguments', 'tool_input'],
  tool_args_text: ['tool_args_raw', 'arguments_text'],
  tool_result: ['result', 'observation', 'tool_output'],
  tool_call_id: ['call_id'],
  calls: ['tool_calls'],
  before: ['user_before'],
  after: ['user_after'],
  unsafe_action: ['unsafe'],
  critical: ['critical_action'],
  escalation: ['escalated'],
  positions: ['token_positions'],
  generated_ids: ['completion_ids', 'output_token_ids'],
  prompt_ids: ['prompt_token_ids', 'input_token_ids'],
  prompt_text: ['rendered_prompt', 'raw_prompt'],
  completion_text: ['raw_completion'],
};

function knownKeys(path: readonly PropertyKey[]): readonly string[] {
  if (path.length === 0) return Object.keys(mappingSchema.shape);
  if (path.length > 1) return [];
  if (path[0] === 'columns' || path[0] === 'missing') return EPISODE_FIELDS;
  if (path[0] === 'events') return EVENT_FIELDS;
  const inner = (mappingSchema.shape as Record<string, z.ZodType>)[String(path[0])];
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Reads a mapping file and fills in what it leaves out. @throws UserError (2) naming file, line and key */
export async function loadMapping(path: string): Promise<Mapping> {
  const file = await readYaml(path);
  const given = file.value;
  const merged: Record<string, unknown> = { ...DEFAULTS, ...given };
  for (const key of MERGED) if (isPlain(given[key])) merged[key] = { ...DEFAULTS[key], ...given[key] };
  const parsed = mappingSchema.safeParse(merged);
  if (!parsed.success) throw explain(parsed.error, { file, value: merged, known: knownKeys });
  return complete(parsed.data);
}

const list = (value: string | readonly string[]): readonly string[] => (typeof value === 'string' ? [value] : value);

const join = (columns: z.infer<typeof joinColumns>): Mapping['join']['scenarios'] =>
  columns.map((column) => (typeof column === 'string' ? { episodes: column, other: column } : column));

function complete(data: z.infer<typeof mappingSchema>): Mapping {
  const { absent, missing, ...rest } = data;
  const columns = Object.fromEntries(
    EPISODE_FIELDS.map((field) => {
      const own = rest.columns[field];
      const usual = field === 'events_json' && rest.format !== 'events' ? ['messages', field] : [field];
      return [field, absent.includes(field) ? [] : own === undefined ? usual : list(own)];
    }),
  ) as unknown as Mapping['columns'];
  const events = Object.fromEntries(
    EVENT_FIELDS.map((field) => {
      const own = rest.events[field];
      return [field, own === undefined ? [field, ...(EVENT_ALIASES[field] ?? [])] : list(own)];
    }),
  ) as unknown as Mapping['events'];
  return {
    ...rest,
    columns,
    events,
    join: { scenarios: join(rest.join.scenarios), reportLabels: join(rest.join.reportLabels) },
    missing: Object.fromEntries(Object.entries(missing).map(([field, values]) => [field, values.map(String)])),
    required: rest.required.filter((field) => !absent.includes(field)),
    world: rest.world === 'none' ? 'none' : { unsafe: list(rest.world.unsafe), safe: list(rest.world.safe) },
  };
}
