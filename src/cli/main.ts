import process from 'node:process';
import yargs, { type CommandModule } from 'yargs';
import { hideBin } from 'yargs/helpers';
import { ForewarnError } from '../errors.ts';
import { doctorCommand } from './commands/doctor.ts';
import { inspectCommand } from './commands/inspect.ts';
import { lockCommand } from './commands/lock.ts';
import { reportCommand } from './commands/report.ts';
import { rolloutCommand } from './commands/rollout.ts';
import { scenariosCommand } from './commands/scenarios.ts';
import { stageCommands } from './commands/stages.ts';

/** The only exit point. Known errors print one line, unknown ones keep their stack: they are bugs of ours. */
function fail(error: unknown): never {
  if (error instanceof ForewarnError) {
    process.stderr.write(`forewarn: ${error.message}\n`);
    process.exit(error.exitCode);
  }
  process.stderr.write(
    `forewarn: internal error, please report it\n${error instanceof Error ? error.stack : String(error)}\n`,
  );
  process.exit(1);
}

process.on('unhandledRejection', fail);
process.on('uncaughtException', fail);

// @huggingface/hub tells of every download on stdout, which belongs to the result.
Object.assign(globalThis.console, { debug: () => undefined });

const cli = yargs(hideBin(process.argv))
  .scriptName('forewarn')
  .usage('$0 <command>\n\nForecast the first unauthorized action of an LLM agent from its hidden states.')
  .demandCommand(1, 'name a command; forewarn --help lists them')
  .recommendCommands()
  .strict()
  .wrap(110)
  .fail((message, error) => {
    if (error) fail(error);
    process.stderr.write(`forewarn: ${message}\n`);
    process.exit(2);
  })
  .command(inspectCommand)
  .command(doctorCommand)
  .command(scenariosCommand)
  .command(rolloutCommand)
  .example('$0 run configs/organism.yaml', 'episodes to report, on what ships in the repository')
  .example('$0 plan my.yaml', 'tokens, positions, bytes and minutes before anything runs')
  .example('$0 doctor my.yaml', 'what is missing, and what to do');
for (const command of stageCommands) cli.command(command as CommandModule);
cli.command(lockCommand as unknown as CommandModule);
cli.command(reportCommand as unknown as CommandModule);
await cli.parseAsync();
