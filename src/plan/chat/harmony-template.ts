import { UserError } from '../../errors.ts';
import { sha256 } from '../../lib/content-hash.ts';
import type { ReplaySettings } from '../settings.ts';
import { HARMONY_VERSION, harmonyIds, harmonyOptions, harmonyText, renderHarmony } from './harmony.ts';
import type { ChatTemplate } from './template.ts';

/**
 * openai-harmony in the place of a chat template (`replay.stack: harmony`).
 * @throws UserError (2) for template variables and historyReasoning that it does not know
 */
export function harmonyTemplate(
  settings: Pick<ReplaySettings, 'templateKwargs' | 'date' | 'historyReasoning'>,
): ChatTemplate {
  if (settings.historyReasoning === 'empty-block')
    throw new UserError(
      'replay.historyReasoning: expected template, none or all with replay.stack: harmony, got empty-block. The library writes no empty messages',
    );
  const options = harmonyOptions(settings.templateKwargs, settings.date, settings.historyReasoning === 'all');
  return {
    path: HARMONY_VERSION,
    text: '',
    sha256: sha256(`${HARMONY_VERSION}\n${JSON.stringify(options)}`),
    warnings: [],
    render: (messages, tools, addGenerationPrompt) =>
      harmonyText(renderHarmony(messages, tools, options, addGenerationPrompt)),
    encode: (tokenizer, messages, tools) => harmonyIds(renderHarmony(messages, tools, options), tokenizer),
  };
}
