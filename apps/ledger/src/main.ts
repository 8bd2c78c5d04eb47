import { formatFailure } from '#foundation';
import { runLedgerCommand } from './command-line.ts';

const print = (line: string) => void process.stdout.write(`${line}\n`);

await runLedgerCommand(process.argv.slice(2), process.env, print).then(
  (isSuccessful) => {
    if (!isSuccessful) process.exitCode = 1;
  },
  (error) => {
    process.stderr.write(`${formatFailure(error)}\n`);
    process.exitCode = 1;
  },
);
