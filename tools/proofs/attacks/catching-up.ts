import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CATEGORIES, EVENT_SCHEMA } from '#domain';
import { openEventStore } from '#eventstore';
import { EventStoreDbDouble } from '../../../libs/testing/src/fake-eventstoredb/fake-eventstoredb.ts';
import { type Customer, ProofCluster, post } from '../../cluster.ts';
import { useManyAccounts } from '../../sample-events.ts';
import type { Attack, Finding } from './attack.ts';

/** Facts between the first customers and the last: 100,000 unless the environment says otherwise. */
const FACTS = Number(process.env.CATCH_UP_FACTS ?? 100_000);
const ACCOUNTS = 500;
const CUSTOMERS = 10;
const FUNDS_USD = 1;
/** The projector comes so long after the gateways: longer than one that is gone was once waited for. */
const PROJECTOR_COMES_AFTER_MS = 35_000;
const LOOK_EVERY_MS = 100;
const NEW_ACCOUNT_EVERY_MS = 500;
const CAUGHT_UP_WITHIN_MS = 300_000;
const CREDITED_WITHIN_MS = 60_000;
const WRONG_KEYS = 200;
/** A wrong key is told so in less, and to come again where the projector is gone. */
const MOST_MS = 100;
const MOST_WITHOUT_PROJECTOR_MS = 400;
const GATEWAYS = ['gateway 1', 'gateway 2'];
/** All that is wrong comes from one address here. */
const UNLIMITED = { WRONG_CREDENTIALS_PER_MINUTE: '1000000' };

/** Statuses by who asked, with how many answers had each. */
class Answers {
  private readonly counts = new Map<string, Map<number, number>>();

  note(who: string, status: number): number {
    const its = this.counts.get(who) ?? new Map<number, number>();
    this.counts.set(who, its.set(status, (its.get(status) ?? 0) + 1));
    return status;
  }

  /** Whether somebody had an answer, and nobody another than these. */
  areOnly(who: string, ...statuses: readonly number[]): boolean {
    const its = this.counts.get(who);
    return its !== undefined && [...its.keys()].every((status) => statuses.includes(status));
  }

  toString(): string {
    const said = ([status, count]: readonly [number, number]) => `${count} × ${status}`;
    return [...this.counts].map(([who, its]) => `${who} ${[...its].toSorted().map(said).join(', ')}`).join('; ');
  }
}

/**
 * Gateways, sagas and much later a projector start with an empty PostgreSQL beside a long history in EventStoreDB: its
 * double, or the server that EVENTSTORE_URL names.
 */
export const catchingUp: Attack = {
  name: 'catching-up',
  what: `PostgreSQL is lost beside a history of ${FACTS} facts; the projector starts ${PROJECTOR_COMES_AFTER_MS / 1_000} s after the gateways`,
  async run(directory): Promise<Finding> {
    const double = process.env.EVENTSTORE_URL === undefined ? await EventStoreDbDouble.start() : undefined;
    const url = double?.connectionString ?? (process.env.EVENTSTORE_URL as string);
    const cluster = await ProofCluster.start(directory, 1, { EVENTSTORE_URL: url, ...UNLIMITED });
    try {
      const customers = await longHistory(cluster, url);
      for (const role of ['gateway 1', 'sagas']) await cluster.stopRole(role);
      await rm(path.join(directory, 'postgres'), { recursive: true });
      for (const name of GATEWAYS) await cluster.startRole('gateway', name);
      return await new Catching(cluster, customers).watched();
    } finally {
      await cluster.stop();
      double?.stop();
    }
  },
};

/** @returns customers, of whom one half opened their accounts before all others, and one half after them */
async function longHistory(cluster: ProofCluster, eventStoreUrl: string): Promise<readonly Customer[]> {
  const some = async () => {
    const opened: Customer[] = [];
    for (let n = 0; n < CUSTOMERS / 2; n++) opened.push(await cluster.customer(FUNDS_USD));
    return opened;
  };
  const first = await some();
  const store = openEventStore({
    ...{ eventStoreUrl, databaseUrl: '', categories: CATEGORIES, eventSchema: EVENT_SCHEMA },
    onProblem: () => {},
  });
  await cluster.stopRole('projector'); // which would only take time
  await useManyAccounts(store, ACCOUNTS, FACTS);
  await store.close();
  return [...first, ...(await some())];
}

class Catching {
  private readonly answers = new Answers();
  private readonly started = performance.now();
  private readonly broken: string[] = [];
  /** Customers who paid while the read models were late, and after how many milliseconds that was credited. */
  private readonly paid = new Map<Customer, number>();
  /** When each gateway was ready, in milliseconds since the start. */
  private readonly readyAt = new Map<string, number>();
  private mostBehind = 0;

  constructor(
    private readonly cluster: ProofCluster,
    private readonly customers: readonly Customer[],
  ) {}

  async watched(): Promise<Finding> {
    const { cluster } = this;
    const asking = [
      this.oldKeys(),
      this.newAccounts(),
      this.strangers(),
      ...cluster.gateways.map((api) => this.health(api)),
    ];
    const all = Promise.all(asking);
    all.catch(() => {}); // it is waited for below
    await cluster.startRole('sagas');
    await delay(PROJECTOR_COMES_AFTER_MS);
    if (this.readyAt.size > 0) this.broken.push('a gateway was ready before there was a projector');
    await cluster.startRole('projector');
    const projectorAt = this.elapsed;
    await all;
    await this.balances();
    const wrong = await this.wrongKeys(401);
    const { output } = await cluster.ledger('verify');
    if (!output.includes('drift 0')) this.broken.push('there is drift');
    await cluster.processes.get('projector')?.kill();
    await this.madeElsewhere(); // whoever comes first finds out that it stands still
    const standing = await this.wrongKeys(503);
    if (wrong > MOST_MS || standing > MOST_WITHOUT_PROJECTOR_MS) this.broken.push('a wrong key was told so late');
    this.judge();
    const seconds = (milliseconds: number) => (milliseconds / 1_000).toFixed(1);
    const measured = [
      `ready ${seconds(Math.max(...this.readyAt.values()) - projectorAt)} s after the projector began, not in the ${seconds(projectorAt)} s before`,
      `${this.mostBehind} bytes of log behind at most`,
      `${this.answers}`,
      `${this.paid.size} top-ups paid meanwhile, credited within ${seconds(Math.max(...this.paid.values()))} s`,
      `a wrong key is told so within ${Math.round(wrong)} ms (p50); where the projector is dead, to come again within ${Math.round(standing)} ms`,
    ].join('; ');
    return { held: this.broken.length === 0, measured: [...new Set(this.broken), measured].join('; ') };
  }

  private get elapsed(): number {
    return performance.now() - this.started;
  }

  private get isOver(): boolean {
    return this.readyAt.size === GATEWAYS.length;
  }

  private judge(): void {
    const may = (who: string, ...statuses: readonly number[]) => {
      if (!this.answers.areOnly(who, ...statuses))
        this.broken.push(`${who} had none or another answer than ${statuses}`);
    };
    may('old keys', 200, 503);
    may('old keys of a gateway that is ready', 200);
    may('new keys', 402, 503);
    may('new keys where they were made', 402);
    may('accounts', 201);
    may('top-ups', 201);
    may('wrong keys', 401, 503);
    may('statuses of top-ups', 200);
    if (this.paid.size === 0) this.broken.push('no top-up was paid meanwhile');
  }

  /** @throws when that takes too long */
  private async health(api: string): Promise<void> {
    while (this.elapsed < CAUGHT_UP_WITHIN_MS) {
      const response = await fetch(`${api}/health/ready`);
      const { checks } = (await response.json()) as { checks: Record<string, { behind: object; end: number }> };
      this.answers.note('health', response.status);
      const { behind = {}, end = 0 } = checks.caught_up ?? {};
      if (response.ok) {
        this.readyAt.set(api, this.elapsed);
        // Each of them now: the last of them are the last that the read models have come to.
        for (const customer of this.customers) {
          if ((await this.chat(api, customer, 'old keys of a gateway that is ready')) !== 200)
            this.broken.push('a key was not known to a gateway that is ready');
        }
        return;
      }
      if (!('keys' in behind) && Object.keys(behind).length === 0) this.broken.push('health did not say what is late');
      for (const { position } of Object.values(behind) as { position: number }[])
        this.mostBehind = Math.max(this.mostBehind, end - Math.max(0, position));
      await delay(LOOK_EVERY_MS);
    }
    throw new Error('the gateways were not ready in time');
  }

  private async oldKeys(): Promise<void> {
    const one = async (customer: Customer) => {
      for (let n = 0; !this.isOver; n++) {
        await this.chat(this.apiOf(n), customer, 'old keys');
        await delay(LOOK_EVERY_MS);
      }
    };
    await Promise.all(this.customers.map(one));
  }

  /** Each is opened at one gateway, asks there and at the other, and pays. */
  private async newAccounts(): Promise<void> {
    const running: Promise<void>[] = [];
    for (let n = 0; !this.isOver; n++) {
      running.push(this.newAccount(this.apiOf(n), this.apiOf(n + 1)));
      await delay(NEW_ACCOUNT_EVERY_MS);
    }
    await Promise.all(running);
  }

  private async newAccount(here: string, there: string): Promise<void> {
    const opened = await fetch(`${here}/accounts/create`, { method: 'POST' });
    this.answers.note('accounts', opened.status);
    const { credit_id: creditId, api_key: apiKey } = (await opened.json()) as { credit_id: string; api_key: string };
    const customer = { creditId, apiKey };
    await this.chat(there, customer, 'new keys');
    await this.chat(here, customer, 'new keys where they were made');
    const headers = { 'content-type': 'application/json', 'x-credit-id': creditId };
    const body = JSON.stringify({ amount: FUNDS_USD, currency: 'USD' });
    const made = await fetch(`${there}/topup/create/btc-lightning`, { method: 'POST', headers, body });
    this.answers.note('top-ups', made.status);
    const { invoice_id, lightning_invoice } = (await made.json()) as Record<string, string>;
    const paidAt = performance.now();
    await post(`${this.cluster.sandbox}/wallet/pay`, { invoice: lightning_invoice });
    while ((await this.statusOf(here, String(invoice_id))) !== 'Settled') {
      if (performance.now() - paidAt > CREDITED_WITHIN_MS) throw new Error('a payment was not credited in time');
      await delay(LOOK_EVERY_MS);
    }
    this.paid.set(customer, performance.now() - paidAt);
  }

  private async strangers(): Promise<void> {
    for (let n = 0; !this.isOver; n++) {
      await this.chat(this.apiOf(n), { creditId: '', apiKey: `sk-${randomUUID()}` }, 'wrong keys');
      await delay(LOOK_EVERY_MS);
    }
  }

  private async statusOf(api: string, invoiceId: string): Promise<string> {
    const response = await fetch(`${api}/topup/status/${invoiceId}`);
    this.answers.note('statuses of top-ups', response.status);
    return ((await response.json()) as { status: string }).status;
  }

  private async balances(): Promise<void> {
    for (const { apiKey } of this.paid.keys()) {
      const { balance } = await post(`${this.apiOf(0)}/credits/balance`, undefined, apiKey);
      if (balance !== FUNDS_USD * 1.05) this.broken.push(`a balance is ${balance}`);
    }
  }

  private async madeElsewhere(): Promise<void> {
    const [here = '', there = ''] = this.cluster.gateways;
    const { api_key: apiKey } = await post(`${here}/accounts/create`);
    await this.chat(there, { creditId: '', apiKey: String(apiKey) }, 'new keys');
    await this.chat(here, { creditId: '', apiKey: String(apiKey) }, 'new keys where they were made');
  }

  /** One after the other. @returns the median of milliseconds until each was told so */
  private async wrongKeys(status: number): Promise<number> {
    const took: number[] = [];
    for (let n = 0; n < WRONG_KEYS; n++) {
      const began = performance.now();
      const told = await this.chat(this.apiOf(1), { creditId: '', apiKey: `sk-${randomUUID()}` }, 'wrong keys');
      took.push(performance.now() - began);
      if (told !== status) this.broken.push(`a wrong key was told ${told} instead of ${status}`);
    }
    return took.toSorted((a, b) => a - b)[WRONG_KEYS / 2] ?? 0;
  }

  private apiOf(n: number): string {
    const { gateways } = this.cluster;
    return gateways[n % gateways.length] as string;
  }

  private async chat(api: string, { apiKey }: Customer, who: string): Promise<number> {
    const messages = [{ role: 'user', content: '[[sandbox tokens=1]]' }];
    const response = await fetch(`${api}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model: 'openai/gpt-5-mini', messages, max_tokens: 16 }),
    });
    await response.arrayBuffer();
    if (response.status === 503 && response.headers.get('retry-after') === null)
      this.broken.push('a 503 did not say when to come again');
    return this.answers.note(who, response.status);
  }
}
