import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  createStreams,
  ExchangeRates,
  type PaymentBackend,
  PaymentBackendRegistry,
  PaymentMethods,
  PaymentRegistry,
  type Rate,
  type Streams,
  TopupPayments,
} from '#application';
import { readPayments } from '#catalogue';
import { MoneroBackend, StripeBackend } from '#connectors';
import { type DomainEvent, type InvoiceIssued, topupDecider, topupWorkflow } from '#domain';
import { MemoryEventStore } from '#eventstore';
import { NO_SNAPSHOTS, START_POSITION, type StoredEvent } from '#kernel';
import { foldTopup } from '#projections';
import { createIssuedInvoice, createTestRuntime, TEST_CAUSE } from '#testing';
import { printPayments } from '../../../apps/ledger/src/payments.ts';
import { printWallets } from '../../../apps/ledger/src/wallets.ts';
import { FakeClock } from '../../testing/src/fake-clock.ts';
import { StubServer } from '../../testing/src/servers/stub-server.ts';

const NOW = '2026-11-20T12:00:00.000Z';
const SECONDS = Date.parse(NOW) / 1_000;
const NO_CONTEST = '0 payments were reported for another top-up or challenge, which got nothing';
const ONE_CONTEST = NO_CONTEST.replace('0', '1');

class Market extends ExchangeRates {
  async fetchUsdRate(): Promise<Rate> {
    return { value: '100', source: 'market', at: NOW };
  }
}

let opened: AsyncDisposableStack;
let clock: FakeClock;
let store: MemoryEventStore;
let streams: Streams;
let backend: PaymentBackend;
let server: StubServer;
beforeEach(async () => {
  opened = new AsyncDisposableStack();
  clock = new FakeClock(NOW);
  store = new MemoryEventStore();
  streams = createStreams(
    store,
    NO_SNAPSHOTS,
    createTestRuntime({
      sleep: async () => {},
      reportError: (problem: string) => expect(problem).toBe('no problem'),
    }),
  );
  server = new StubServer();
  opened.defer(() => server.close());
});
afterEach(() => opened.disposeAsync());

async function readEvents(topupId: string): Promise<readonly StoredEvent<DomainEvent>[]> {
  const all: StoredEvent<DomainEvent>[] = [];
  for await (const { events } of store.readAll(START_POSITION)) all.push(...(events as typeof all));
  return all.filter(({ stream }) => stream === `topup-${topupId}`);
}
const listTypes = async (topupId: string) => (await readEvents(topupId)).map(({ type }) => type);
const getStatus = async (topupId: string, at = NOW) => foldTopup(await readEvents(topupId), at)?.status;

/** Returns the lines about contested payments, first of `ledger -- payments`, then of `ledger -- wallets`. */
async function listContests(): Promise<readonly (readonly string[])[]> {
  const [payments, wallets]: [string[], string[]] = [[], []];
  await printPayments({ store }, (line) => payments.push(line));
  await printWallets({ store, coins: readPayments().coins }, undefined, (line) => wallets.push(line));
  return [payments, wallets].map((lines) =>
    lines.slice(lines.findIndex((line) => line.includes('for another top-up'))),
  );
}

async function issueInvoice(topupId: string, invoice: Partial<InvoiceIssued['data']>): Promise<void> {
  const data = createIssuedInvoice({ accountId: `of ${topupId}`, ...invoice });
  await streams.topups.run(topupId, { type: 'IssueInvoice', data }, TEST_CAUSE);
}

/** Polls a top-up once and records the result, as its workflow does. */
async function poll(topupId: string): Promise<void> {
  const topup = (await readEvents(topupId)).reduce(topupDecider.evolve as never, topupDecider.getInitialState());
  const step = topupWorkflow.plan(topup, clock.now()).steps.find((planned) => planned.step === 'query');
  if (step?.step !== 'query') throw new Error(`${topupId} is not polled`);
  const methods = new PaymentMethods(readPayments(), new PaymentBackendRegistry([backend]), 1);
  const registry = new PaymentRegistry(streams.paymentClaims, clock);
  const payments = new TopupPayments(new Market(), methods, registry, clock);
  const { query } = step;
  const reported = await backend.fetchPayments([query.reference], query.received);
  for (const command of await payments.createCommands(topupId, query, reported))
    await streams.topups.run(topupId, command, TEST_CAUSE);
}

describe('a card payment', () => {
  /** Each session is paid, with the payment intent that is given for it. */
  async function startStripe(intents: Readonly<Record<string, string>>): Promise<void> {
    const toCharge = (intent: string) => ({
      id: `ch_${intent}`,
      amount_captured: 100,
      currency: 'usd',
      paid: true,
      created: SECONDS,
      disputed: false,
    });
    server.handler = (response, { url = '' }) => {
      const id = /sessions\/(\w+)/.exec(url)?.[1] ?? '';
      const intent = intents[id] ?? '';
      const session = {
        id,
        object: 'checkout.session',
        mode: 'payment',
        status: 'complete',
        payment_status: 'paid',
        currency: 'usd',
        amount_total: 100,
        amount_subtotal: 100,
        metadata: { topup: id, cents: '100' },
        payment_intent: { id: intent, amount_received: 100, latest_charge: toCharge(intent) },
      };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(session));
    };
    backend = new StripeBackend({
      stripeKey: 'sk_test_planted',
      stripeUrl: await server.listen(),
      stripeWebhookSecret: undefined,
    });
    opened.defer(() => backend.close());
    for (const id of Object.keys(intents))
      await issueInvoice(id, {
        method: 'card',
        coin: 'USD',
        units: '100',
        backend: 'stripe',
        reference: id,
        rate: { value: '1', source: 'fixed', at: NOW },
        destination: { kind: 'page', value: 'https://x' },
      });
  }

  test('whose payment intent Stripe reports for two top-ups is received once and listed', async () => {
    await startStripe({ cs_1: 'pi_1', cs_2: 'pi_1' });
    for (const session of ['cs_1', 'cs_2', 'cs_1', 'cs_2']) await poll(session);

    expect(await listTypes('cs_1')).toEqual(['InvoiceIssued', 'PaymentReceived']);
    expect([await listTypes('cs_2'), await getStatus('cs_2')]).toEqual([['InvoiceIssued'], 'New']);
    const line = `${NOW}  stripe/pi_1  of topup-cs_1, also for topup-cs_2`;
    expect(await listContests()).toEqual([
      [ONE_CONTEST, line],
      [ONE_CONTEST, line],
    ]);
  });

  test('with a payment intent of its own is received', async () => {
    await startStripe({ cs_1: 'pi_1', cs_2: 'pi_2' });
    for (const session of ['cs_1', 'cs_2']) await poll(session);

    for (const session of ['cs_1', 'cs_2'])
      expect(await listTypes(session)).toEqual(['InvoiceIssued', 'PaymentReceived']);
    expect(await listContests()).toEqual([[NO_CONTEST], [NO_CONTEST]]);
  });
});

describe('a Monero payment', () => {
  const TXID = 'ab'.repeat(32);
  const ADDRESS = `8${'7'.repeat(94)}`;
  const HOUR = 3_600;
  let wallet: {
    /** The label of each address by its number: the top-up to which the wallet has given it last. */
    readonly labels: Map<number, string>;
    transfers: readonly { readonly minor: number; readonly timestamp: number; readonly confirmations: number }[];
  };

  beforeEach(async () => {
    wallet = { labels: new Map(), transfers: [] };
    server.handler = (response, _, body) => {
      const addresses = [...wallet.labels].map(([address_index, label]) => ({
        address: ADDRESS,
        address_index,
        label,
      }));
      const transfers = wallet.transfers.map(({ minor, ...transfer }) => ({
        ...transfer,
        txid: TXID,
        amount: 1_000_000,
        type: 'in',
        double_spend_seen: false,
        locked: false,
        unlock_time: 0,
        subaddr_index: { major: 0, minor },
      }));
      const results = { get_height: { height: 200 }, get_address: { addresses }, get_transfers: { in: transfers } };
      const result = results[JSON.parse(body).method as keyof typeof results];
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ id: '0', result }));
    };
    backend = new MoneroBackend({ moneroUrl: await server.listen(), moneroLogin: undefined }, () => Date.parse(NOW));
    opened.defer(() => backend.close());
  });

  /** Gives the address with this number to a top-up. */
  async function issueAddress(topupId: string, minor: number, atSeconds: number): Promise<void> {
    wallet.labels.set(minor, topupId);
    await issueInvoice(topupId, {
      method: 'xmr',
      coin: 'XMR',
      backend: 'monero',
      confirmations: 10,
      units: '1000000',
      reference: `${minor}:${atSeconds}:200:${topupId}:${ADDRESS.slice(-12)}`,
      destination: { kind: 'address', value: ADDRESS },
    });
  }

  test('is received once if a restored wallet gives its address to another top-up within the clock tolerance', async () => {
    await issueAddress('first', 7, SECONDS - HOUR);
    wallet.transfers = [{ minor: 7, timestamp: SECONDS - HOUR / 2, confirmations: 12 }];
    await poll('first');
    await issueAddress('second', 7, SECONDS);
    await poll('second');

    expect([await listTypes('first'), await listTypes('second')]).toEqual([
      ['InvoiceIssued', 'PaymentReceived'],
      ['InvoiceIssued'],
    ]);
    const line = `${NOW}  monero/${TXID}/0/7  of topup-first, also for topup-second`;
    expect(await listContests()).toEqual([
      [ONE_CONTEST, line],
      [ONE_CONTEST, line],
    ]);
  });

  test('leaves a second top-up that has shown it as pending with the status it has without the payment', async () => {
    await issueAddress('first', 7, SECONDS - HOUR);
    await issueAddress('second', 7, SECONDS);
    wallet.transfers = [{ minor: 7, timestamp: SECONDS - HOUR / 2, confirmations: 9 }];
    await poll('second');
    expect(await getStatus('second')).toBe('Processing');
    wallet.transfers = [{ minor: 7, timestamp: SECONDS - HOUR / 2, confirmations: 10 }];
    wallet.labels.set(7, 'first');
    await poll('first');
    wallet.labels.set(7, 'second');
    for (const _ of [1, 2]) await poll('second');

    expect(await listTypes('second')).toEqual(['InvoiceIssued', 'PaymentSeen', 'PaymentLost']);
    expect([await getStatus('second'), await getStatus('second', '2026-11-21T12:00:00.000Z')]).toEqual([
      'New',
      'Expired',
    ]);
    expect((await listContests())[0]?.[1]).toContain('of topup-first, also for topup-second');
  });

  test('belongs to no second top-up whose address was given out more than two hours after it', async () => {
    await issueAddress('first', 7, SECONDS - 3 * HOUR);
    wallet.transfers = [{ minor: 7, timestamp: SECONDS - 2 * HOUR - 1, confirmations: 12 }];
    await poll('first');
    await issueAddress('second', 7, SECONDS);
    await poll('second');

    expect(await listTypes('second')).toEqual(['InvoiceIssued']);
    expect(await listContests()).toEqual([[NO_CONTEST], [NO_CONTEST]]);
  });

  test('is one for each address that its transaction pays, each claimed by its own top-up', async () => {
    for (const [i, topupId] of ['first', 'second'].entries()) await issueAddress(topupId, 7 + i, SECONDS);
    wallet.transfers = [7, 8].map((minor) => ({ minor, timestamp: SECONDS, confirmations: 12 }));
    for (const topupId of ['first', 'second', 'first', 'second']) await poll(topupId);

    for (const [i, topupId] of ['first', 'second'].entries())
      expect(await readEvents(topupId)).toMatchObject([
        { type: 'InvoiceIssued' },
        { type: 'PaymentReceived', data: { payment: { backend: 'monero', id: `${TXID}/0/${7 + i}` } } },
      ]);
    expect(await listContests()).toEqual([[NO_CONTEST], [NO_CONTEST]]);
  });
});
