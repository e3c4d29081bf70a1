import type { CommandModule } from 'yargs';
import { DataError } from '../../errors.ts';
import { doctor } from '../../pipeline/doctor.ts';
import { commandContext } from '../context.ts';

interface DoctorArgs {
  readonly target: string | undefined;
  readonly json: boolean;
}

const SIGN = { ok: 'ok     ', warning: 'warning', wrong: 'WRONG  ' } as const;

export const doctorCommand: CommandModule<object, DoctorArgs> = {
  command: 'doctor [target]',
  describe: 'What this machine can run with a configuration or a model folder, and why not',
  builder: (yargs) =>
    yargs
      .positional('target', { type: 'string', describe: 'configuration file or model folder' })
      .option('json', { type: 'boolean', default: false, describe: 'one JSON document on stdout' })
      .example('$0 doctor', 'the machine alone')
      .example('$0 doctor configs/organism.yaml', 'everything a run needs'),
  handler: async (args) => {
    const context = commandContext();
    const findings = await doctor(args.target ?? null);
    if (args.json) context.print(JSON.stringify(findings));
    else for (const { what, state, detail } of findings) context.print(`${SIGN[state]} ${what.padEnd(13)} ${detail}`);
    const wrong = findings.filter((finding) => finding.state === 'wrong');
    if (wrong.length > 0)
      throw new DataError(
        `${wrong.length} of ${findings.length} checks failed: ${wrong.map((finding) => finding.what).join(', ')}`,
      );
  },
};
