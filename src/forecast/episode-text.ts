/**
 * The text of an episode up to a token position: what the model had been given or had emitted there, and nothing later.
 * Text baselines read this; one character too many and they would be told the answer, one too few and the probe would
 * be flattered. Order within a turn: messages that came in, reasoning, content, calls, results (DESIGN.md section 2).
 */
import { UserError } from '../errors.ts';
import { isJsonArray, isJsonObject, stringifyJson } from '../lib/json.ts';
import type { ChatMessage, Episode, JsonValue, ToolCall, Turn } from '../types.ts';
import { hasText, parsePosition } from './positions.ts';
import type { TextScope } from './types.ts';

/**
 * @param turn 0-based turn of the position; `observation_end` includes the results of that turn
 * @throws UserError for a position whose place in the text is unknown (`recorded:…`) and RangeError for a missing turn
 */
export function textAt(episode: Episode, turn: number, position: string, scope: TextScope): string {
  const last = episode.turns[turn];
  if (!last) throw new RangeError(`${episode.key}: expected a turn below ${episode.turns.length}, got ${turn}`);
  if (!hasText(position)) {
    throw new UserError(
      `position ${position}: expected a position whose text is known (prompt_end, pre_action …), got a recorded token index. Leave the text baselines out or use a named position`,
    );
  }
  const own = emittedUpTo(episode, last, position);
  const earlier = episode.turns.slice(0, turn);
  switch (scope) {
    case 'so_far':
      return lines([
        ...episode.opening.map(messageText),
        ...earlier.flatMap((t) => [...t.before.map(messageText), ...wholeTurn(t), ...t.results.map(resultText)]),
        ...last.before.map(messageText),
        ...own.all,
      ]);
    case 'reasoning':
      return lines([...earlier.map((t) => t.reasoning), own.reasoning]);
    case 'actions':
      return lines([...earlier.flatMap((t) => t.calls.map(callText)), ...own.calls]);
    case 'this_turn':
      return lines([
        ...(turn === 0 ? episode.opening.map(messageText) : earlier.at(-1)!.results.map(resultText)),
        ...last.before.map(messageText),
        ...own.all,
      ]);
    default:
      throw new UserError(
        `forecast.textScopes: expected so_far, reasoning, actions or this_turn, got ${String(scope)}`,
      );
  }
}

interface Emitted {
  readonly reasoning: string;
  readonly calls: readonly string[];
  /** In the order of emission, with the observation of the turn where the position lies behind it. */
  readonly all: readonly string[];
}

function emitted(
  reasoning: string,
  content: string,
  calls: readonly string[],
  results: readonly string[] = [],
): Emitted {
  return { reasoning, calls, all: [reasoning, content, ...calls, ...results] };
}

function emittedUpTo(episode: Episode, turn: Turn, position: string): Emitted {
  const { name, call } = parsePosition(position);
  const content = turn.content ?? '';
  const before = turn.calls.slice(0, call).map(callText);
  const own = turn.calls[call];
  switch (name) {
    case 'prompt_end':
    case 'reasoning_start':
      return emitted('', '', []);
    case 'reasoning_end':
    case 'span:reasoning':
      return emitted(turn.reasoning, '', []);
    case 'pre_action':
      return emitted(turn.reasoning, content, before);
    case 'action_name':
      return emitted(turn.reasoning, content, own ? [...before, own.name] : before);
    case 'action_end':
    case 'span:action':
      return emitted(turn.reasoning, content, own ? [...before, callText(own)] : before);
    case 'report_start': {
      // The report is the content of the last turn, or an argument of its call: then the content stands before it.
      const answer = episode.finalAnswer ?? content;
      return emitted(turn.reasoning, content.includes(answer) ? '' : content, []);
    }
    case 'report_end':
    case 'span:report':
      return emitted(turn.reasoning, content, turn.calls.map(callText));
    default:
      return emitted(turn.reasoning, content, turn.calls.map(callText), turn.results.map(resultText));
  }
}

function wholeTurn(turn: Turn): readonly string[] {
  return [turn.reasoning, turn.content ?? '', ...turn.calls.map(callText)];
}

function callText(call: ToolCall): string {
  return `${call.name} ${call.argumentsText ?? stringifyJson(call.arguments)}`;
}

function resultText(result: { readonly text: string }): string {
  return `result: ${result.text}`;
}

function messageText(message: ChatMessage): string {
  const parts = [contentText(message.content), message.reasoning ?? '', ...(message.toolCalls ?? []).map(callText)];
  return `${message.role}: ${lines(parts)}`;
}

/** Text, or the `text` fields of a list of content parts; images and the like have none. */
function contentText(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content;
  if (content === undefined || content === null) return '';
  if (isJsonArray(content)) return lines(content.map(contentText));
  if (isJsonObject(content)) return contentText(content.get('text'));
  return stringifyJson(content);
}

function lines(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n');
}
