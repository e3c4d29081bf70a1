import type { Episode, JsonValue, Turn } from '../types.ts';
import type { RenderPrompt } from './chat/history.ts';
import { promptMessages, type MessageStyle } from './chat/messages.ts';
import type { ChatTemplate } from './chat/template.ts';
import type { OpenTokenizer } from './tokenizer.ts';

/** The prompt of one turn: as the log has it, else as the stack renders it. */
export interface TurnPrompt {
  /** The ids that are used: the logged ones if there are any. */
  readonly ids: Int32Array;
  readonly text: string;
  /** Ids of our rendering, to compare with logged ones; null = nothing was rendered. */
  readonly rendered: Int32Array | null;
  /** What was rendered, and how it would be with other messages; null = nothing was. */
  readonly source: {
    readonly messages: readonly JsonValue[];
    readonly render: (messages: readonly JsonValue[]) => string;
  } | null;
}

/** Why a turn has no prompt. */
export class PromptError extends Error {
  /** Machine-readable kind of the exclusion. */
  readonly reason: string;
  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'PromptError';
    this.reason = reason;
  }
}

export interface PromptOptions {
  readonly tokenizer: OpenTokenizer;
  readonly template: ChatTemplate;
  /** How the stack renders messages; null = it takes the log's own prompts (raw). */
  readonly render: RenderPrompt | null;
  readonly style: MessageStyle;
  /** Schemas handed to the template; null = none. */
  readonly tools: readonly JsonValue[] | null;
}

/** @throws PromptError: the template refuses the messages (with its reason), or a raw log holds no prompt */
export function turnPrompt(episode: Episode, turn: Turn, options: PromptOptions): TurnPrompt {
  const { tokenizer, template, render: renderPrompt, style, tools } = options;
  const logged = turn.promptIds === null ? null : Int32Array.from(turn.promptIds);
  if (renderPrompt === null) return rawPrompt(turn, logged, tokenizer);
  const messages = promptMessages(episode, turn.index, style);
  const render = (list: readonly JsonValue[]): string => renderPrompt(list, tools);
  try {
    const text = render(messages);
    const rendered = template.encode?.(tokenizer, messages, tools) ?? tokenizer.encode(text);
    return { ids: logged ?? rendered, text, rendered, source: { messages, render } };
  } catch (error) {
    throw new PromptError(
      'template_error',
      `${template.path}: the chat template cannot render it: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

function rawPrompt(turn: Turn, logged: Int32Array | null, tokenizer: OpenTokenizer): TurnPrompt {
  const text = turn.promptText ?? null;
  if (text !== null) {
    const rendered = tokenizer.encode(text);
    return { ids: logged ?? rendered, text, rendered: logged === null ? null : rendered, source: null };
  }
  if (logged === null)
    throw new PromptError(
      'no_logged_prompt',
      'expected prompt_ids or prompt_text in the event, as replay.stack is raw, got neither. Name their keys in the mapping, or choose another stack',
    );
  const own = Buffer.concat(Array.from(logged, (id) => tokenizer.tokenBytes(id))).toString('utf8');
  return { ids: logged, text: own, rendered: null, source: null };
}
