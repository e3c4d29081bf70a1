import type { CommandModule } from 'yargs';
import { DataError } from '../../errors.ts';
import { doctor, type ModelReport } from '../../pipeline/doctor.ts';
import { commandContext } from '../context.ts';

interface DoctorArgs {
  readonly target: string | undefined;
  readonly json: boolean;
}

const SIGN = { ok: 'ok     ', warning: 'warning', wrong: 'WRONG  ' } as const;

function tapTable({ taps, state }: ModelReport): string[] {
  const lines = taps.map(
    ({ tap, value, dtype, moves }) =>
      `        ${tap.padEnd(14)} ${dtype.padEnd(8)} ${(moves === undefined ? '' : `moves ${moves.toPrecision(2)}`).padEnd(15)} ${value}`,
  );
  return [...lines, ...state.map(({ input, dtype, kind }) => `        state ${input}: ${kind} ${dtype}`)];
}

export const doctorCommand: CommandModule<object, DoctorArgs> = {
  command: 'doctor [target]',
  describe: 'What this machine can run with a configuration or a model folder, and why not',
  builder: (yargs) =>
    yargs
      .positional('target', { type: 'string', describe: 'configuration file, model folder or .onnx file' })
      .option('json', { type: 'boolean', default: false, describe: 'one JSON document on stdout' })
      .example('$0 doctor', 'the machine alone')
      .example('$0 doctor configs/fixture.yaml', 'everything a run needs')
      .example('$0 doctor MODEL --json', '{layers, taps: [{tap, value, dtype, moves}], state, refused?, findings}'),
  handler: async (args) => {
    const context = commandContext();
    const { findings, model } = await doctor(args.target ?? null);
    if (args.json) context.print(JSON.stringify(model === null ? findings : { ...model, findings }));
    else for (const { what, state, detail } of findings) context.print(`${SIGN[state]} ${what.padEnd(13)} ${detail}`);
    if (!args.json && model !== null) for (const line of tapTable(model)) context.print(line);
    const wrong = findings.filter((finding) => finding.state === 'wrong');
    if (wrong.length > 0)
      throw new DataError(
        `${wrong.length} of ${findings.length} checks failed: ${wrong.map((finding) => finding.what).join(', ')}`,
      );
  },
};
