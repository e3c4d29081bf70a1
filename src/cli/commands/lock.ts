import type { CommandModule } from 'yargs';
import { lockRun } from '../../pipeline/lock-stage.ts';
import { commandContext } from '../context.ts';
import { configOptions, type StageArgs } from './stages.ts';

export const lockCommand: CommandModule<object, StageArgs> = {
  command: 'lock <config>',
  describe: 'Write down what will be tested (configuration, rows, hypotheses, thresholds) before any test row is read',
  builder: (yargs) =>
    configOptions(yargs)
      .example('$0 lock configs/fixture.yaml', 'lock.json in the folder of the run; needs no weights in memory')
      .example('$0 run configs/fixture.yaml', 'the report then shows what was locked and what changed after'),
  handler: async (args) => {
    const context = commandContext();
    const { folder, lock, written } = await lockRun(
      args.config,
      { output: args.out, 'model.threads': args.threads, seed: args.seed },
      context,
    );
    if (args.json) {
      const { hash, lockedAt, rowCount, rowsHash, hypotheses, thresholds } = lock;
      context.print(
        JSON.stringify({ folder, written, hash, lockedAt, rows: rowCount, rowsHash, hypotheses, thresholds }),
      );
      return;
    }
    for (const line of lock.hypotheses) context.print(line);
    context.print(`${lock.rowCount} rows, locked at ${lock.lockedAt}${written ? '' : ' (before)'}: ${lock.hash}`);
    context.print(folder);
  },
};
