/** Steps that several parts of the proof have in common. */
import { type Customer, ProofCluster } from '../../cluster.ts';
import { root } from '../../processes.ts';
import { runCommand } from '../clients/run.ts';
import { sendChat } from './load.ts';

const COMMAND_TIMEOUT_MS = 300_000;

let failures = 0;

/** Prints the result of a check, and counts it if it failed. */
export function check(isTrue: boolean, what: string): void {
  process.stdout.write(`${what}: ${isTrue ? 'ok' : 'FAILED'}\n`);
  if (!isTrue) failures++;
}

export function countFailures(): number {
  return failures;
}

export type CommandSettings = Readonly<Record<string, string>>;

/** Runs a maintenance program. @returns whether it succeeded, and the last line that it printed */
export async function runMaintenance(program: 'backup' | 'grant', env: CommandSettings, ...args: readonly string[]) {
  const command = [process.execPath, `dist/apps/maintenance/src/${program}.js`, ...args];
  const fullEnv = { ...(process.env as Record<string, string>), ...env };
  const { code, output } = await runCommand(command, { cwd: root, env: fullEnv, timeoutMs: COMMAND_TIMEOUT_MS });
  if (code !== 0) process.stdout.write(output);
  return { isSuccessful: code === 0, lastLine: output.trimEnd().split('\n').at(-1) ?? '' };
}

/**
 * Starts all roles on restored data: the ledger must verify, the customer must have the balance, if one is expected, and
 * a chat must succeed and be charged.
 */
export async function checkService(
  name: string,
  { dataDir, ...settings }: CommandSettings & { readonly dataDir: string },
  customer: Customer,
  expectedBalance?: number,
): Promise<void> {
  const cluster = await ProofCluster.start(dataDir, 1, settings);
  try {
    await cluster.waitUntilReady();
    const { code, output } = await cluster.runLedger('verify');
    const lastLine = output.trimEnd().split('\n').at(-1);
    check(code === 0 && lastLine === 'drift 0', `${name}: the ledger verifies (${lastLine})`);
    const { balance } = await cluster.fetchBalance(customer);
    if (expectedBalance !== undefined)
      check(balance === expectedBalance, `${name}: the balance is ${balance} USD, as at the time of the backup`);
    const isServed = await sendChat(String(cluster.gateways[0]), customer.apiKey);
    const isCharged = (await cluster.fetchBalance(customer)).balance < balance;
    check(isServed && isCharged, `${name}: a gateway serves and charges a chat`);
  } finally {
    await cluster.stop();
  }
}
