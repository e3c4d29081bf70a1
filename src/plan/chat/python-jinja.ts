import { parse, tokenize } from '@huggingface/jinja';
import type { JsonValue } from '../../types.ts';
import { Budget, type Limits, ROW_LIMITS, TemplateLimitError } from './jinja/budget.ts';
import { runTemplate } from './jinja/evaluate.ts';
import { templateGlobals } from './jinja/globals.ts';
import { FILTERS } from './jinja/filters.ts';
import { nodesOf, type Program } from './jinja/syntax.ts';
import { TESTS } from './jinja/tests.ts';
import { strftime } from './jinja/text.ts';
import { fromJson, PythonError, type Value } from './jinja/values.ts';

export interface CompiledTemplate {
  /**
   * @throws PythonError where Python raises, with its message (the row cannot be rendered)
   * @throws TemplateLimitError where the template does not end within its budget
   */
  render(variables: ReadonlyMap<string, JsonValue>, limits?: Limits): string;
}

/** The largest template of the fixtures has 18,683 characters. */
const MOST_SOURCE = 1 << 20;

/**
 * A chat template that renders as Python does: read by the parser of @huggingface/jinja (pinned), run with the meaning of
 * jinja2 and the sandbox of transformers. The stock interpreter differs from Python in 177 of the 818 golden cases
 * (strip with arguments, None / True / float text, long integers, order of keys, the clock, undefined …).
 * @param clock ISO local time that the template sees, e.g. 2026-11-30T09:00:00
 * @throws Error with the reason, in one line, for what is no template
 */
export function compileTemplate(source: string, clock: string): CompiledTemplate {
  const program = parseTemplate(source);
  checkNames(program);
  const now = new Date(`${clock}Z`);
  const globals = templateGlobals((format) => strftime(now, format));
  return {
    render(variables, limits = ROW_LIMITS) {
      const all = new Map<string, Value>(globals);
      for (const [name, value] of variables) all.set(name, fromJson(value));
      try {
        return runTemplate(program, all, new Budget(limits));
      } catch (error) {
        if (error instanceof RangeError) throw outOfStack(error);
        throw error;
      }
    },
  };
}

function parseTemplate(source: string): Program {
  if (source.length > MOST_SOURCE)
    throw new Error(`${source.length.toLocaleString('en')} characters, more than ${MOST_SOURCE.toLocaleString('en')}`);
  try {
    // transformers reads the file in text mode, so CRLF is \n there.
    const tokens = tokenize(source.replace(/\r\n?/g, '\n'), { lstrip_blocks: true, trim_blocks: true });
    return parse(tokens) as Program;
  } catch (error) {
    if (error instanceof RangeError) throw new Error('expressions nested deeper than the limit', { cause: error });
    const opened = lastOpened(source);
    const where = opened === null ? '' : ` (a tag opened in line ${opened} is not closed)`;
    throw new Error(`${(error as Error).message.split('\n')[0]}${where}`, { cause: error });
  }
}

/** Line of the first `{{` or `{%` without its end. */
function lastOpened(source: string): number | null {
  for (const match of source.matchAll(/\{([{%#])/g)) {
    const close = match[1] === '{' ? '}}' : `${match[1]}}`;
    if (!source.includes(close, match.index)) return source.slice(0, match.index).split('\n').length;
  }
  return null;
}

/** jinja2 refuses unknown filters and tests when it compiles. */
function checkNames(program: Program): void {
  for (const node of nodesOf(program)) {
    if (node.type === 'FilterExpression' || node.type === 'FilterStatement') {
      const filter = node['filter'] as { readonly value?: string; readonly callee?: { readonly value?: string } };
      const name = filter.value ?? filter.callee?.value ?? '';
      if (!Object.hasOwn(FILTERS, name)) throw new Error(`No filter named '${name}'.`);
    }
    if (node.type === 'TestExpression') {
      const name = (node['test'] as { readonly value: string }).value;
      if (!Object.hasOwn(TESTS, name)) throw new Error(`No test named '${name}'.`);
    }
  }
}

function outOfStack(error: RangeError): Error {
  return error.message.includes('call stack')
    ? new PythonError('RecursionError', 'maximum recursion depth exceeded')
    : new TemplateLimitError(`stopped by the limit of memory (${error.message})`, { cause: error });
}
