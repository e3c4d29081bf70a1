import type { LogFormat } from '../../config/mapping-fields.ts';
import { addValue, createProfile, type ValueProfile } from './value-profile.ts';

/** What the events of all episodes hold: keys, their types and coverage, and the calls of tools. */
export interface EventProfile {
  events: number;
  /** Key path → values: `tool_name`, `positions.prompt_end`, `calls[].name`. */
  readonly keys: Map<string, ValueProfile>;
  /** The nested ones of `keys` again, by what stands before the last name: built paths are slow to look up. */
  readonly paths: Map<string, Map<string, ValueProfile>>;
  readonly tools: Map<string, ToolProfile>;
  /** Number of the first event, where events are numbered. */
  readonly firstSteps: ValueProfile;
  /** Events an episode. */
  readonly lengths: ValueProfile;
}

export interface ToolProfile {
  calls: number;
  readonly parameters: Map<string, ValueProfile>;
}

/** Keys that the names of a mapping's fields may have in the events, the first present counts. */
export type EventKeys = Readonly<Record<'step' | 'tool_name' | 'tool_args' | 'calls', readonly string[]>>;

/** Logs are hostile: a log with random keys must not fill memory. */
const MAX_KEYS = 400;
const MAX_TOOLS = 300;
const MAX_PARAMETERS = 100;

type Plain = Readonly<Record<string, unknown>>;
export const isPlain = (value: unknown): value is Plain =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

export function createEventProfile(): EventProfile {
  return {
    events: 0,
    keys: new Map(),
    paths: new Map(),
    tools: new Map(),
    firstSteps: createProfile(),
    lengths: createProfile(),
  };
}

function profileOf(map: Map<string, ValueProfile>, key: string, most: number): ValueProfile | null {
  const known = map.get(key);
  if (known !== undefined) return known;
  if (map.size >= most) return null;
  const made = createProfile();
  map.set(key, made);
  return made;
}

function first(event: Plain, keys: readonly string[]): unknown {
  for (const key of keys) if (Object.hasOwn(event, key)) return event[key];
  return undefined;
}

interface SeenCall {
  readonly name: unknown;
  readonly args: unknown;
}

/** Calls of one event or message, in every format. */
function callsOf(event: Plain, format: LogFormat, keys: EventKeys): readonly SeenCall[] {
  if (format === 'anthropic-messages') {
    const content = event['content'];
    if (!Array.isArray(content)) return [];
    return content
      .filter((block): block is Plain => isPlain(block) && block['type'] === 'tool_use')
      .map((block) => ({ name: block['name'], args: block['input'] }));
  }
  const many = first(event, keys.calls);
  if (Array.isArray(many)) {
    return many.filter(isPlain).map((item) => {
      const inner = isPlain(item['function']) ? item['function'] : item;
      return {
        name: inner['name'] ?? first(inner, keys.tool_name),
        args: inner['arguments'] ?? first(inner, keys.tool_args),
      };
    });
  }
  return format === 'events' ? [{ name: first(event, keys.tool_name), args: first(event, keys.tool_args) }] : [];
}

function addCall(profile: EventProfile, call: SeenCall): void {
  if (typeof call.name !== 'string' || call.name === '') return;
  let tool = profile.tools.get(call.name);
  if (tool === undefined) {
    if (profile.tools.size >= MAX_TOOLS) return;
    tool = { calls: 0, parameters: new Map() };
    profile.tools.set(call.name, tool);
  }
  tool.calls += 1;
  let { args } = call;
  if (typeof args === 'string') {
    try {
      args = JSON.parse(args) as unknown;
    } catch {
      return;
    }
  }
  if (!isPlain(args)) return;
  for (const key of Object.keys(args)) {
    const parameter = profileOf(tool.parameters, key, MAX_PARAMETERS);
    if (parameter !== null) addValue(parameter, args[key]);
  }
}

/** One level into objects and lists of objects; tool arguments are counted by tool instead. */
function addNested(profile: EventProfile, key: string, value: object): void {
  const listed = Array.isArray(value);
  const prefix = listed ? `${key}[].` : `${key}.`;
  let paths = profile.paths.get(prefix);
  if (paths === undefined) {
    paths = new Map();
    profile.paths.set(prefix, paths);
  }
  for (const item of listed ? (value as unknown[]) : [value]) {
    if (!isPlain(item)) continue;
    for (const inner of Object.keys(item)) {
      let nested = paths.get(inner);
      if (nested === undefined) {
        const made = profileOf(profile.keys, prefix + inner, MAX_KEYS);
        if (made === null) continue;
        nested = made;
        paths.set(inner, made);
      }
      addValue(nested, item[inner]);
    }
  }
}

/** Adds one episode's events (or messages). Elements that are no objects are counted as the key "(not an object)". */
export function addEvents(profile: EventProfile, events: readonly unknown[], format: LogFormat, keys: EventKeys): void {
  addValue(profile.lengths, events.length);
  for (let index = 0; index < events.length; index += 1) {
    const event = events[index];
    profile.events += 1;
    if (!isPlain(event)) {
      const odd = profileOf(profile.keys, '(not an object)', MAX_KEYS);
      if (odd !== null) addValue(odd, event);
      continue;
    }
    if (index === 0) addValue(profile.firstSteps, first(event, keys.step));
    for (const key of Object.keys(event)) {
      const value = event[key];
      const own = profileOf(profile.keys, key, MAX_KEYS);
      if (own !== null) addValue(own, value);
      if (value !== null && typeof value === 'object' && !keys.tool_args.includes(key)) addNested(profile, key, value);
    }
    for (const call of callsOf(event, format, keys)) addCall(profile, call);
  }
}

/** How a list of events or messages is written, from its first elements. */
export function formatOf(events: readonly unknown[]): LogFormat {
  const messages = events.filter(isPlain);
  if (!messages.some((message) => typeof message['role'] === 'string')) return 'events';
  const blocks = messages.flatMap((message) => (Array.isArray(message['content']) ? message['content'] : []));
  const anthropic = new Set(['tool_use', 'tool_result', 'thinking', 'redacted_thinking']);
  return blocks.some((block) => isPlain(block) && anthropic.has(String(block['type'])))
    ? 'anthropic-messages'
    : 'openai-chat';
}
