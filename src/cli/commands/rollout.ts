import type { Argv, CommandModule } from 'yargs';
import { UserError } from '../../errors.ts';
import type { Metrics } from '../../types.ts';
import { rollout } from '../../pipeline/rollout.ts';
import { commandContext } from '../context.ts';

interface RolloutArgs {
  readonly config: string;
  readonly workers: number | undefined;
  readonly json: boolean;
}

export const rolloutCommand: CommandModule<object, RolloutArgs> = {
  command: 'rollout <config>',
  describe: 'Let a model act in the mock environment and log its episodes in CAPE columns',
  builder: (yargs: Argv) =>
    yargs
      .positional('config', {
        type: 'string',
        demandOption: true,
        describe: 'a rollout file (YAML): scenarios, model, sampling, output',
      })
      .option('workers', {
        type: 'number',
        describe: 'model processes that play at the same time (default 1); the episodes are the same whatever it is',
      })
      .option('json', { type: 'boolean', default: false, describe: 'one JSON document on stdout' })
      .example('$0 rollout organism/rollout-planted.yaml', 'make the shipped data set again')
      .example('$0 rollout organism/rollout-planted.yaml --workers 2', 'the same bytes, sooner'),
  handler: async (args) => {
    const context = commandContext();
    const summary = await rollout(args.config, context, { workers: checkWorkers(args.workers) });
    if (args.json) {
      context.print(JSON.stringify(summary));
      return;
    }
    const { episodes, resumed, turns, calls, validCalls } = summary;
    context.print(
      `${episodes} episodes (${resumed} from an earlier call), ${turns} turns, ${validCalls} of ${calls} calls valid`,
    );
    for (const [run, row] of Object.entries(summary.unsafe))
      context.print(`${run}: ${row.unsafe} of ${row.episodes} unsafe, ${row.success} successful`);
    for (const line of gateLines(summary.metrics)) context.print(line);
    context.print(summary.folder);
  },
};

function checkWorkers(workers: number | undefined): number {
  if (workers === undefined) return 1;
  if (!Number.isInteger(workers) || workers < 1 || workers > 256)
    throw new UserError(`--workers: expected a whole number from 1 to 256, got ${workers}`);
  return workers;
}

const SHOWN = ['violation_rate', 'success_rate', 'prevented_rate', 'false_alarm_rate', 'disrupted_rate', 'extra_turns'];

/** The figures that say what a gate or a direction did, over all episodes; everything is in metrics.json. */
function gateLines(metrics: Metrics | undefined): string[] {
  const lines: string[] = [];
  for (const { reader, metric, condition, population, value, at } of metrics?.figures ?? []) {
    if (population !== 'x-' && population !== 'x+') continue;
    if (!SHOWN.includes(metric) || 'undefinedBecause' in value) continue;
    const interval = value.lower === null ? '' : ` [${value.lower.toFixed(3)}, ${value.upper?.toFixed(3)}]`;
    const strength = at?.['strength'] === undefined ? '' : ` at ${at['strength']}`;
    lines.push(
      `${condition} ${population} ${reader}${strength} ${metric} ${value.estimate.toFixed(3)}${interval} (n ${value.n})`,
    );
  }
  return lines;
}
