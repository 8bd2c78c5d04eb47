/** Runs the roles as processes on this host, with customers who use them, for proofs and benchmarks. */
import { type ChildProcess, execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { readProviders } from '#catalogue';
import { root, type StartedProcess, startApp } from './processes.ts';
import { getStoreSettings } from './stores.ts';

/** Raises limits that proofs could reach: their customers call often, and all from one IP address. */
const UNLIMITED = {
  ACCOUNTS_PER_HOUR: '1000000',
  INVOICES_PER_HOUR_OF_ADDRESS: '1000000',
  INVOICES_PER_HOUR_OF_ACCOUNT: '1000000',
  INVOICES_PER_HOUR_OF_KEY: '1000000',
  CHANGES_PER_HOUR: '1000000',
  MAX_CONNECTIONS_PER_ADDRESS: '1000000',
};
const POLL_INTERVAL_MS = 20;
const CREDITED_WITHIN_MS = 20_000;
const READY_WITHIN_MS = 300_000;
/** Bounds the output of a ledger command; a list of all open holds is the longest one. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** There is no load balancer that has to notice that a gateway stops. */
const NO_DRAIN_DELAY = { DRAIN_DELAY_MS: '0' };

export interface Customer {
  readonly creditId: string;
  readonly apiKey: string;
}

export interface CommandResult {
  readonly code: number;
  /** What it printed, errors last. */
  readonly output: string;
}

export interface StartedCommand {
  readonly process: ChildProcess;
  readonly result: Promise<CommandResult>;
}

/**
 * Gateways, projector and sagas on the embedded stores of one data directory. The sandbox simulates the external
 * services that are not configured. If `EVENTSTORE_URL` is set, events are stored on that server.
 */
export class ProofCluster {
  readonly processes = new Map<string, StartedProcess>();

  private constructor(
    readonly dataDir: string,
    private env: Readonly<Record<string, string>>,
    readonly sandbox: string,
    private build = root,
  ) {}

  /** @param build the directory whose `dist` runs all roles; the sandbox is always this build's */
  static async start(
    dataDir: string,
    gateways: number,
    settings: Readonly<Record<string, string>> = {},
    build = root,
  ): Promise<ProofCluster> {
    const cluster = await ProofCluster.startSandbox(dataDir, settings, build);
    try {
      await cluster.startRole('projector');
      await cluster.startRole('sagas');
      for (let i = 0; i < gateways; i++) await cluster.startRole('gateway', `gateway ${i + 1}`);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** As `start`, but without any role: the caller starts them. */
  static async startSandbox(
    dataDir: string,
    settings: Readonly<Record<string, string>> = {},
    build = root,
  ): Promise<ProofCluster> {
    const sandbox = await startApp('sandbox', { SANDBOX_PORT: '0' });
    const { url } = JSON.parse(sandbox.readyLine) as { url: string };
    const address = { DATA_DIR: dataDir, SANDBOX_PORT: new URL(url).port };
    const env = {
      ...getStoreSettings(process.env),
      ...address,
      ...NO_DRAIN_DELAY,
      ...UNLIMITED,
      ...getRateSettings(url),
      ...getProviderSettings(url),
      ...settings,
    };
    const cluster = new ProofCluster(dataDir, env, url, build);
    cluster.processes.set('sandbox', sandbox);
    return cluster;
  }

  /** The settings of all roles that are started later. */
  get environment(): Readonly<Record<string, string>> {
    return this.env;
  }

  /** Runs later roles and ledger commands from another build. @param build the directory that contains its `dist` */
  useBuild(build: string): this {
    this.build = build;
    return this;
  }

  /** Adds settings to the roles that are started later. */
  addSettings(settings: Readonly<Record<string, string>>): this {
    this.env = { ...this.env, ...settings };
    return this;
  }

  /** Starts everything in one process, as `npm start` does. */
  static async startStandalone(
    dataDir: string,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<ProofCluster> {
    const env = { ...getStoreSettings(process.env), DATA_DIR: dataDir, ...NO_DRAIN_DELAY, ...UNLIMITED, ...settings };
    const standalone = await startApp('standalone', { ...env, PORT: '0', SANDBOX_PORT: '0' });
    const cluster = new ProofCluster(dataDir, env, (JSON.parse(standalone.readyLine) as { sandbox: string }).sandbox);
    cluster.processes.set('gateway', standalone);
    return cluster;
  }

  /** @param settings of this process only */
  async startRole(role: string, name = role, settings: Readonly<Record<string, string>> = {}): Promise<StartedProcess> {
    const started = await startApp(role, { ...this.env, PORT: '0', ...settings }, this.build);
    this.processes.set(name, started);
    return started;
  }

  /** Waits until all gateways are ready. The read models then include the events from before the gateways started. */
  async waitUntilReady(): Promise<void> {
    const deadline = performance.now() + READY_WITHIN_MS;
    for (const api of this.gateways)
      while (!(await fetch(`${api}/health/ready`)).ok) {
        if (performance.now() > deadline) throw new Error('a gateway did not become ready in time');
        await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
      }
  }

  async stopRole(name: string): Promise<void> {
    await this.processes.get(name)?.stop();
    this.processes.delete(name);
  }

  /** The URLs of the gateways that are running. */
  get gateways(): readonly string[] {
    const lines = [...this.processes]
      .filter(([name]) => name.startsWith('gateway'))
      .map(([, { readyLine }]) => readyLine);
    return lines.map((line) => (JSON.parse(line) as { api: string }).api);
  }

  async readPostgresPid(): Promise<number> {
    return Number((await readFile(path.join(this.dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0]);
  }

  /** Runs a ledger command while the cluster is running. */
  runLedger(...args: string[]): Promise<CommandResult> {
    return this.startLedger(...args).result;
  }

  /** Starts a ledger command that the caller can kill. */
  startLedger(...args: string[]): StartedCommand {
    return startCommand([process.execPath, 'dist/apps/ledger/src/main.js', ...args], { ...this.env }, this.build);
  }

  async stop(): Promise<void> {
    for (const name of [...this.processes.keys()].reverse()) await this.stopRole(name);
  }

  /** Creates an account and tops it up with `usd` USD, to which a bonus of 5 % is added. */
  async createCustomer(usd: number): Promise<Customer> {
    const [api = ''] = this.gateways;
    const { credit_id, api_key } = await post(`${api}/accounts/create`);
    const customer = { creditId: String(credit_id), apiKey: String(api_key) };
    if (usd > 0) await this.fund(customer, usd);
    return customer;
  }

  /** Creates another API key of an account. */
  async createKey({ creditId }: Customer, settings: object): Promise<{ readonly id: string; readonly apiKey: string }> {
    const headers = { 'content-type': 'application/json', 'x-credit-id': creditId };
    const body = JSON.stringify(settings);
    const response = await fetch(`${this.gateways[0]}/keys`, { method: 'POST', headers, body });
    const { data } = (await response.json()) as { data: { _id: string; api_key: string } };
    return { id: data._id, apiKey: data.api_key };
  }

  async fund({ apiKey }: Customer, usd: number): Promise<void> {
    const [api = ''] = this.gateways;
    const order = { amount: usd, currency: 'USD' };
    const { invoice_id, lightning_invoice } = await post(`${api}/topup/create/btc-lightning`, order, apiKey);
    await post(`${this.sandbox}/wallet/pay`, { invoice: lightning_invoice });
    const deadline = performance.now() + CREDITED_WITHIN_MS;
    for (;;) {
      const status = (await (await fetch(`${api}/topup/status/${invoice_id}`)).json()) as { status: string };
      if (status.status === 'Settled') return;
      if (performance.now() > deadline) throw new Error('a payment was not credited in time');
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    }
  }

  async fetchBalance({ apiKey }: Customer): Promise<{ readonly balance: number; readonly held_usd: number }> {
    return (await post(`${this.gateways[0]}/credits/balance`, undefined, apiKey)) as never;
  }
}

export async function post(url: string, body?: object, key?: string): Promise<Record<string, unknown>> {
  const headers = {
    ...(body ? { 'content-type': 'application/json' } : {}),
    ...(key ? { authorization: `Bearer ${key}` } : {}),
  };
  const response = await fetch(url, { method: 'POST', headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  return (await response.json()) as Record<string, unknown>;
}

function startCommand([file = '', ...args]: string[], env: Record<string, string>, cwd: string): StartedCommand {
  const { promise: result, resolve } = Promise.withResolvers<CommandResult>();
  const options = { cwd, env: { ...process.env, ...env }, maxBuffer: MAX_OUTPUT_BYTES };
  const child = execFile(file, args, options, (error, output, stderr) => {
    resolve({ code: error ? Number(error.code ?? 1) : 0, output: output + stderr });
  });
  return { process: child, result };
}

/** Simulates each provider whose address a proof does not set. */
function getProviderSettings(sandbox: string): Readonly<Record<string, string>> {
  return Object.fromEntries(readProviders().map(({ env, sandboxPath }) => [`${env}_BASE_URL`, sandbox + sandboxPath]));
}

/** Simulated exchange rates, also for proofs with real payment backends: coins of a test network have no market. */
function getRateSettings(sandbox: string): Readonly<Record<string, string>> {
  return {
    KRAKEN_URL: `${sandbox}/kraken`,
    COINBASE_URL: `${sandbox}/coinbase`,
    COINGECKO_URL: `${sandbox}/coingecko`,
  };
}
