import { Agent, createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startEmbeddedPostgres } from '#foundation';
import { connectClient } from '#postgres';
import { ProofCluster } from '../../cluster.ts';
import type { Attack, Finding } from './attack.ts';

/** How often the balancer polls the readiness of each gateway. */
const POLL_INTERVAL_MS = 1_000;
/** Interval between the starts of requests, however long they take. */
const REQUEST_INTERVAL_MS = 50;
const BEFORE_AND_AFTER_MS = 2_000;
/** The gateways must serve all requests even if the read models lag by this much. */
const PROJECTOR_STALL_MS = 12_000;
/** Every tenth prompt. Its response takes longer than the balancer needs to notice that a gateway stops. */
const LONG_PROMPT = '[[sandbox tokens=20 chunks=20 chunk_delay=400]]';
const FUNDS_USD = 5;
/** Maximum length of the end of a failed response in a report, in characters. */
const MAX_FAILURE_LENGTH = 200;

/** Both gateways are replaced under load. Then the projector is paused, with a long transaction in another database. */
export const rollingRestart: Attack = {
  name: 'rolling-restart',
  description:
    'a load balancer has two gateways, which are replaced under load; then the projector is paused, with an open transaction in another database',
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 2, { DRAIN_DELAY_MS: '5000' });
    const postgres = await startEmbeddedPostgres(directory);
    const balancer = await Balancer.open(cluster);
    try {
      const { apiKey } = await cluster.createCustomer(FUNDS_USD);
      const load = new Load(balancer.url, apiKey);
      await pause(BEFORE_AND_AFTER_MS);
      for (const old of ['gateway 1', 'gateway 2']) {
        await cluster.startRole('gateway', old.replace(' ', ' new '));
        await pause(2 * POLL_INTERVAL_MS);
        await cluster.stopRole(old);
      }
      const restarted = await load.waitForSentRequests();
      await stallProjector(cluster, new URL('/postgres', postgres.url).href);
      await pause(BEFORE_AND_AFTER_MS);
      const all = await load.stop();
      const { output } = await cluster.runLedger('verify');
      const drift = output.trim().split('\n').at(-1);
      return {
        hasPassed: all.failed === 0 && drift === 'drift 0',
        measurements: `${restarted.failed} of ${restarted.requestCount} requests failed during the restarts, ${all.failed - restarted.failed} of ${all.requestCount - restarted.requestCount} with a paused projector${load.failures.length > 0 ? ` (${load.failures[0]})` : ''}; ${drift}`,
      };
    } finally {
      balancer.close();
      await cluster.stop();
      await postgres.close();
    }
  },
};

async function stallProjector(cluster: ProofCluster, otherDatabaseUrl: string): Promise<void> {
  const { pid } = cluster.processes.get('projector') as { pid: number };
  const options = { connectionString: otherDatabaseUrl, name: 'other', idleTransactionTimeoutMs: null };
  const other = await connectClient(options);
  await other.query('begin; select pg_current_xact_id()');
  process.kill(pid, 'SIGSTOP');
  await pause(PROJECTOR_STALL_MS);
  process.kill(pid, 'SIGCONT');
  await other.end();
}

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Sends a request at every interval until it is stopped, without waiting for earlier ones. */
class Load {
  private requestCount = 0;
  readonly failures: string[] = [];
  private readonly running = new Set<Promise<void>>();
  private readonly timer: NodeJS.Timeout;
  private readonly since = performance.now();

  constructor(
    private readonly api: string,
    private readonly apiKey: string,
  ) {
    this.timer = setInterval(() => this.sendRequest(), REQUEST_INTERVAL_MS).unref();
  }

  /**
   * Waits until all requests that were sent so far have finished.
   * @returns their number, and the number of all failures until then, also of requests that were sent in the meantime
   */
  async waitForSentRequests(): Promise<{ readonly requestCount: number; readonly failed: number }> {
    const { requestCount } = this;
    await Promise.all(this.running);
    return { requestCount, failed: this.failures.length };
  }

  stop(): ReturnType<Load['waitForSentRequests']> {
    clearInterval(this.timer);
    return this.waitForSentRequests();
  }

  private sendRequest(): void {
    const sentAt = performance.now();
    const isLong = this.requestCount++ % 10 === 0;
    const content = isLong ? LONG_PROMPT : 'hello';
    const body = { model: 'openai/gpt-5-mini', stream: true, messages: [{ role: 'user', content }], max_tokens: 32 };
    const headers = { authorization: `Bearer ${this.apiKey}`, 'content-type': 'application/json' };
    const pendingRequest = fetch(`${this.api}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
      .then(async (response) => {
        const text = await response.text();
        return response.ok && text.endsWith('data: [DONE]\n\n')
          ? undefined
          : `${response.status} ${text.slice(-MAX_FAILURE_LENGTH)}`;
      })
      .catch((error) => String(error.cause ?? error))
      .then((failure) => {
        const at = ((sentAt - this.since) / 1_000).toFixed(1);
        if (failure !== undefined) this.failures.push(`sent after ${at} s: ${failure}`);
        this.running.delete(pendingRequest);
      });
    this.running.add(pendingRequest);
  }
}

/**
 * A minimal load balancer. Sends each request once, to the next gateway that was ready at the last poll, over
 * keep-alive connections.
 */
class Balancer {
  private readonly ready = new Set<string>();
  private nextIndex = 0;
  private readonly agent = new Agent({ keepAlive: true });
  private readonly server = createServer((incoming, outgoing) => {
    const api = [...this.ready][this.nextIndex++ % Math.max(1, this.ready.size)];
    if (api === undefined) return void outgoing.writeHead(502).end('no gateway is ready');
    const { method, url, headers } = incoming;
    const onward = httpRequest(`${api}${url}`, { method, headers, agent: this.agent } as object, (response) => {
      const { connection: _, ...responseHeaders } = response.headers;
      outgoing.writeHead(response.statusCode ?? 502, responseHeaders);
      response.pipe(outgoing).on('error', () => {});
      response.on('error', () => outgoing.destroy());
    });
    onward.on('error', ({ message }) =>
      outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end(message),
    );
    incoming.pipe(onward);
  });
  private pollTimer: NodeJS.Timeout | undefined;

  private constructor(private readonly cluster: ProofCluster) {}

  static async open(cluster: ProofCluster): Promise<Balancer> {
    const balancer = new Balancer(cluster);
    await balancer.pollReadiness();
    balancer.pollTimer = setInterval(() => void balancer.pollReadiness(), POLL_INTERVAL_MS);
    await new Promise<void>((resolve) => balancer.server.listen(0, '127.0.0.1', resolve));
    return balancer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    clearInterval(this.pollTimer);
    this.server.close();
    this.server.closeAllConnections();
    this.agent.destroy();
  }

  /** Polls all gateways at once, so that a gateway that does not respond does not delay the poll of another one. */
  private async pollReadiness(): Promise<void> {
    const { gateways } = this.cluster;
    for (const staleApi of [...this.ready].filter((api) => !gateways.includes(api))) this.ready.delete(staleApi);
    await Promise.all(
      gateways.map(async (api) => {
        const signal = AbortSignal.timeout(POLL_INTERVAL_MS);
        const { ok } = await fetch(`${api}/health/ready`, { signal }).catch(() => ({ ok: false })); // not ready
        if (ok) this.ready.add(api);
        else this.ready.delete(api);
      }),
    );
  }
}
