import { isJsonArray, isJsonNumber, isJsonObject, JsonError, parseJson } from '../../lib/json.ts';
import type { JsonValue, ToolCall } from '../../types.ts';
import { FieldProblem, isMissing, quote, show } from '../cell.ts';
import type { Warn } from './adapter.ts';

/** What the formats share: JSON that may be encoded twice, content parts, tool arguments and results. */

/** The list that a log column holds, from text or from a nested column. @throws FieldProblem */
export function parseList(
  value: JsonValue | undefined,
  field: string,
  nanLiteral: 'missing' | 'refuse',
  warn: Warn,
): readonly JsonValue[] {
  let list = value;
  if (isMissing(list)) throw new FieldProblem(field, 'JSON text', show(list));
  for (let depth = 0; typeof list === 'string' && depth < 2; depth += 1) {
    if (list.trim() === '') throw new FieldProblem(field, 'JSON text', 'an empty string');
    try {
      list = parseJson(list, { strict: nanLiteral !== 'missing' });
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      throw new FieldProblem(field, 'JSON', `${error.message}: ${quote((value as string).slice(0, 40))}`);
    }
    if (depth === 0 && typeof list === 'string') warn('json_twice', `${field}: JSON encoded twice, decoded twice`);
  }
  if (isJsonArray(value)) warn('nested_events', `${field}: a nested column or array where the card has JSON text`);
  if (!isJsonArray(list)) throw new FieldProblem(field, 'a list of events', show(list));
  if (list.length === 0) throw new FieldProblem(field, 'at least one event', '0 events');
  return list;
}

const TEXT_PARTS = new Set(['text', 'input_text', 'output_text', 'refusal']);

/**
 * Text of a message: a string, or content parts of which all are text (joined without a separator, as chat templates
 * do). null stays null: templates tell null and "" apart. @throws FieldProblem for images and other parts
 */
export function textOf(field: string, value: JsonValue | undefined, step: number): string | null {
  if (isMissing(value)) return null;
  if (typeof value === 'string') return value;
  if (isJsonArray(value)) {
    return value
      .map((part) => {
        if (typeof part === 'string') return part;
        const kind = isJsonObject(part) ? part.get('type') : undefined;
        const inner = isJsonObject(part) ? (part.get('text') ?? part.get('refusal')) : undefined;
        if (typeof inner === 'string' && (kind === undefined || (typeof kind === 'string' && TEXT_PARTS.has(kind))))
          return inner;
        throw new FieldProblem(
          field,
          'content that is text',
          `a part of type ${kind === undefined ? show(part) : show(kind)} in step ${step} (only text can be replayed)`,
        );
      })
      .join('');
  }
  throw new FieldProblem(field, 'text', `${show(value)} in step ${step}`);
}

const ascii = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- everything that is not ASCII
  JSON.stringify(text).replace(/[^\u0000-\u007f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** As Python's json.dumps writes it by default, which is what harnesses put into prompts. */
function dumps(value: JsonValue): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return ascii(value);
  if (isJsonNumber(value)) return value.lexeme;
  if (isJsonArray(value)) return `[${value.map(dumps).join(', ')}]`;
  return `{${Array.from(value, ([key, inner]) => `${ascii(key)}: ${dumps(inner)}`).join(', ')}}`;
}

/** What the harness put into the next prompt for a tool's result. */
export function resultText(value: JsonValue, warn: Warn, field: string): string {
  if (typeof value === 'string') return value;
  if (
    isJsonArray(value) &&
    value.length > 0 &&
    value.every((part) => isJsonObject(part) && part.get('type') === 'text')
  )
    return textOf(field, value, 0) ?? '';
  warn('result_not_text', `${field}: a tool result that is no text; its JSON as Python writes it stands in for it`);
  return dumps(value);
}

/** Arguments as logged: an object, or text that holds one. Text that does not is what the model wrote, so it is kept. */
export function toolCall(
  field: string,
  name: string,
  args: JsonValue | undefined,
  raw: JsonValue | undefined,
  id: JsonValue | undefined,
  step: number,
  warn: Warn,
): ToolCall {
  let parsed: JsonValue = isMissing(args) ? new Map<string, JsonValue>() : args;
  let argumentsText = typeof raw === 'string' ? raw : undefined;
  if (typeof parsed === 'string') {
    argumentsText ??= parsed;
    if (parsed === '') parsed = new Map<string, JsonValue>();
    else {
      try {
        parsed = parseJson(parsed);
        warn('arguments_text', `${field}: tool arguments logged as JSON text`);
      } catch (error) {
        if (!(error instanceof JsonError)) throw error;
        parsed = null;
        warn(
          'arguments_broken',
          `${field}: expected tool arguments as an object, got broken JSON text in step ${step} (${error.message}); kept as the model wrote it`,
        );
      }
    }
  }
  if (!isJsonObject(parsed)) argumentsText ??= parsed === null ? undefined : dumps(parsed);
  return {
    name,
    arguments: isJsonObject(parsed) ? parsed : null,
    ...(argumentsText === undefined ? {} : { argumentsText }),
    ...(typeof id === 'string' ? { id } : {}),
  };
}

const CONTROL_TOKENS =
  /<\|(?:im_start|im_end|start|end|channel|message|call|eot_id|start_header_id|end_header_id|endoftext)\|>|<(?:start|end)_of_turn>/;

/** Things in a text that change what a tokenizer makes of it. */
export function warnOfText(field: string, text: string, step: number, warn: Warn): void {
  if (!text.isWellFormed())
    warn('lone_surrogate', `${field}: a lone surrogate in step ${step}; every tokenizer reads it as U+FFFD`);
  // The search for two plain strings is far quicker than the pattern, and most texts hold neither.
  if ((text.includes('|>') || text.includes('_of_turn>')) && CONTROL_TOKENS.test(text))
    warn('control_tokens_in_text', `${field}: text that reads like control tokens in step ${step}`);
}
