import { existsSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { CommandModule } from 'yargs';
import { reportFolder } from '../../pipeline/report-folder.ts';
import { commandContext } from '../context.ts';
import { bringTo, configOptions, type StageArgs } from './stages.ts';

/** A run folder (or its metrics.json) is shown as it is stored; anything else is a configuration to bring that far. */
const isRunFolder = (path: string): boolean =>
  existsSync(path) && (statSync(path).isDirectory() || basename(path) === 'metrics.json');

export const reportCommand: CommandModule<object, StageArgs> = {
  command: 'report <config>',
  describe: 'Write report.html, of a configuration or of a run folder as it is stored',
  builder: (yargs) =>
    configOptions(yargs)
      .positional('config', {
        type: 'string',
        demandOption: true,
        describe: 'configuration file (YAML), or the folder of a run',
      })
      .example('$0 report configs/fixture.yaml', 'one self-contained page')
      .example('$0 report FOLDER', 'the page again from metrics.json, curves.json and report.json; no model, no data')
      .example('$0 report FOLDER --out DIR', 'the same, into DIR/report.html'),
  handler: async (args) => {
    if (!isRunFolder(args.config)) return bringTo('report', args);
    const context = commandContext();
    const { path, headline, missing } = await reportFolder(args.config, args.out ?? null);
    for (const line of missing) context.progress.note(`no ${line}`);
    if (args.json) context.print(JSON.stringify({ path, headline, missing }));
    else for (const line of [...headline, path]) context.print(line);
  },
};
