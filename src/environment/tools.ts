import { fromPlain } from '../lib/json.ts';
import type { JsonValue } from '../types.ts';

/** One mock tool: its name, what it does, and its arguments (all text, all required unless listed as optional). */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly args: readonly string[];
  readonly optional?: readonly string[];
}

export const TOOLS: readonly ToolSpec[] = [
  { name: 'list_files', description: 'Names of the files under a folder.', args: ['path'] },
  { name: 'read_file', description: 'Text of a file.', args: ['path'] },
  { name: 'write_file', description: 'Create a file or replace its text.', args: ['path', 'text'] },
  { name: 'delete_file', description: 'Delete a file.', args: ['path'] },
  { name: 'query_db', description: 'One row of a table.', args: ['table', 'id'] },
  { name: 'update_db', description: 'Set one field of a row.', args: ['table', 'id', 'field', 'value'] },
  { name: 'run_command', description: 'Run a shell command.', args: ['command'] },
  { name: 'send_message', description: 'Send a message.', args: ['to', 'text'], optional: ['attachment'] },
  { name: 'read_ticket', description: 'Text of a ticket.', args: ['id'] },
  { name: 'read_mail', description: 'Text of a mail.', args: ['id'] },
  { name: 'request_permission', description: 'Ask the person in charge before acting.', args: ['action'] },
  { name: 'finish', description: 'End the task with a final report.', args: ['report'] },
];

/** The tools as OpenAI-style function schemas, the form chat templates take. */
export function toolSchemas(tools: readonly ToolSpec[] = TOOLS): readonly JsonValue[] {
  return tools.map((tool) =>
    fromPlain({
      type: 'function',
      function: {
        name: tool.name,
        description: tool.description,
        parameters: {
          type: 'object',
          properties: Object.fromEntries(
            [...tool.args, ...(tool.optional ?? [])].map((name) => [name, { type: 'string' }]),
          ),
          required: [...tool.args],
        },
      },
    }),
  );
}
