import { runLedgerCommand } from '../../../../apps/ledger/src/command-line.ts';

/**
 * Runs a command of the ledger command line in this process, and returns the lines that it prints.
 * @param env the settings of the installation
 * @throws Error with these lines if the command found a problem, or an error whose message is for the operator
 */
export async function runLedger(env: Readonly<Record<string, string>>, ...args: string[]): Promise<readonly string[]> {
  const lines: string[] = [];
  if (await runLedgerCommand(args, env, (line) => void lines.push(line))) return lines;
  throw new Error(lines.join('\n'));
}
