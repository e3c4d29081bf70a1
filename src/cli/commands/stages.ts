import type { ArgumentsCamelCase, Argv, CommandModule } from 'yargs';
import { formatPlan } from '../../pipeline/plan-summary.ts';
import type { ExtractSummary } from '../../pipeline/extract-stage.ts';
import { run, type RunOptions, type RunResult, type Stage } from '../../pipeline/run.ts';
import { scoreProbe } from '../../pipeline/score-probe.ts';
import { commandContext } from '../context.ts';

export interface StageArgs {
  readonly config: string;
  readonly out: string | undefined;
  readonly resume: string | undefined;
  readonly json: boolean;
  readonly threads: number | undefined;
  readonly seed: number | undefined;
}

/** Options of every command that takes a configuration. No defaults here: a default would win over the file. */
export function configOptions(yargs: Argv): Argv<StageArgs> {
  return yargs
    .positional('config', { type: 'string', demandOption: true, describe: 'configuration file (YAML)' })
    .option('out', { type: 'string', describe: 'folder for runs' })
    .option('resume', { type: 'string', describe: 'a run folder that has to be of exactly this configuration' })
    .option('threads', { type: 'number', describe: 'threads of the model' })
    .option('seed', { type: 'number', describe: 'seed of folds and draws' })
    .option('json', {
      type: 'boolean',
      default: false,
      describe: 'one JSON document on stdout',
    });
}

interface PlanArgs extends StageArgs {
  readonly export: string | undefined;
}
interface ExtractArgs extends StageArgs {
  readonly from: string | undefined;
}

function print(result: RunResult, stage: Stage, print_: (line: string) => void): void {
  if (stage === 'plan') for (const line of formatPlan(result)) print_(line);
  if (stage === 'extract' && result.extract !== null) print_(extractLine(result.extract));
  for (const line of result.headline) print_(line);
  for (const probe of stage === 'train' ? result.probes : []) print_(probe);
  print_(result.folder);
}

function extractLine({ rows, width, engines, imported }: ExtractSummary): string {
  const states = `${rows.toLocaleString('en')} rows of width ${width}`;
  if (imported === undefined) return engines.length === 0 ? states : `${states} from ${engines.join(', ')}`;
  const { pairs, largestDifference } = imported;
  const twins =
    pairs === 0
      ? 'no two rows stand after the same tokens, so nothing could be compared'
      : `${pairs.toLocaleString('en')} pairs of rows after the same tokens differ by at most ${largestDifference.toPrecision(2)} of the largest magnitude`;
  return `${states} from ${engines.join(', ')}; ${twins}`;
}

/** Brings the run of a configuration up to a stage, and says what came of it. */
export async function bringTo(until: Stage, args: StageArgs, own: Partial<RunOptions> = {}): Promise<void> {
  const context = commandContext();
  const result = await run(
    args.config,
    {
      until,
      flags: { output: args.out, 'model.threads': args.threads, seed: args.seed },
      resume: args.resume ?? null,
      ...own,
    },
    context,
  );
  if (args.json) {
    const { plan, extract, metrics, folder, probes } = result;
    context.print(JSON.stringify({ folder, plan, extract, probes, metrics }));
  } else print(result, until, context.print);
}

/** A command that brings a run up to a stage, with options of its own. */
function stageCommand<Args extends StageArgs = StageArgs>(
  command: string,
  until: Stage,
  describe: string,
  example: string,
  own: {
    readonly options: (yargs: Argv<StageArgs>) => Argv<Args>;
    readonly read: (args: ArgumentsCamelCase<Args>) => Pick<RunOptions, 'exportTo' | 'importFrom'>;
  } | null = null,
): CommandModule<object, Args> {
  return {
    command: `${command} <config>`,
    describe,
    builder: (yargs) => {
      const base = configOptions(yargs).example(`$0 ${command} configs/fixture.yaml`, example);
      return own === null ? (base as Argv<Args>) : own.options(base);
    },
    handler: (args) => bringTo(until, args, own?.read(args)),
  };
}

interface ForecastArgs extends StageArgs {
  readonly probe: string | undefined;
  readonly anyModel: boolean;
}

const forecastCommand: CommandModule<object, ForecastArgs> = {
  command: 'forecast <config>',
  describe: 'Measure the forecast; with --probe, score new episodes with an existing probe, no training',
  builder: (yargs) =>
    configOptions(yargs)
      .option('probe', { type: 'string', describe: 'folder of a probe (card.json, weights.safetensors)' })
      .option('any-model', { type: 'boolean', default: false, describe: 'take a probe of another model' })
      .example('$0 forecast configs/organism.yaml', 'metrics.json and scores.parquet')
      .example(
        '$0 forecast new.yaml --probe FOLDER',
        'score new episodes with a released probe',
      ) as unknown as Argv<ForecastArgs>,
  handler: async (args) => {
    const context = commandContext();
    const flags = { output: args.out, 'model.threads': args.threads, seed: args.seed };
    if (args.probe === undefined) {
      const result = await run(args.config, { until: 'forecast', flags, resume: args.resume ?? null }, context);
      context.print(args.json ? JSON.stringify({ folder: result.folder, metrics: result.metrics }) : result.folder);
    } else {
      const result = await scoreProbe(args.config, { probe: args.probe, anyModel: args.anyModel, flags }, context);
      context.print(args.json ? JSON.stringify(result) : result.folder);
    }
  },
};

/** Each brings the run of a configuration up to its stage; what is done already is kept. */
export const stageCommands = [
  stageCommand<PlanArgs>(
    'plan',
    'plan',
    'Token ids, positions, cost and every exclusion; needs no weights in memory',
    'what a run would read and write',
    {
      options: (yargs) =>
        yargs
          .option('export', { type: 'string', describe: 'folder for the plan, to be read by another engine' })
          .example('$0 plan big.yaml --export plan', 'ids and positions for an engine on another machine'),
      read: ({ export: exportTo }) => ({ exportTo: exportTo ?? null }),
    },
  ),
  stageCommand<ExtractArgs>(
    'extract',
    'extract',
    'Replay every turn and store the hidden states',
    'resumes where it stopped',
    {
      options: (yargs) =>
        yargs
          .option('from', { type: 'string', describe: 'folder with what another engine computed for the plan' })
          .example('$0 extract big.yaml --from states', 'checks and takes it'),
      read: ({ from }) => ({ importFrom: from ?? null }),
    },
  ),
  stageCommand('train', 'train', 'Train probes and write them with their cards', 'one probe per landmark'),
  forecastCommand,
  stageCommand(
    'intervene',
    'intervene',
    'Simulate stopping the action on the logged episodes',
    'prevented, late, disrupted, untouched',
  ),
  stageCommand('run', 'report', 'All of it: episodes to report', 'the main job on what ships'),
] as const;
