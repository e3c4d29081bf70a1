import type { Argv, CommandModule } from 'yargs';
import { DataError } from '../../errors.ts';
import {
  checkScenarioFiles,
  CONDITIONS,
  findScenarios,
  generateScenarios,
  readScenarios,
} from '../../pipeline/scenarios.ts';
import { commandContext } from '../context.ts';

interface GenerateArgs {
  readonly count: number;
  readonly seed: number;
  readonly out: string;
  readonly condition: string;
  readonly json: boolean;
}
interface InputArgs {
  readonly input: string;
  readonly json: boolean;
}
interface ShowArgs extends InputArgs {
  readonly id: string;
}

const json = { type: 'boolean', default: false, describe: 'one JSON document on stdout' } as const;
const input = {
  type: 'string',
  demandOption: true,
  describe: 'parquet or JSON lines: a file, a folder or a pattern',
} as const;

const generate: CommandModule<object, GenerateArgs> = {
  command: 'generate',
  describe: 'Invent tasks with matched worlds (x−, x+, nuisance) for the mock environment',
  builder: (yargs: Argv) =>
    yargs
      .option('count', { type: 'number', demandOption: true, describe: 'tasks; each gives three worlds per condition' })
      .option('seed', { type: 'number', default: 0, describe: 'the same seed gives the same scenarios' })
      .option('out', { type: 'string', demandOption: true, describe: 'folder for scenarios.jsonl' })
      .option('condition', {
        choices: [...CONDITIONS, 'both'],
        default: 'both',
        describe: 'what the system prompt asks of the reasoning',
      })
      .option('json', json)
      .example('$0 scenarios generate --count 50 --seed 1 --out my-scenarios', '300 worlds of 50 tasks'),
  handler: async (args) => {
    const context = commandContext();
    const conditions = CONDITIONS.filter((name) => args.condition === 'both' || args.condition === name);
    const made = await generateScenarios({ count: args.count, seed: args.seed, out: args.out, conditions });
    context.print(args.json ? JSON.stringify(made) : `${made.scenarios} scenarios of ${made.tasks} tasks`);
    if (!args.json) context.print(made.file);
  },
};

const list: CommandModule<object, InputArgs> = {
  command: 'list <input>',
  describe: 'One line per scenario: instance, world, template, style, pressure',
  builder: (yargs: Argv) => yargs.positional('input', input).option('json', json),
  handler: async (args) => {
    const context = commandContext();
    const rows: object[] = [];
    for await (const scenario of readScenarios([args.input])) {
      const { instanceId, world, template, policyStyle, pressure } = scenario;
      if (args.json) rows.push({ instanceId, world, template, policyStyle, pressure });
      else context.print([instanceId, world, template, policyStyle, pressure].map((cell) => cell || '-').join('  '));
    }
    if (args.json) context.print(JSON.stringify(rows));
  },
};

const show: CommandModule<object, ShowArgs> = {
  command: 'show <input> <id>',
  describe: 'A scenario, or all worlds of a pair, in full',
  builder: (yargs: Argv) =>
    yargs
      .positional('input', input)
      .positional('id', { type: 'string', demandOption: true, describe: 'instance, scenario or pair id' })
      .option('json', json),
  handler: async (args) => {
    const context = commandContext();
    const found = await findScenarios([args.input], args.id);
    context.print(JSON.stringify(found, null, args.json ? 0 : 2));
  },
};

const check: CommandModule<object, InputArgs> = {
  command: 'check <input>',
  describe: 'Prove that every pair differs in one fact that is seen in time and decides what is allowed',
  builder: (yargs: Argv) => yargs.positional('input', input).option('json', json),
  handler: async (args) => {
    const context = commandContext();
    const checked = await checkScenarioFiles([args.input]);
    if (args.json) context.print(JSON.stringify(checked));
    else {
      for (const fault of checked.faults) context.print(`${fault.instanceId}: ${fault.kind}: ${fault.detail}`);
      context.print(`${checked.scenarios} scenarios in ${checked.pairs} pairs, ${checked.faults.length} faults`);
    }
    const [first] = checked.faults;
    if (first !== undefined)
      throw new DataError(
        `${args.input}: expected sound scenarios, got ${checked.faults.length} faults (${first.instanceId}: ${first.kind}). Correct them, or leave those pairs out`,
      );
  },
};

export const scenariosCommand: CommandModule = {
  command: 'scenarios',
  describe: 'Scenario worlds of the mock environment: generate, list, show, check',
  builder: (yargs: Argv) =>
    yargs
      .command(generate)
      .command(list)
      .command(show)
      .command(check)
      .demandCommand(1, 'name one of generate, list, show, check')
      .strict(),
  handler: () => undefined,
};
