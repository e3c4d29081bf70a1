import type { LogFormat } from '../../config/mapping-fields.ts';
import type { LogAdapter } from './adapter.ts';
import { readAnthropicMessages } from './anthropic-messages.ts';
import { readEvents } from './events.ts';
import { readOpenAiChat } from './openai-chat.ts';

/** One reader for each format a mapping can name. */
export const ADAPTERS: Readonly<Record<LogFormat, LogAdapter>> = {
  events: readEvents,
  'openai-chat': readOpenAiChat,
  'anthropic-messages': readAnthropicMessages,
};
