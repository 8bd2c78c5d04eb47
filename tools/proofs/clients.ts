/**
 * `npm run prove:clients [-- NAME…]`: runs third-party clients and agents, unmodified, against the build. Each runs a
 * tool and reads a stream. The balance of its account falls by exactly the charges in its history, to the last digit.
 * Afterwards the ledger verifies with a drift of 0. clients/install.ts installs the clients for the proof.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ProofCluster } from '../cluster.ts';
import { startApp } from '../processes.ts';
import { waitForCharges } from './clients/charged.ts';
import type { Client } from './clients/client.ts';
import { getVersion, install, PROOFS_DIR } from './clients/install.ts';
import {
  BREAK_SETTINGS,
  countCalls,
  createInterruptedPrompts,
  fetchBilledCalls,
  isInterrupted,
  listInterruptionFaults,
} from './clients/interrupted-streams.ts';
import { CLIENTS } from './clients/list.ts';
import { isPaid, RecordingWire } from './clients/recording-wire.ts';
import { runCommand } from './clients/run.ts';
import { type ClientRun, formatSummary, listFaults } from './clients/verdict.ts';

const CREDIT_USD = 20;
const RUN_WITHIN_MS = 600_000;

const print = (line: string) => void process.stdout.write(`${line}\n`);

/** The environment of a client. Only the `PATH` is inherited. Telemetry is turned off. */
function createEnv(homeDir: string): Record<string, string> {
  return {
    PATH: `${path.dirname(process.execPath)}:${process.env.PATH}`,
    HOME: homeDir,
    XDG_CONFIG_HOME: path.join(homeDir, '.config'),
    XDG_DATA_HOME: path.join(homeDir, '.local/share'),
    XDG_STATE_HOME: path.join(homeDir, '.local/state'),
    XDG_CACHE_HOME: path.join(homeDir, '.cache'),
    TMPDIR: homeDir,
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    DO_NOT_TRACK: '1',
  };
}

async function prove(cluster: ProofCluster, client: Client): Promise<boolean> {
  const version = getVersion(client);
  try {
    const folder = await install(client);
    const ran = await runOnce(cluster, client, folder);
    const faults = listFaults(ran);
    print(`${client.name} ${version}: ${faults.length === 0 ? 'ok' : 'FAILED'}: ${formatSummary(ran)}`);
    for (const fault of faults) print(`    ${fault}`);
    return faults.length === 0;
  } catch (error) {
    print(`${client.name} ${version}: FAILED: ${error instanceof Error ? error.message : error}`);
    return false;
  }
}

/** Starts the customer's local proxy. @returns its URL */
async function startProxy(gateway: string, key: string, resources: AsyncDisposableStack): Promise<string> {
  const settings = { PPQ_API_BASE: gateway, PPQ_API_KEY: key, PORT: '0', PRIVATE_MODEL: 'gpt-oss-120b' };
  const proxy = await startApp('private-proxy', { ...settings, ALLOW_UNATTESTED: '1' });
  resources.defer(() => proxy.stop());
  return JSON.parse(proxy.readyLine).url;
}

/** Runs a client. Its recorded exchanges and its output are saved in `.proofs/` for analysis. */
async function runOnce(cluster: ProofCluster, client: Client, folder: string): Promise<ClientRun> {
  const customer = await cluster.createCustomer(CREDIT_USD);
  const { balance } = await cluster.fetchBalance(customer);
  await using resources = new AsyncDisposableStack();
  const gateway = cluster.gateways[0] as string;
  const recorder = await RecordingWire.open(
    client.isPrivate ? await startProxy(gateway, customer.apiKey, resources) : gateway,
  );
  const homeDir = await mkdtemp(path.join(tmpdir(), `countinghouse-${client.name}-`));
  try {
    const { args, env } = await client.command({ folder, homeDir, url: recorder.url, key: customer.apiKey });
    const cwd = path.join(homeDir, 'work');
    await mkdir(cwd);
    const clientEnv = {
      ...createEnv(homeDir),
      INTERRUPTED_PROMPTS: JSON.stringify(createInterruptedPrompts(client.name)),
      ...env,
    };
    const outcome = await runCommand(args, { cwd, env: clientEnv, timeoutMs: RUN_WITHIN_MS });
    const { exchanges } = recorder;
    await writeFile(path.join(PROOFS_DIR, `${client.name}.json`), JSON.stringify(exchanges, null, 2));
    await writeFile(path.join(PROOFS_DIR, `${client.name}.txt`), outcome.output);
    const interrupted = exchanges.filter(isInterrupted);
    const completed = exchanges.filter(
      (exchange) => isPaid(exchange) && exchange.status < 300 && !isInterrupted(exchange),
    );
    const failed = countCalls(interrupted);
    const charged = await waitForCharges(cluster, customer, balance, { served: completed.length, failed });
    const streams = { clientName: client.name, exchanges: interrupted, failed: charged.failed };
    const billedCalls = await fetchBilledCalls(
      cluster.sandbox,
      (counts) => listInterruptionFaults({ ...streams, billedCalls: counts }).length === 0,
    );
    return { outcome, exchanges, charged, interruptedStreams: { ...streams, billedCalls } };
  } finally {
    await recorder.close();
    // A process that outlives the client may still write for a moment.
    await rm(homeDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

async function proveAll(dataDir: string, chosen: readonly Client[]): Promise<boolean> {
  const cluster = await ProofCluster.startStandalone(dataDir, { LOG_LEVEL: 'info', ...BREAK_SETTINGS });
  let allPassed = true;
  try {
    for (const client of chosen) allPassed = (await prove(cluster, client)) && allPassed;
    const { code, output } = await cluster.runLedger('verify');
    print(output.trim().split('\n').at(-1) ?? '');
    return allPassed && code === 0;
  } finally {
    await cluster.stop();
  }
}

// Clients run in their own process groups, which Ctrl-C does not reach. They are ended when this process exits.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const names = process.argv.slice(2);
const unknown = names.filter((name) => !CLIENTS.some((client) => client.name === name));
if (unknown.length > 0) {
  print(`Unknown client: ${unknown.join(', ')}. Known clients: ${CLIENTS.map(({ name }) => name).join(', ')}.`);
  process.exitCode = 1;
} else {
  const chosen = names.length > 0 ? CLIENTS.filter(({ name }) => names.includes(name)) : CLIENTS;
  const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-clients-'));
  if (!(await proveAll(dataDir, chosen))) process.exitCode = 1;
  await rm(dataDir, { recursive: true });
}
