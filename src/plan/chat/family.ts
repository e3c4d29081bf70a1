import { UserError } from '../../errors.ts';
import type { ReplaySettings } from '../settings.ts';
import { type EmissionFormat, jsonTagsEmission, toolCodeEmission } from './emission.ts';
import { type EmissionReader, readJsonTags } from './read-emission.ts';

/** What has to be known of a model family beyond its template. */
export interface Family {
  readonly name: string;
  readonly emission: EmissionFormat;
  /** Finds the parts in text that the model really wrote; null where only `emission` is known. */
  readonly reader: EmissionReader | null;
  /** Message field its template reads reasoning from; null = reasoning is not rendered. */
  readonly reasoningField: string | null;
  /** An empty think block is written where there is no reasoning. */
  readonly emptyThink: boolean;
}

/** One row a family: the first whose test holds for the template text. */
const NATIVE: readonly {
  readonly name: string;
  readonly test: (template: string) => boolean;
  readonly family: Omit<Family, 'name'>;
}[] = [
  {
    name: 'json-tags',
    test: (text) =>
      text.includes('<tool_call>') &&
      /"arguments"|arguments/.test(text) &&
      !text.includes('<function=') &&
      !text.includes('<|channel|>'),
    family: {
      emission: jsonTagsEmission,
      reader: readJsonTags,
      reasoningField: 'reasoning_content',
      emptyThink: false,
    },
  },
];

/** @throws UserError (2) for a template whose emission format is not known */
export function findFamily(
  template: string,
  settings: Pick<ReplaySettings, 'toolText' | 'stack'>,
  file: string,
): Family {
  if (settings.stack !== 'hf-template') {
    throw new UserError(
      `replay.stack: expected hf-template, got ${settings.stack}. Other stacks are not supported yet`,
    );
  }
  const reasoningField = template.includes('<think>') ? 'reasoning_content' : null;
  if (settings.toolText === 'json-tags')
    return {
      name: 'json-tags (as text)',
      emission: jsonTagsEmission,
      reader: readJsonTags,
      reasoningField,
      emptyThink: false,
    };
  if (settings.toolText === 'tool_code')
    return { name: 'tool_code (as text)', emission: toolCodeEmission, reader: null, reasoningField, emptyThink: false };
  const found = NATIVE.find((item) => item.test(template));
  if (!found) {
    throw new UserError(
      `${file}: expected a template that writes calls in a known format (${NATIVE.map((item) => item.name).join(', ')}), got another. Set replay.toolText to json-tags or tool_code to replay tools as text`,
    );
  }
  return { name: found.name, ...found.family };
}
