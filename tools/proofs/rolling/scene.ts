/** HAProxy with three gateways, two projectors and two sagas, whose processes are replaced under a steady load. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startEmbeddedPostgres } from '#foundation';
import { type Customer, ProofCluster } from '../../cluster.ts';
import type { StartedProcess } from '../../processes.ts';
import { type ChargeComparison, compareCharges } from './charges.ts';
import { DRAIN_DELAY_MS, type Haproxy, startHaproxy } from './haproxy.ts';
import { SteadyLoad } from './load.ts';

const GATEWAYS = ['gateway 1', 'gateway 2', 'gateway 3'] as const;
/** The order of an upgrade. A rollback has the reverse order. */
const PROCESSES = ['projector 1', 'projector 2', 'sagas 1', 'sagas 2', ...GATEWAYS] as const;
type ProcessName = (typeof PROCESSES)[number];

const CUSTOMERS = 20;
const CREDIT_USD = 500;
/** Below the range of outgoing connections on Linux: such a connection could take the port of a stopped process. */
const [MIN_PORT, MAX_PORT] = [20_000, 32_000];
const READY_WITHIN_MS = 300_000;
const SETTLED_WITHIN_MS = 60_000;
const POLL_INTERVAL_MS = 50;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export interface RollingFinding extends ChargeComparison {
  /** The last line of `ledger verify`. */
  readonly drift: string;
  readonly hasVerified: boolean;
  readonly heldUsd: number;
}

/** @param databaseUrl the address of the owner of the database */
export type PrepareSettings = (cluster: ProofCluster, databaseUrl: string) => Promise<Readonly<Record<string, string>>>;

interface RollingParts {
  readonly cluster: ProofCluster;
  readonly customers: readonly Customer[];
  readonly haproxy: Haproxy;
  readonly portNumbers: ReadonlyMap<ProcessName, number>;
}

export class RollingScene {
  private constructor(
    private readonly parts: RollingParts,
    private readonly resources: AsyncDisposableStack,
  ) {}

  /**
   * @param build the directory whose `dist` runs all roles
   * @param prepare returns the settings of all roles besides the usual ones
   */
  static async open(build: string, prepare?: PrepareSettings): Promise<RollingScene> {
    await using resources = new AsyncDisposableStack();
    const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-rolling-'));
    resources.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
    const dataDir = path.join(directory, 'data');
    await mkdir(dataDir, { mode: 0o700 });
    const postgres = await startEmbeddedPostgres(dataDir);
    resources.defer(() => postgres.close());
    const [port = 0, ...processPortNumbers] = await findFreePortNumbers(1 + PROCESSES.length);
    const portNumbers = new Map(PROCESSES.map((name, i) => [name, processPortNumbers[i] as number]));
    const cluster = await ProofCluster.startSandbox(dataDir, { DRAIN_DELAY_MS: String(DRAIN_DELAY_MS) }, build);
    resources.defer(() => cluster.stop());
    if (prepare) cluster.addSettings(await prepare(cluster, postgres.url));
    for (const name of PROCESSES) await startProcess(cluster, name, portNumbers.get(name) as number);
    const haproxy = await startHaproxy(
      directory,
      port,
      GATEWAYS.map((name) => portNumbers.get(name) as number),
    );
    resources.defer(() => haproxy.stop());
    const customers: Customer[] = [];
    while (customers.length < CUSTOMERS) customers.push(await cluster.createCustomer(CREDIT_USD));
    return new RollingScene({ cluster, customers, haproxy, portNumbers }, resources.move());
  }

  /** The address of the API. */
  get url(): string {
    return this.parts.haproxy.url;
  }

  get cluster(): ProofCluster {
    return this.parts.cluster;
  }

  /** The processes that are replaced: all but the sandbox. */
  listProcesses(): readonly StartedProcess[] {
    return PROCESSES.flatMap((name) => this.cluster.processes.get(name) ?? []);
  }

  startLoad(requestsPerSecond: number, streamMs: number): SteadyLoad {
    return new SteadyLoad({
      url: this.url,
      customers: this.parts.customers,
      requestsPerSecond,
      streamMs,
    });
  }

  /** Replaces every process, one after the other, each by SIGTERM and after the one before is ready. */
  async replaceAll(build: string, direction: 'forward' | 'back' = 'forward'): Promise<void> {
    const { cluster, portNumbers } = this.parts;
    cluster.useBuild(build);
    for (const name of direction === 'forward' ? PROCESSES : PROCESSES.toReversed()) {
      await cluster.stopRole(name);
      await startProcess(cluster, name, portNumbers.get(name) as number);
    }
  }

  /** HAProxy's log lines about requests that failed. */
  listProxyErrors(): readonly string[] {
    return this.parts.haproxy.listErrors();
  }

  /** Compares the charges with the responses once nothing is held. */
  async compareCharges(requestIds: readonly string[]): Promise<RollingFinding> {
    const heldUsd = await this.waitUntilNothingHeld();
    const { cluster } = this.parts;
    const { code, output } = await cluster.runLedger('verify');
    const comparison = await compareCharges(cluster, requestIds);
    return { ...comparison, heldUsd, hasVerified: code === 0, drift: output.trim().split('\n').at(-1) ?? '' };
  }

  async close(): Promise<void> {
    await this.resources.disposeAsync();
  }

  /** Waits at most a minute. @returns what is still held, in USD */
  private async waitUntilNothingHeld(): Promise<number> {
    const deadline = performance.now() + SETTLED_WITHIN_MS;
    const { cluster, customers } = this.parts;
    for (;;) {
      const balances = await Promise.all(customers.map((customer) => cluster.fetchBalance(customer)));
      const heldUsd = balances.reduce((total, { held_usd }) => total + held_usd, 0);
      if (heldUsd === 0 || performance.now() > deadline) return heldUsd;
      await sleep(POLL_INTERVAL_MS);
    }
  }
}

/** Starts a process on its port and waits until it reports that it is ready. */
async function startProcess(cluster: ProofCluster, name: ProcessName, port: number): Promise<void> {
  const [role = ''] = name.split(' ');
  await cluster.startRole(role, name, role === 'gateway' ? { PORT: String(port) } : { HEALTH_PORT: String(port) });
  const deadline = performance.now() + READY_WITHIN_MS;
  while (!(await fetch(`http://127.0.0.1:${port}/health/ready`)).ok) {
    if (performance.now() > deadline) throw new Error(`${name} did not become ready in time`);
    await sleep(POLL_INTERVAL_MS);
  }
}

/** Returns free ports that no outgoing connection takes. */
async function findFreePortNumbers(count: number): Promise<readonly number[]> {
  const portNumbers: number[] = [];
  let port = MIN_PORT + Math.floor(Math.random() * (MAX_PORT - MIN_PORT) * 0.9);
  for (; portNumbers.length < count && port < MAX_PORT; port++) if (await isFree(port)) portNumbers.push(port);
  return portNumbers;
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
