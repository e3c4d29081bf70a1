import { z } from 'zod';
import { EPISODE_FIELDS, EVENT_FIELDS, type Mapping } from './mapping-fields.ts';
import { explain, readYaml } from './yaml-text.ts';

const names = z.union([z.string().min(1), z.array(z.string().min(1))]);
const reference = z.string().regex(/^(episodes|scenarios)\.\S+$/, 'episodes.COLUMN or scenarios.COLUMN');

const mappingSchema = z.strictObject({
  name: z.string().min(1),
  columns: z.partialRecord(z.enum(EPISODE_FIELDS), names).describe('only where a column is not called by its own name'),
  absent: z.array(z.enum(EPISODE_FIELDS)).describe('fields the source does not have'),
  required: z.array(z.enum(EPISODE_FIELDS)),
  key: z.array(z.enum(EPISODE_FIELDS)).min(1),
  world: z.union([z.literal('none'), z.strictObject({ unsafe: names, safe: names })]),
  condition: z.strictObject({
    from: z.enum(EPISODE_FIELDS),
    rules: z.array(z.strictObject({ match: z.string().min(1), name: z.string().min(1) })),
    default: z.string().min(1),
  }),
  status: z.strictObject({ finished: z.array(z.string()), escalated: z.array(z.string()), limit: z.array(z.string()) }),
  revealMinusOne: z.enum(['first_prompt', 'none', 'unknown']),
  eventMinusOne: z.enum(['none', 'refuse']),
  stepsFrom: z.union([z.literal(0), z.literal(1)]),
  nanLiteral: z.enum(['missing', 'refuse']),
  trueWords: z.array(z.string()),
  falseWords: z.array(z.string()),
  opening: z.strictObject({ system: reference.nullable(), user: reference.nullable() }),
  tools: reference.nullable(),
  duplicateText: z.array(reference),
  join: z.strictObject({ scenarios: z.array(z.string().min(1)), reportLabels: z.array(z.string().min(1)) }),
  events: z.partialRecord(z.enum(EVENT_FIELDS), names),
  positions: z.strictObject({
    origin: z.enum(['sequence', 'prompt', 'generation', 'transcript']),
    from: z.union([z.literal(0), z.literal(1)]),
    names: z.array(z.string()),
  }),
  reportLabel: z.string().min(1),
  limits: z.array(z.string()),
});

/** What CAPE-Bench's data card says, and the commonest spellings of what it leaves open. */
const DEFAULTS = {
  columns: {},
  absent: [],
  required: ['episode_id', 'events_json', 'first_unsafe_event'],
  key: ['run', 'episode_id'],
  world: { unsafe: ['unsafe'], safe: ['safe'] },
  condition: { from: 'run', rules: [], default: 'all' },
  status: {
    finished: ['completed', 'finished', 'done'],
    escalated: ['escalated'],
    limit: ['step_limit', 'max_steps', 'timeout', 'token_limit'],
  },
  revealMinusOne: 'unknown',
  eventMinusOne: 'refuse',
  stepsFrom: 0,
  nanLiteral: 'refuse',
  trueWords: [],
  falseWords: [],
  opening: { system: 'scenarios.system_prompt', user: 'scenarios.task_prompt' },
  tools: null,
  duplicateText: ['scenarios.task_prompt', 'scenarios.files'],
  join: { scenarios: ['scenario_id'], reportLabels: ['run', 'episode_id'] },
  events: {},
  positions: { origin: 'sequence', from: 0, names: ['prompt_end', 'reasoning_end', 'action_start', 'action_end'] },
  reportLabel: 'label',
  limits: [],
} as const;

/** Other spellings seen in agent logs, tried after the field's own name. */
const EVENT_ALIASES: Readonly<Record<string, readonly string[]>> = {
  reasoning: ['thinking', 'reasoning_content', 'analysis'],
  tool_args: ['arguments', 'args', 'tool_arguments'],
  tool_args_text: ['tool_args_raw', 'arguments_text'],
  tool_result: ['result', 'observation', 'tool_output'],
  tool_name: ['tool', 'function'],
  calls: ['tool_calls'],
  before: ['user_before'],
  after: ['user_after'],
  positions: ['token_positions'],
  generated_ids: ['completion_ids', 'output_token_ids'],
  prompt_ids: ['prompt_token_ids', 'input_token_ids'],
};

/** @throws UserError (2) */
export async function loadMapping(path: string): Promise<Mapping> {
  const file = await readYaml(path);
  const merged = { ...DEFAULTS, ...(file.value as object) };
  const parsed = mappingSchema.safeParse(merged);
  if (!parsed.success)
    throw explain(parsed.error, file, merged, (at) => (at.length === 0 ? Object.keys(mappingSchema.shape) : []));
  const { absent, ...rest } = parsed.data;
  const list = (value: string | readonly string[]): readonly string[] => (typeof value === 'string' ? [value] : value);
  const columns = Object.fromEntries(
    EPISODE_FIELDS.map((field) => {
      const own = rest.columns[field];
      return [field, absent.includes(field) ? [] : own === undefined ? [field] : list(own)];
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
    world: rest.world === 'none' ? 'none' : { unsafe: list(rest.world.unsafe), safe: list(rest.world.safe) },
  };
}
