import type { EventProfile } from './event-profile.ts';
import type { Kind, ValueProfile } from './value-profile.ts';

const SCHEMA_TYPES: Readonly<Record<Kind, string | null>> = {
  null: null,
  boolean: 'boolean',
  integer: 'integer',
  number: 'number',
  NaN: null,
  text: 'string',
  list: 'array',
  object: 'object',
};
/** A parameter with at most this many values, seen much oftener, is written as a choice. */
const MAX_CHOICES = 6;

function schemaOf(profile: ValueProfile): Record<string, unknown> {
  const types = new Set<string>();
  for (const [kind, count] of Object.entries(profile.kinds)) {
    const type = SCHEMA_TYPES[kind as Kind];
    if (count > 0 && type !== null) types.add(type);
  }
  if (types.has('number')) types.delete('integer');
  const [only] = types;
  if (types.size !== 1 || only === undefined) return types.size === 0 ? {} : { type: [...types] };
  const choices =
    only === 'string' &&
    profile.values !== null &&
    profile.values.size <= MAX_CHOICES &&
    profile.count >= 50 * profile.values.size
      ? { enum: [...profile.values.keys()].sort() }
      : {};
  return { type: only, ...choices };
}

/**
 * Tool schemas as far as calls show them: names, parameters, types; required = in every call. Descriptions, unused tools
 * and unused parameters cannot be seen, so a replay with this draft is not what the model saw.
 */
export function draftTools(profile: EventProfile): readonly object[] {
  return [...profile.tools]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, tool]) => ({
      type: 'function',
      function: {
        name,
        description: '',
        parameters: {
          type: 'object',
          properties: Object.fromEntries(Array.from(tool.parameters, ([key, profile]) => [key, schemaOf(profile)])),
          required: [...tool.parameters].filter(([, parameter]) => parameter.count >= tool.calls).map(([key]) => key),
        },
      },
    }));
}
