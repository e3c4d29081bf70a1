import type { Mapping } from '../../config/mapping-fields.ts';
import { isJsonArray, isJsonNumber, isJsonObject } from '../../lib/json.ts';
import type { JsonObject, JsonValue } from '../../types.ts';
import { FieldProblem, isMissing, show } from '../cell.ts';

/** Name and value of every recorded position of an event: from a dictionary, a flat list, or keys of the event itself. */
function entriesOf(
  event: JsonObject,
  value: JsonValue | undefined,
  settings: Mapping['positions'],
  field: string,
  step: number,
): [string, JsonValue][] {
  const entries: [string, JsonValue][] = [];
  if (isJsonObject(value)) entries.push(...value);
  else if (isJsonArray(value))
    entries.push(...value.map((item, index): [string, JsonValue] => [settings.names[index] ?? String(index), item]));
  else if (!isMissing(value))
    throw new FieldProblem(field, 'token positions as a list or object', `${show(value)} in step ${step}`);
  for (const [name, key] of Object.entries(settings.keys)) {
    const own = event.get(key);
    if (own !== undefined) entries.push([name, own]);
  }
  return entries.flatMap(([name, item]): [string, JsonValue][] => {
    // A stretch [start, end] is two positions.
    if (isJsonArray(item)) return item.map((part, index) => [`${name}.${index}`, part]);
    return isMissing(item) ? [] : [[name, item]];
  });
}

/**
 * Token positions as the source wrote them; the mapping says what they count from. Those with a known name have to rise
 * through the turn; a dictionary's own order means nothing.
 * @param limit more tokens than the episode can have
 */
export function recordedPositions(
  event: JsonObject,
  value: JsonValue | undefined,
  settings: Mapping['positions'],
  field: string,
  step: number,
  limit: number,
): Readonly<Record<string, number>> {
  // A log does not say here whose it is: what one of its models may write is taken.
  const least = Math.min(settings.from, ...settings.perModel.map((rule) => rule.from));
  // Names are data: no prototype.
  const out = Object.create(null) as Record<string, number>;
  for (const [name, item] of entriesOf(event, value, settings, field, step)) {
    const number = isJsonNumber(item) ? Number(item.lexeme) : Number.NaN;
    if (!Number.isSafeInteger(number) || number < least)
      throw new FieldProblem(
        field,
        `token positions as whole numbers >= ${least}`,
        `${name.slice(0, 40)} = ${show(item)} in step ${step}`,
      );
    if (number > limit)
      throw new FieldProblem(
        field,
        'token positions inside the transcript',
        `${name.slice(0, 40)} = ${number} in step ${step}`,
      );
    out[name] = number;
  }
  let last: { readonly name: string; readonly number: number } | null = null;
  for (const name of settings.names) {
    const number = out[name];
    if (number === undefined) continue;
    if (last !== null && number < last.number)
      throw new FieldProblem(
        field,
        'rising token positions',
        `${name} = ${number} after ${last.name} = ${last.number} in step ${step}`,
      );
    last = { name, number };
  }
  return out;
}
