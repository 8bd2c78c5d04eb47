import '#foundation/node-version';
import { formatFailure } from '#foundation';
import { startProgress } from '#foundation/command-line';
import { runLedgerCommand } from './command-line.ts';

// A secret is printed once: a command whose output is lost must not end successfully.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader such as head has enough.
  if (error.code !== 'EPIPE') process.stderr.write(`${formatFailure(error)}\n`);
  process.exitCode = 1;
});
const print = (line: string) => void process.stdout.write(`${line}\n`);

await runLedgerCommand(process.argv.slice(2), process.env, print, startProgress).then(
  (isSuccessful) => {
    if (!isSuccessful) process.exitCode = 1;
  },
  (error) => {
    process.stderr.write(`${formatFailure(error)}\n`);
    process.exitCode = 1;
  },
);
