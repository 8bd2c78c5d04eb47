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

/** Facts between the first customers and the last: 100,000 unless the environment says otherwise. */
const EVENT_COUNT = Number(process.env.CATCH_UP_FACTS ?? 100_000);
const ACCOUNTS = 500;
const CUSTOMERS = 10;
const FUNDS_USD = 1;
/** The projector comes so long after the gateways: longer than one that is gone was once waited for. */
const PROJECTOR_START_DELAY_MS = 35_000;
const POLL_INTERVAL_MS = 100;
const NEW_ACCOUNT_EVERY_MS = 500;
const CAUGHT_UP_WITHIN_MS = 300_000;
const CREDITED_WITHIN_MS = 60_000;
const INVALID_KEY_COUNT = 200;
/** A wrong key is told so in less, and to come again where the projector is gone. */
const MAX_LOOKUP_MS = 100;
const MAX_LOOKUP_WITHOUT_PROJECTOR_MS = 400;
const GATEWAYS = ['gateway 1', 'gateway 2'];
/** All that is wrong comes from one address here. */
const UNLIMITED = { WRONG_CREDENTIALS_PER_MINUTE: '1000000' };

/** Statuses by who asked, with how many answers had each. */
class StatusCounts {
  private readonly counts = new Map<string, Map<number, number>>();

  record(who: string, status: number): number {
    const countsByStatus = this.counts.get(who) ?? new Map<number, number>();
    this.counts.set(who, countsByStatus.set(status, (countsByStatus.get(status) ?? 0) + 1));
    return status;
  }

  /** Whether somebody had an answer, and nobody another than these. */
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
 * Gateways, sagas and much later a projector start with an empty PostgreSQL beside a long history in EventStoreDB: its
 * double, or the server that EVENTSTORE_URL names.
 */
export const catchingUp: Attack = {
  name: 'catching-up',
  description: `PostgreSQL is lost beside a history of ${EVENT_COUNT} facts; the projector starts ${PROJECTOR_START_DELAY_MS / 1_000} s after the gateways`,
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

/** @returns customers, of whom one half opened their accounts before all others, and one half after them */
async function createLongHistory(cluster: ProofCluster, eventStoreUrl: string): Promise<readonly Customer[]> {
  const some = async () => {
    const customers: Customer[] = [];
    for (let n = 0; n < CUSTOMERS / 2; n++) customers.push(await cluster.createCustomer(FUNDS_USD));
    return customers;
  };
  const first = await some();
  const store = openEventStore({
    ...{ eventStoreUrl, databaseUrl: '', categories: CATEGORIES, eventSchema: EVENT_SCHEMA },
    onProblem: () => {},
  });
  await cluster.stopRole('projector'); // which would only take time
  await useManyAccounts(store, ACCOUNTS, EVENT_COUNT);
  await store.close();
  return [...first, ...(await some())];
}

class CatchUpRun {
  private readonly statusCounts = new StatusCounts();
  private readonly started = performance.now();
  private readonly violations: string[] = [];
  /** Customers who paid while the read models were late, and after how many milliseconds that was credited. */
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
    all.catch(() => {}); // it is waited for below
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
    await this.useKeyOnOtherGateway(); // whoever comes first finds out that it stands still
    const stalledMs = await this.measureInvalidKeys(503);
    if (rejectionMs > MAX_LOOKUP_MS || stalledMs > MAX_LOOKUP_WITHOUT_PROJECTOR_MS)
      this.violations.push('a wrong key was told so late');
    this.checkStatuses();
    const seconds = (milliseconds: number) => (milliseconds / 1_000).toFixed(1);
    const measured = [
      `ready ${seconds(Math.max(...this.readyAt.values()) - projectorAt)} s after the projector began, not in the ${seconds(projectorAt)} s before`,
      `${this.maxLagBytes} bytes of log behind at most`,
      `${this.statusCounts}`,
      `${this.paid.size} top-ups paid meanwhile, credited within ${seconds(Math.max(...this.paid.values()))} s`,
      `a wrong key is told so within ${Math.round(rejectionMs)} ms (p50); where the projector is dead, to come again within ${Math.round(stalledMs)} ms`,
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
        this.violations.push(`${who} had none or another answer than ${statuses}`);
    };
    expectStatuses('old keys', 200, 503);
    expectStatuses('old keys of a gateway that is ready', 200);
    expectStatuses('new keys', 402, 503);
    expectStatuses('new keys where they were made', 402);
    expectStatuses('accounts', 201);
    expectStatuses('top-ups', 201);
    expectStatuses('wrong keys', 401, 503);
    expectStatuses('statuses of top-ups', 200);
    if (this.paid.size === 0) this.violations.push('no top-up was paid meanwhile');
  }

  /** @throws when that takes too long */
  private async pollHealth(api: string): Promise<void> {
    while (this.elapsed < CAUGHT_UP_WITHIN_MS) {
      const response = await fetch(`${api}/health/ready`);
      const { checks } = (await response.json()) as { checks: Record<string, { behind: object; end: number }> };
      this.statusCounts.record('health', response.status);
      const { behind = {}, end = 0 } = checks.caught_up ?? {};
      if (response.ok) {
        this.readyAt.set(api, this.elapsed);
        // Each of them now: the last of them are the last that the read models have come to.
        for (const customer of this.customers) {
          if ((await this.sendChat(api, customer, 'old keys of a gateway that is ready')) !== 200)
            this.violations.push('a key was not known to a gateway that is ready');
        }
        return;
      }
      if (!('keys' in behind) && Object.keys(behind).length === 0)
        this.violations.push('health did not say what is late');
      for (const { position } of Object.values(behind) as { position: number }[])
        this.maxLagBytes = Math.max(this.maxLagBytes, end - Math.max(0, position));
      await delay(POLL_INTERVAL_MS);
    }
    throw new Error('the gateways were not ready in time');
  }

  private async useExistingKeys(): Promise<void> {
    const one = async (customer: Customer) => {
      for (let n = 0; !this.isOver; n++) {
        await this.sendChat(this.getApi(n), customer, 'old keys');
        await delay(POLL_INTERVAL_MS);
      }
    };
    await Promise.all(this.customers.map(one));
  }

  /** Each is opened at one gateway, asks there and at the other, and pays. */
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
    await this.sendChat(here, customer, 'new keys where they were made');
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
      await this.sendChat(this.getApi(n), { creditId: '', apiKey: `sk-${randomUUID()}` }, 'wrong keys');
      await delay(POLL_INTERVAL_MS);
    }
  }

  private async fetchTopupStatus(api: string, invoiceId: string): Promise<string> {
    const response = await fetch(`${api}/topup/status/${invoiceId}`);
    this.statusCounts.record('statuses of top-ups', response.status);
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
    await this.sendChat(here, { creditId: '', apiKey: String(apiKey) }, 'new keys where they were made');
  }

  /** One after the other. @returns the median of milliseconds until each was told so */
  private async measureInvalidKeys(status: number): Promise<number> {
    const durationsMs: number[] = [];
    for (let n = 0; n < INVALID_KEY_COUNT; n++) {
      const sentAt = performance.now();
      const actualStatus = await this.sendChat(
        this.getApi(1),
        { creditId: '', apiKey: `sk-${randomUUID()}` },
        'wrong keys',
      );
      durationsMs.push(performance.now() - sentAt);
      if (actualStatus !== status) this.violations.push(`a wrong key was told ${actualStatus} instead of ${status}`);
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
      this.violations.push('a 503 did not say when to come again');
    return this.statusCounts.record(who, response.status);
  }
}
