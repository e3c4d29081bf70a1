import type { Argv, CommandModule } from 'yargs';
import { inspectPaths } from '../../pipeline/inspect.ts';
import { inspectionText } from '../../pipeline/inspect-text.ts';
import { commandContext } from '../context.ts';

interface InspectArgs {
  readonly paths: string[];
  readonly mapping?: string;
  readonly out?: string;
  readonly json: boolean;
}

export const inspectCommand: CommandModule<object, InspectArgs> = {
  command: 'inspect <paths..>',
  describe: 'What is in these files, which mapping fits them, and what is missing',
  builder: (yargs: Argv) =>
    yargs
      .positional('paths', {
        type: 'string',
        array: true,
        demandOption: true,
        describe: 'parquet or JSON lines: files, folders or patterns',
      })
      .option('mapping', { type: 'string', describe: 'also read the data with this mapping and say what is set aside' })
      .option('out', { type: 'string', describe: 'folder for mapping.yaml and tools.json to finish, inspection.json' })
      .option('json', { type: 'boolean', default: false, describe: 'one JSON document on stdout' })
      .example('$0 inspect cape-bench/ --out cape', 'writes cape/mapping.yaml, to be finished by hand')
      .example('$0 inspect logs/*.jsonl --mapping mappings/cape-bench.yaml', 'tries a mapping'),
  handler: async (args) => {
    const context = commandContext({ quiet: args.json });
    const inspection = await inspectPaths(
      { paths: args.paths, mapping: args.mapping ?? null, out: args.out ?? null },
      context,
    );
    if (args.json) {
      context.print(JSON.stringify(inspection));
      return;
    }
    for (const line of inspectionText(inspection)) context.print(line);
    context.print('');
    if (args.out === undefined) {
      context.print('Proposed mapping (--out DIR writes it, with a draft of the tools):');
      context.print(inspection.proposal.text);
    } else context.print(args.out);
  },
};
