/** The product as it runs, each part a process of its own, with a tap on the wire before and behind the gateways. */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { createLog, openFoundation, readSettings } from '#foundation';
import { type Customer, ProofCluster } from '../../cluster.ts';
import { type Started, startApp } from '../../processes.ts';
import { type Recorder, startRecorder } from './recorder.ts';

const GATEWAYS = 2;
const CREDIT_USD = 200;
const ENDED_WITHIN_MS = 90_000;
const LOOK_AGAIN_MS = 50;

export interface Proxy {
  readonly started: Started;
  readonly url: string;
}

type Foundation = Awaited<ReturnType<typeof openFoundation>>;

interface Parts {
  /** Data, temporary files and recordings are below it. */
  readonly directory: string;
  readonly cluster: ProofCluster;
  readonly customer: Customer;
  readonly wires: { readonly gateways: readonly Recorder[]; readonly enclaves: Recorder };
  readonly foundation: Foundation;
}

export class Scene {
  readonly proxies: Proxy[] = [];
  /** What processes that were killed had printed. */
  readonly printedBefore: string[] = [];

  readonly directory: string;
  readonly cluster: ProofCluster;
  readonly customer: Customer;
  readonly wires: Parts['wires'];
  readonly database: pg.Pool;
  private readonly foundation: Foundation;

  private constructor(parts: Parts) {
    this.directory = parts.directory;
    this.cluster = parts.cluster;
    this.customer = parts.customer;
    this.wires = parts.wires;
    this.foundation = parts.foundation;
    this.database = new pg.Pool({ connectionString: parts.foundation.databaseUrl, max: 2 });
  }

  static async open(directory: string): Promise<Scene> {
    const opened = new AsyncDisposableStack();
    try {
      const scene = await Scene.opening(directory, opened);
      opened.move();
      return scene;
    } finally {
      await opened.disposeAsync();
    }
  }

  private static async opening(directory: string, opened: AsyncDisposableStack): Promise<Scene> {
    const [data = '', temporary = '', wires = ''] = ['data', 'tmp', 'wires'].map((name) => path.join(directory, name));
    for (const each of [temporary, wires]) await mkdir(each, { recursive: true });
    const settings = {
      ...{ LOG_LEVEL: 'trace', TMPDIR: temporary },
      // Where its memory is written on SIGUSR2.
      NODE_OPTIONS: `--heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${wires}`,
    };
    const cluster = await ProofCluster.start(data, 0, settings);
    opened.defer(() => cluster.stop());
    const enclaves = await startRecorder(portOf(cluster.sandbox), path.join(wires, 'gateways-enclaves'));
    cluster.with({ TINFOIL_BASE_URL: `${enclaves.url}/enclaves`, OPENAI_BASE_URL: `${enclaves.url}/openai/v1` });
    const gateways: Recorder[] = [];
    for (let i = 0; i < GATEWAYS; i++) {
      const started = await cluster.startRole('gateway', gatewayName(i));
      gateways.push(await startRecorder(apiPortOf(started), path.join(wires, `proxy-gateway-${i}`)));
    }
    const customer = await cluster.customer(CREDIT_USD);
    const foundation = await openFoundation(readSettings({ DATA_DIR: data }), createLog('warn'));
    opened.defer(() => foundation.close());
    const scene = new Scene({ directory, cluster, customer, wires: { gateways, enclaves }, foundation });
    for (let i = 0; i < GATEWAYS; i++) await scene.startProxy(i);
    return scene;
  }

  get store() {
    return this.foundation.store;
  }

  /** Of the gateways that run. */
  get gatewayPids(): readonly number[] {
    return [...this.cluster.processes].filter(([name]) => name.startsWith('gateway')).map(([, { pid }]) => pid);
  }

  /** The first keeps quiet, the others say all that they can. */
  async startProxy(i: number): Promise<void> {
    const env = {
      ...{ PPQ_API_KEY: this.customer.apiKey, PPQ_API_BASE: this.wires.gateways[i]?.url as string },
      ...{ ALLOW_UNATTESTED: '1', PORT: '0', TMPDIR: path.join(this.directory, 'tmp') },
      ...(i === 0 ? {} : { DEBUG: '1' }),
    };
    const started = await startApp('private-proxy', env);
    const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(started.line) ?? [];
    this.proxies[i] = { started, url };
  }

  async killProxy(i: number): Promise<void> {
    const { started } = this.proxies[i] as Proxy;
    await started.kill();
    this.printedBefore.push(...started.printed);
    await this.startProxy(i);
  }

  async killGateway(i: number): Promise<void> {
    const victim = this.cluster.processes.get(gatewayName(i)) as Started;
    await victim.kill();
    this.printedBefore.push(...victim.printed);
    this.cluster.processes.delete(gatewayName(i));
    const started = await this.cluster.startRole('gateway', gatewayName(i));
    this.wires.gateways[i]?.leadTo(apiPortOf(started));
  }

  /** Until nothing is held any more, and what was charged is in the history. @returns false when that is not so in time */
  async settled(): Promise<boolean> {
    const deadline = performance.now() + ENDED_WITHIN_MS;
    while ((await this.cluster.balance(this.customer)).held_usd > 0) {
      if (performance.now() > deadline) return false;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
    return true;
  }

  /** What everything that runs or ran has printed, but for the sandbox. */
  printed(): string {
    const roles = [...this.cluster.processes].filter(([name]) => name !== 'sandbox').map(([, started]) => started);
    const all = [...roles, ...this.proxies.map(({ started }) => started)];
    return [...this.printedBefore, ...all.flatMap(({ printed }) => printed)].join('');
  }

  async close(): Promise<void> {
    for (const { started } of this.proxies) await started.stop();
    await this.database.end();
    await this.foundation.close();
    await this.cluster.stop();
    for (const wire of [...this.wires.gateways, this.wires.enclaves]) await wire.close();
  }
}

function gatewayName(i: number): string {
  return `gateway ${i + 1}`;
}

function apiPortOf({ line }: Started): number {
  return portOf((JSON.parse(line) as { api: string }).api);
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
