/** A complete installation in separate processes. The traffic on both sides of the gateways is recorded. */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { createLog, openFoundation, readSettings } from '#foundation';
import { type Customer, ProofCluster } from '../../cluster.ts';
import { type StartedProcess, startApp } from '../../processes.ts';
import { type Recorder, startRecorder } from './recorder.ts';

const GATEWAYS = 2;
const CREDIT_USD = 200;
const ENDED_WITHIN_MS = 90_000;
const POLL_INTERVAL_MS = 50;

export interface Proxy {
  readonly started: StartedProcess;
  readonly url: string;
}

type Foundation = Awaited<ReturnType<typeof openFoundation>>;

interface SceneParts {
  /** Contains data, temporary files and recordings. */
  readonly directory: string;
  readonly cluster: ProofCluster;
  readonly customer: Customer;
  readonly wires: { readonly gateways: readonly Recorder[]; readonly enclaves: Recorder };
  readonly foundation: Foundation;
}

export class Scene {
  readonly proxies: Proxy[] = [];
  /** The output of killed processes. */
  readonly earlierOutput: string[] = [];

  readonly directory: string;
  readonly cluster: ProofCluster;
  readonly customer: Customer;
  readonly wires: SceneParts['wires'];
  readonly database: pg.Pool;
  private readonly foundation: Foundation;

  private constructor(parts: SceneParts) {
    this.directory = parts.directory;
    this.cluster = parts.cluster;
    this.customer = parts.customer;
    this.wires = parts.wires;
    this.foundation = parts.foundation;
    this.database = new pg.Pool({ connectionString: parts.foundation.databaseUrl, max: 2 });
  }

  static async open(directory: string): Promise<Scene> {
    const resources = new AsyncDisposableStack();
    try {
      const scene = await Scene.create(directory, resources);
      resources.move();
      return scene;
    } finally {
      await resources.disposeAsync();
    }
  }

  private static async create(directory: string, resources: AsyncDisposableStack): Promise<Scene> {
    const [data = '', temporary = '', wires = ''] = ['data', 'tmp', 'wires'].map((name) => path.join(directory, name));
    for (const folder of [temporary, wires]) await mkdir(folder, { recursive: true });
    const settings = {
      LOG_LEVEL: 'trace',
      TMPDIR: temporary,
      // Writes a heap snapshot into this directory on SIGUSR2.
      NODE_OPTIONS: `--heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${wires}`,
    };
    const cluster = await ProofCluster.start(data, 0, settings);
    resources.defer(() => cluster.stop());
    const enclaves = await startRecorder(getPort(cluster.sandbox), path.join(wires, 'gateways-enclaves'));
    cluster.addSettings({
      TINFOIL_BASE_URL: `${enclaves.url}/enclaves`,
      TINFOIL_API_KEY: 'sandbox',
      OPENAI_BASE_URL: `${enclaves.url}/openai/v1`,
      OPENAI_API_KEY: 'sandbox',
    });
    const gateways: Recorder[] = [];
    for (let i = 0; i < GATEWAYS; i++) {
      const started = await cluster.startRole('gateway', formatGatewayName(i));
      gateways.push(await startRecorder(getApiPort(started), path.join(wires, `proxy-gateway-${i}`)));
    }
    const customer = await cluster.createCustomer(CREDIT_USD);
    const foundation = await openFoundation(readSettings({ DATA_DIR: data }), createLog('warn'));
    resources.defer(() => foundation.close());
    const scene = new Scene({ directory, cluster, customer, wires: { gateways, enclaves }, foundation });
    for (let i = 0; i < GATEWAYS; i++) await scene.startProxy(i);
    return scene;
  }

  get store() {
    return this.foundation.store;
  }

  /** The process ids of the running gateways. */
  get gatewayPids(): readonly number[] {
    return [...this.cluster.processes].filter(([name]) => name.startsWith('gateway')).map(([, { pid }]) => pid);
  }

  /** Starts a proxy. The first proxy has the default log level; the others log as much as possible. */
  async startProxy(i: number): Promise<void> {
    const env = {
      PPQ_API_KEY: this.customer.apiKey,
      PPQ_API_BASE: this.wires.gateways[i]?.url as string,
      ALLOW_UNATTESTED: '1',
      PORT: '0',
      TMPDIR: path.join(this.directory, 'tmp'),
      ...(i === 0 ? {} : { DEBUG: '1' }),
    };
    const started = await startApp('private-proxy', env);
    const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(started.readyLine) ?? [];
    this.proxies[i] = { started, url };
  }

  async killProxy(i: number): Promise<void> {
    const { started } = this.proxies[i] as Proxy;
    await started.kill();
    this.earlierOutput.push(...started.outputChunks);
    await this.startProxy(i);
  }

  async killGateway(i: number): Promise<void> {
    const victim = this.cluster.processes.get(formatGatewayName(i)) as StartedProcess;
    await victim.kill();
    this.earlierOutput.push(...victim.outputChunks);
    this.cluster.processes.delete(formatGatewayName(i));
    const started = await this.cluster.startRole('gateway', formatGatewayName(i));
    this.wires.gateways[i]?.setTargetPort(getApiPort(started));
  }

  /** Waits until no money is held. @returns false if that takes too long */
  async waitUntilSettled(): Promise<boolean> {
    const deadline = performance.now() + ENDED_WITHIN_MS;
    while ((await this.cluster.fetchBalance(this.customer)).held_usd > 0) {
      if (performance.now() > deadline) return false;
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    }
    return true;
  }

  /** Returns the output of all running and ended processes, except for the sandbox. */
  collectOutput(): string {
    const roles = [...this.cluster.processes].filter(([name]) => name !== 'sandbox').map(([, started]) => started);
    const all = [...roles, ...this.proxies.map(({ started }) => started)];
    return [...this.earlierOutput, ...all.flatMap(({ outputChunks }) => outputChunks)].join('');
  }

  async close(): Promise<void> {
    for (const { started } of this.proxies) await started.stop();
    await this.database.end();
    await this.foundation.close();
    await this.cluster.stop();
    for (const recorder of [...this.wires.gateways, this.wires.enclaves]) await recorder.close();
  }
}

function formatGatewayName(i: number): string {
  return `gateway ${i + 1}`;
}

function getApiPort({ readyLine }: StartedProcess): number {
  return getPort((JSON.parse(readyLine) as { api: string }).api);
}

function getPort(url: string): number {
  return Number(new URL(url).port);
}
