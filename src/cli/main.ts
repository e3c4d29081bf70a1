import process from 'node:process';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { ForewarnError } from '../errors.ts';

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

await yargs(hideBin(process.argv))
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
  .parseAsync();
