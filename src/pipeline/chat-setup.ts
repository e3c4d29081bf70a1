import { findFamily } from '../plan/chat/family.ts';
import { harmonyTemplate } from '../plan/chat/harmony-template.ts';
import { openTemplate } from '../plan/chat/template.ts';
import type { ReplaySettings } from '../plan/settings.ts';
import { type ChatSetup, endOfTurn } from '../plan/sequences.ts';
import type { OpenTokenizer } from '../plan/tokenizer.ts';

export interface ChatOptions extends Pick<ChatSetup, 'contextLimit' | 'positions' | 'pooling' | 'recordedBy'> {
  /** Model folder. */
  readonly folder: string;
  readonly tokenizer: OpenTokenizer;
  readonly settings: ReplaySettings;
}

/**
 * What turns episodes into ids under one set of replay settings.
 * @throws UserError (2), DataError (65)
 */
export async function openChat({ folder, tokenizer, settings, ...rest }: ChatOptions): Promise<ChatSetup> {
  const template =
    settings.stack === 'harmony'
      ? harmonyTemplate(settings)
      : await openTemplate(folder, tokenizer.specialTokens, settings.templateKwargs, settings.date);
  return {
    tokenizer,
    template,
    family: findFamily(template.text, settings, folder),
    settings,
    ...rest,
    endOfTurn: endOfTurn(template, tokenizer),
  };
}
