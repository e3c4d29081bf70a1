import { UserError } from '../../errors.ts';
import type { ReplaySettings } from '../settings.ts';
import { commandR } from './families/command-r.ts';
import { deepseek } from './families/deepseek.ts';
import { gemma4 } from './families/gemma4.ts';
import { glm } from './families/glm.ts';
import { gptOss } from './families/gpt-oss.ts';
import { jsonTags, jsonTagsFormat, qwen3 } from './families/json-tags.ts';
import { kimi } from './families/kimi.ts';
import { llama3 } from './families/llama3.ts';
import { minimax } from './families/minimax.ts';
import { mistral } from './families/mistral.ts';
import { plain } from './families/plain.ts';
import { qwenXml } from './families/qwen-xml.ts';
import { granite3, phi4 } from './families/tool-call-token.ts';
import { toolCodeFamily } from './families/tool-code.ts';
import { type Family, type FamilyRow, formatFamily } from './family-type.ts';

/** The most particular marker first: the first row whose test holds for the template's text is its family. */
const FAMILIES: readonly FamilyRow[] = [
  gptOss,
  gemma4,
  minimax,
  kimi,
  deepseek,
  glm,
  commandR,
  granite3,
  phi4,
  mistral,
  llama3,
  qwenXml,
  qwen3,
  jsonTags,
  plain,
];

/**
 * How the models of a template write a turn.
 * @throws UserError (2) for a template whose format of calls is not known
 */
export function findFamily(
  template: string,
  settings: Pick<ReplaySettings, 'toolText' | 'stack'>,
  file: string,
): Family {
  if (settings.stack === 'harmony') {
    if (settings.toolText !== 'native')
      throw new UserError(
        `replay.toolText: expected native with replay.stack: harmony, got ${settings.toolText}. Harmony renders tools itself`,
      );
    return gptOss.family(template);
  }
  const reasoningField = template.includes('<think>') ? 'reasoning_content' : null;
  if (settings.toolText === 'json-tags')
    return formatFamily('json-tags (as text)', reasoningField, jsonTagsFormat(false));
  if (settings.toolText === 'tool_code') return toolCodeFamily('tool_code (as text)', reasoningField);
  const found = FAMILIES.find((row) => row.test(template));
  if (!found) {
    throw new UserError(
      `${file}: expected a template that writes calls in a known format (${FAMILIES.map((row) => row.name).join(', ')}), got another. Set replay.toolText to json-tags or tool_code to replay tools as text`,
    );
  }
  return found.family(template);
}
