import type { FamilyRow } from '../family-type.ts';
import { toolCodeFamily } from './tool-code.ts';

/**
 * A template that knows no tools (Gemma 3, SmolLM2, Llama 3, SmolLM3): agents on it speak a text protocol, and its calls
 * are found in the content. Calls that the log holds apart would vanish from the prompt, so they are refused.
 */
export const plain: FamilyRow = {
  name: 'plain text',
  test: (text) => !text.includes('tool_calls') && !text.includes('<tool_call>'),
  family: (text) => ({
    ...toolCodeFamily(
      'plain text (calls in the content)',
      text.includes('reasoning_content') ? 'reasoning_content' : null,
    ),
    rendersCalls: false,
  }),
};
