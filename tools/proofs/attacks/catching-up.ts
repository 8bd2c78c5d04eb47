import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CATEGORIES, EVENT_SCHEMA } from '#domain';
import { openEventStore } from '#eventstore';
import { FakeEventStoreDb } from '../../../libs/testing/src/fake-eventstoredb/fake-eventstoredb.ts';
import { type Customer, ProofCluster, post } from '../../cluster.ts';
import { useManyAccounts } from '../../sample-events.ts';
import type { Attack, Finding } from './attack.ts';

/** Events between those of the first customers and those of the last ones. */
const EVENT_COUNT = Number(process.env.CATCH_UP_FACTS ?? 100_000);
const ACCOUNTS = 500;
const CUSTOMERS = 10;
const FUNDS_USD = 1;
/** How long the gateways run without a projector. It exceeds every timeout with which they wait for read models. */
const PROJECTOR_START_DELAY_MS = 35_000;
const POLL_INTERVAL_MS = 100;
const NEW_ACCOUNT_EVERY_MS = 500;
const CAUGHT_UP_WITHIN_MS = 300_000;
const CREDITED_WITHIN_MS = 60_000;
const INVALID_KEY_COUNT = 200;
/** Maximum median time until an invalid key gets 401. */
const MAX_LOOKUP_MS = 100;
/** Maximum median time until an invalid key gets 503 while no projector runs. */
const MAX_LOOKUP_WITHOUT_PROJECTOR_MS = 400;
const GATEWAYS = ['gateway 1', 'gateway 2'];
/** All invalid credentials of this attack come from one IP address. */
const UNLIMITED = { WRONG_CREDENTIALS_PER_MINUTE: '1000000' };

/** Counts responses by kind of request and status. */
class StatusCounts {
  private readonly counts = new Map<string, Map<number, number>>();

  record(who: string, status: number): number {
    const countsByStatus = this.counts.get(who) ?? new Map<number, number>();
    this.counts.set(who, countsByStatus.set(status, (countsByStatus.get(status) ?? 0) + 1));
    return status;
  }

  /** Whether requests of this kind got responses, all of them with one of these statuses. */
  hasOnly(who: string, ...statuses: readonly number[]): boolean {
    const its = this.counts.get(who);
    return its !== undefined && [...its.keys()].every((status) => statuses.includes(status));
  }

  toString(): string {
    const formatCount = ([status, count]: readonly [number, number]) => `${count} × ${status}`;
    return [...this.counts].map(([who, its]) => `${who} ${[...its].toSorted().map(formatCount).join(', ')}`).join('; ');
  }
}

/**
 * Gateways, sagas and much later a projector start with an empty PostgreSQL and a long history in EventStoreDB: the
 * fake one, or the server in EVENTSTORE_URL.
 */
export const catchingUp: Attack = {
  name: 'catching-up',
  description: `PostgreSQL is lost, but not the ${EVENT_COUNT} events in EventStoreDB; the projector starts ${PROJECTOR_START_DELAY_MS / 1_000} s after the gateways`,
  async run(directory): Promise<Finding> {
    const double = process.env.EVENTSTORE_URL === undefined ? await FakeEventStoreDb.start() : undefined;
    const url = double?.connectionString ?? (process.env.EVENTSTORE_URL as string);
    const cluster = await ProofCluster.start(directory, 1, { EVENTSTORE_URL: url, ...UNLIMITED });
    try {
      const customers = await createLongHistory(cluster, url);
      for (const role of ['gateway 1', 'sagas']) await cluster.stopRole(role);
      await rm(path.join(directory, 'postgres'), { recursive: true });
      for (const name of GATEWAYS) await cluster.startRole('gateway', name);
      return await new CatchUpRun(cluster, customers).run();
    } finally {
      await cluster.stop();
      double?.stop();
    }
  },
};

/** Appends a long history. @returns customers, half of them with accounts at its start, half of them at its end */
async function createLongHistory(cluster: ProofCluster, eventStoreUrl: string): Promise<readonly Customer[]> {
  const some = async () => {
    const customers: Customer[] = [];
    for (let n = 0; n < CUSTOMERS / 2; n++) customers.push(await cluster.createCustomer(FUNDS_USD));
    return customers;
  };
  const first = await some();
  const store = openEventStore({
    eventStoreUrl,
    databaseUrl: '',
    categories: CATEGORIES,
    eventSchema: EVENT_SCHEMA,
    onProblem: () => {},
  });
  await cluster.stopRole('projector'); // its read models will be deleted; projecting the events would only take time
  await useManyAccounts(store, ACCOUNTS, EVENT_COUNT);
  await store.close();
  return [...first, ...(await some())];
}

class CatchUpRun {
  private readonly statusCounts = new StatusCounts();
  private readonly started = performance.now();
  private readonly violations: string[] = [];
  /** Customers who paid while the read models lagged, and the milliseconds until their payments were credited. */
  private readonly paid = new Map<Customer, number>();
  /** When each gateway was ready, in milliseconds since the start. */
  private readonly readyAt = new Map<string, number>();
  private maxLagBytes = 0;

  constructor(
    private readonly cluster: ProofCluster,
    private readonly customers: readonly Customer[],
  ) {}

  async run(): Promise<Finding> {
    const { cluster } = this;
    const probes = [
      this.useExistingKeys(),
      this.createAccounts(),
      this.useUnknownKeys(),
      ...cluster.gateways.map((api) => this.pollHealth(api)),
    ];
    const all = Promise.all(probes);
    all.catch(() => {}); // awaited below
    await cluster.startRole('sagas');
    await delay(PROJECTOR_START_DELAY_MS);
    if (this.readyAt.size > 0) this.violations.push('a gateway was ready before there was a projector');
    await cluster.startRole('projector');
    const projectorAt = this.elapsed;
    await all;
    await this.checkBalances();
    const rejectionMs = await this.measureInvalidKeys(401);
    const { output } = await cluster.runLedger('verify');
    if (!output.includes('drift 0')) this.violations.push('there is drift');
    await cluster.processes.get('projector')?.kill();
    await this.useKeyOnOtherGateway(); // this lookup detects that the projector has stopped; later ones do not wait
    const stalledMs = await this.measureInvalidKeys(503);
    if (rejectionMs > MAX_LOOKUP_MS || stalledMs > MAX_LOOKUP_WITHOUT_PROJECTOR_MS)
      this.violations.push('invalid keys were rejected too slowly');
    this.checkStatuses();
    const seconds = (milliseconds: number) => (milliseconds / 1_000).toFixed(1);
    const measured = [
      `ready ${seconds(Math.max(...this.readyAt.values()) - projectorAt)} s after the projector started, not ready in the ${seconds(projectorAt)} s before`,
      `maximum lag ${this.maxLagBytes} bytes of the log`,
      `${this.statusCounts}`,
      `${this.paid.size} top-ups paid during that time, credited within ${seconds(Math.max(...this.paid.values()))} s`,
      `an invalid key gets 401 within ${Math.round(rejectionMs)} ms (p50); after the projector was killed, 503 within ${Math.round(stalledMs)} ms`,
    ].join('; ');
    return {
      hasPassed: this.violations.length === 0,
      measurements: [...new Set(this.violations), measured].join('; '),
    };
  }

  private get elapsed(): number {
    return performance.now() - this.started;
  }

  private get isOver(): boolean {
    return this.readyAt.size === GATEWAYS.length;
  }

  private checkStatuses(): void {
    const expectStatuses = (who: string, ...statuses: readonly number[]) => {
      if (!this.statusCounts.hasOnly(who, ...statuses))
        this.violations.push(`${who} got no response, or another status than ${statuses}`);
    };
    expectStatuses('existing keys', 200, 503);
    expectStatuses('existing keys at a ready gateway', 200);
    expectStatuses('new keys', 402, 503);
    expectStatuses('new keys at the gateway that created them', 402);
    expectStatuses('accounts', 201);
    expectStatuses('top-ups', 201);
    expectStatuses('invalid keys', 401, 503);
    expectStatuses('top-up statuses', 200);
    if (this.paid.size === 0) this.violations.push('no top-up was paid while the read models lagged');
  }

  /** Polls a gateway until it is ready, then uses every existing key. @throws if it does not become ready in time */
  private async pollHealth(api: string): Promise<void> {
    while (this.elapsed < CAUGHT_UP_WITHIN_MS) {
      const response = await fetch(`${api}/health/ready`);
      const { checks } = (await response.json()) as { checks: Record<string, { behind: object; end: number }> };
      this.statusCounts.record('health', response.status);
      const { behind = {}, end = 0 } = checks.caught_up ?? {};
      if (response.ok) {
        this.readyAt.set(api, this.elapsed);
        // Checks all customers, because the keys of the last ones are in the last events of the history.
        for (const customer of this.customers) {
          if ((await this.sendChat(api, customer, 'existing keys at a ready gateway')) !== 200)
            this.violations.push('a ready gateway did not know a key');
        }
        return;
      }
      if (!('keys' in behind) && Object.keys(behind).length === 0)
        this.violations.push('the health report did not list a lagging read model');
      for (const { position } of Object.values(behind) as { position: number }[])
        this.maxLagBytes = Math.max(this.maxLagBytes, end - Math.max(0, position));
      await delay(POLL_INTERVAL_MS);
    }
    throw new Error('a gateway did not become ready in time');
  }

  private async useExistingKeys(): Promise<void> {
    const one = async (customer: Customer) => {
      for (let n = 0; !this.isOver; n++) {
        await this.sendChat(this.getApi(n), customer, 'existing keys');
        await delay(POLL_INTERVAL_MS);
      }
    };
    await Promise.all(this.customers.map(one));
  }

  /** Creates accounts at the gateways in turn. Each account calls both gateways and pays a top-up. */
  private async createAccounts(): Promise<void> {
    const running: Promise<void>[] = [];
    for (let n = 0; !this.isOver; n++) {
      running.push(this.createAccount(this.getApi(n), this.getApi(n + 1)));
      await delay(NEW_ACCOUNT_EVERY_MS);
    }
    await Promise.all(running);
  }

  private async createAccount(here: string, there: string): Promise<void> {
    const accountResponse = await fetch(`${here}/accounts/create`, { method: 'POST' });
    this.statusCounts.record('accounts', accountResponse.status);
    const { credit_id: creditId, api_key: apiKey } = (await accountResponse.json()) as {
      credit_id: string;
      api_key: string;
    };
    const customer = { creditId, apiKey };
    await this.sendChat(there, customer, 'new keys');
    await this.sendChat(here, customer, 'new keys at the gateway that created them');
    const headers = { 'content-type': 'application/json', 'x-credit-id': creditId };
    const body = JSON.stringify({ amount: FUNDS_USD, currency: 'USD' });
    const topupResponse = await fetch(`${there}/topup/create/btc-lightning`, { method: 'POST', headers, body });
    this.statusCounts.record('top-ups', topupResponse.status);
    const { invoice_id, lightning_invoice } = (await topupResponse.json()) as Record<string, string>;
    const paidAt = performance.now();
    await post(`${this.cluster.sandbox}/wallet/pay`, { invoice: lightning_invoice });
    while ((await this.fetchTopupStatus(here, String(invoice_id))) !== 'Settled') {
      if (performance.now() - paidAt > CREDITED_WITHIN_MS) throw new Error('a payment was not credited in time');
      await delay(POLL_INTERVAL_MS);
    }
    this.paid.set(customer, performance.now() - paidAt);
  }

  private async useUnknownKeys(): Promise<void> {
    for (let n = 0; !this.isOver; n++) {
      await this.sendChat(this.getApi(n), { creditId: '', apiKey: `sk-${randomUUID()}` }, 'invalid keys');
      await delay(POLL_INTERVAL_MS);
    }
  }

  private async fetchTopupStatus(api: string, invoiceId: string): Promise<string> {
    const response = await fetch(`${api}/topup/status/${invoiceId}`);
    this.statusCounts.record('top-up statuses', response.status);
    return ((await response.json()) as { status: string }).status;
  }

  private async checkBalances(): Promise<void> {
    for (const { apiKey } of this.paid.keys()) {
      const { balance } = await post(`${this.getApi(0)}/credits/balance`, undefined, apiKey);
      if (balance !== FUNDS_USD * 1.05) this.violations.push(`a balance is ${balance}`);
    }
  }

  private async useKeyOnOtherGateway(): Promise<void> {
    const [here = '', there = ''] = this.cluster.gateways;
    const { api_key: apiKey } = await post(`${here}/accounts/create`);
    await this.sendChat(there, { creditId: '', apiKey: String(apiKey) }, 'new keys');
    await this.sendChat(here, { creditId: '', apiKey: String(apiKey) }, 'new keys at the gateway that created them');
  }

  /** Sends invalid keys one after the other. @returns the median time until they were rejected, in milliseconds */
  private async measureInvalidKeys(status: number): Promise<number> {
    const durationsMs: number[] = [];
    for (let n = 0; n < INVALID_KEY_COUNT; n++) {
      const sentAt = performance.now();
      const actualStatus = await this.sendChat(
        this.getApi(1),
        { creditId: '', apiKey: `sk-${randomUUID()}` },
        'invalid keys',
      );
      durationsMs.push(performance.now() - sentAt);
      if (actualStatus !== status) this.violations.push(`an invalid key got ${actualStatus} instead of ${status}`);
    }
    return durationsMs.toSorted((a, b) => a - b)[INVALID_KEY_COUNT / 2] ?? 0;
  }

  private getApi(n: number): string {
    const { gateways } = this.cluster;
    return gateways[n % gateways.length] as string;
  }

  private async sendChat(api: string, { apiKey }: Customer, who: string): Promise<number> {
    const messages = [{ role: 'user', content: '[[sandbox tokens=1]]' }];
    const response = await fetch(`${api}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model: 'openai/gpt-5-mini', messages, max_tokens: 16 }),
    });
    await response.arrayBuffer();
    if (response.status === 503 && response.headers.get('retry-after') === null)
      this.violations.push('a 503 had no retry-after');
    return this.statusCounts.record(who, response.status);
  }
}
