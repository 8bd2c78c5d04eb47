import { ledger } from './command-line.ts';

const print = (line: string) => void process.stdout.write(`${line}\n`);

await ledger(process.argv.slice(2), process.env, print).then(
  (isRight) => {
    if (!isRight) process.exitCode = 1;
  },
  (error) => {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 1;
  },
);
