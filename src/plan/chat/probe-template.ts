import { DataError } from '../../errors.ts';
import { fromPlain } from '../../lib/json.ts';
import type { JsonValue } from '../../types.ts';
import { TemplateLimitError } from './jinja/budget.ts';
import { PythonError } from './jinja/values.ts';

/** Invented texts that stand nowhere in a template. */
const MARK = { user: 'forewarn-probe-user', reasoning: 'forewarn-probe-reasoning', answer: 'forewarn-probe-answer' };

/** Every name that a template reads reasoning from. */
const reasoning = { reasoning_content: MARK.reasoning, reasoning: MARK.reasoning, thinking: MARK.reasoning };
const call = { id: 'abcdefghi', type: 'function', function: { name: 'probe', arguments: { x: 'y' } } };

const TOOLS: readonly JsonValue[] = [
  {
    type: 'function',
    function: {
      name: 'probe',
      description: 'probe',
      parameters: { type: 'object', properties: { x: { type: 'string', description: 'x' } }, required: ['x'] },
    },
  },
].map(fromPlain);

/** From rich to plain: a template may refuse tools, a system message or reasoning, and still be a good one. */
const TRANSCRIPTS: readonly { readonly messages: readonly JsonValue[]; readonly reasons: boolean }[] = [
  {
    reasons: true,
    messages: [
      { role: 'system', content: 'system' },
      { role: 'user', content: MARK.user },
      { role: 'assistant', content: '', ...reasoning, tool_calls: [call] },
      { role: 'tool', content: 'result', name: 'probe', tool_call_id: 'abcdefghi' },
    ].map(fromPlain),
  },
  {
    reasons: true,
    messages: [
      { role: 'user', content: MARK.user },
      { role: 'assistant', content: MARK.answer, ...reasoning },
    ].map(fromPlain),
  },
  { reasons: false, messages: [fromPlain({ role: 'user', content: MARK.user })] },
];

/**
 * Renders invented transcripts with a template that nobody has tried yet.
 * @returns what a reader of the run should know
 * @throws DataError (65) for one that does not end within its limits or prints no message
 */
export function probeTemplate(
  path: string,
  text: string,
  render: (messages: readonly JsonValue[], tools: readonly JsonValue[] | null, addGenerationPrompt: boolean) => string,
  date: string,
): readonly string[] {
  let fault: PythonError | null = null;
  let printed = false;
  // Some public templates (Hermes 3, Phi-4-mini) render only with tools, as in Python.
  const attempt = (messages: readonly JsonValue[], prompt: boolean): string | null =>
    attemptWith(messages, null, prompt) ?? attemptWith(messages, TOOLS, prompt);
  const attemptWith = (
    messages: readonly JsonValue[],
    tools: readonly JsonValue[] | null,
    prompt: boolean,
  ): string | null => {
    try {
      return render(messages, tools, prompt);
    } catch (error) {
      if (error instanceof TemplateLimitError)
        throw new DataError(
          `${path}: expected rendering within time and memory, got ${error.message}. Use another template`,
          { cause: error },
        );
      if (!(error instanceof PythonError)) throw error;
      if (error.kind === 'RecursionError')
        throw new DataError(`${path}: expected finite rendering, got ${error.message}. Use another template`, {
          cause: error,
        });
      if (error.kind === 'OverflowError')
        throw new DataError(
          `${path}: expected rendering within its limits, got ${error.message} Use another template`,
          {
            cause: error,
          },
        );
      if (error.kind !== 'TemplateError') fault = error;
      return null;
    }
  };
  const warnings: string[] = [];
  if (/\bstrftime_now\b/.test(text))
    warnings.push(`${path}: expected a fixed date, got strftime_now; its clock shows ${date} in every run`);
  let reasoned: boolean | null = null;
  for (const { messages, reasons } of TRANSCRIPTS) {
    const prompt = attempt(messages, true);
    if (prompt === null) continue;
    if (!prompt.includes(MARK.user))
      throw new DataError(
        `${path}: content: expected the text of the messages in what it renders, got none of it. Use another template`,
      );
    printed = true;
    if (reasons) reasoned = reasoned === true || prompt.includes(MARK.reasoning);
    if (messages.length === 1 && attempt(messages, false) === prompt)
      warnings.push(
        `${path}: expected other text with add_generation_prompt, got the same; prompt_end is the end of the last message`,
      );
  }
  // raise_exception may only mean that it wants another transcript; any other error on a single message is a fault.
  const cause = fault as PythonError | null;
  if (!printed && cause !== null)
    throw new DataError(
      `${path}: expected a template that renders a message, got ${cause.kind}: ${cause.message}. Use another template`,
      { cause },
    );
  if (reasoned === false)
    warnings.push(
      `${path}: reasoning: expected it in the rendered text, got a template that drops it; earlier turns are replayed without, and reasoning positions exist only where the model wrote it`,
    );
  return warnings;
}
