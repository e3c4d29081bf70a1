// Runs a TypeScript script of this repository: node bench/run.mjs bench/kill-resume.ts ARGS… (Node 20 cannot by itself).
import process from 'node:process';
import { runnerImport } from 'vite';

const [script, ...rest] = process.argv.slice(2);
process.argv = [process.argv[0], script, ...rest];
try {
  await runnerImport(`./${script}`);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
