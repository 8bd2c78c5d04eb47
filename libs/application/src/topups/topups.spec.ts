import { createHash } from 'node:crypto';
import { mock } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import fc from 'fast-check';
import {
  type BackendPayment,
  Clock,
  type CreatedPayment,
  CreateTopup,
  CreateTopupHandler,
  createCredentialError,
  createStreams,
  ExchangeRates,
  type PaymentBackend,
  PaymentBackendRegistry,
  PaymentMethods,
  type PaymentRegistry,
  type PaymentRequest,
  TopupPayments,
  UpstreamError,
} from '#application';
import { readPayments } from '#catalogue';
import { type PaymentAdjustment, type TopupEvent, topupDecider } from '#domain';
import { MemoryEventStore } from '#eventstore';
import { NO_SNAPSHOTS, parseUsd, Rejection, START_POSITION } from '#kernel';
import { createIssuedInvoice, createTestRuntime, TEST_CAUSE } from '#testing';
import { encodeInvoice, type InvoiceTerms } from '../../../../apps/sandbox/src/lightning/bolt11.ts';

const NOW = '2026-11-20T12:00:00.000Z';
const HASH = createHash('sha256').update('preimage').digest();
const { secretKey } = secp256k1.keygen();

class StandingClock extends Clock {
  nowMs(): number {
    return Date.parse(NOW);
  }
}

/** Bitcoin is at 100,000 USD: a dollar is a thousand satoshis. */
class StandingRate extends ExchangeRates {
  async fetchUsdRate() {
    return { value: '100000.00', source: 'kraken', at: NOW };
  }
}

/** A node whose invoices may differ from the request. */
class LyingNode implements PaymentBackend {
  readonly name = 'lnd';
  readonly maxBatchSize = 1;
  lies: Partial<InvoiceTerms> = {};
  damage = (invoice: string) => invoice;

  requests = 0;

  async createPayment({ units, memo, expirySeconds }: PaymentRequest): Promise<CreatedPayment> {
    this.requests++;
    const timestamp = Date.parse(NOW) / 1000;
    const asked = {
      msat: units,
      timestamp,
      paymentHash: HASH,
      paymentSecret: HASH,
      description: memo,
      expirySeconds,
      minFinalCltv: 80,
    };
    const value = this.damage(encodeInvoice({ ...asked, ...this.lies }, secretKey));
    const paymentHash = HASH.toString('hex');
    return { reference: paymentHash, destination: { kind: 'bolt11', value }, paymentHash };
  }

  fetchPayments(): never {
    throw new Error('nothing is looked up here');
  }

  subscribe(): never {
    throw new Error('nothing is reported here');
  }

  async close(): Promise<void> {}
}

let store: MemoryEventStore;
let node: LyingNode;

beforeEach(() => {
  store = new MemoryEventStore();
  node = new LyingNode();
});

function request(backends: readonly PaymentBackend[] = [node], topupId?: string) {
  const runtime = createTestRuntime({ sleep: async () => {} });
  const streams = createStreams(store, NO_SNAPSHOTS, runtime);
  const handler = new CreateTopupHandler({
    streams,
    paymentMethods: new PaymentMethods(readPayments(), new PaymentBackendRegistry(backends), 2),
    rates: new StandingRate(),
    clock: new StandingClock(),
    runtime,
  });
  return handler.execute(
    new CreateTopup(
      'account',
      { method: 'btc-lightning', requested: { amount: '1', currency: 'USD' } },
      TEST_CAUSE,
      topupId,
    ),
  );
}

/** Returns the events of top-ups. */
async function facts() {
  for await (const { events } of store.readAll(START_POSITION))
    return events.filter(({ stream }) => stream.startsWith('topup-'));
  return [];
}

describe('a payment method', () => {
  test('is not found if none of its payment backends is configured', async () => {
    await expect(request([])).rejects.toMatchObject({ name: 'InvalidRequestError', status: 404, param: 'method' });
    expect(await facts()).toEqual([]);
  });
});

describe('a payment backend that fails', () => {
  const createFailing = (failure: UpstreamError) => {
    const failing = new LyingNode();
    return Object.assign(failing, {
      name: 'cln',
      createPayment: async () => {
        failing.requests++;
        throw failure;
      },
    });
  };

  test('is replaced by the next one of the method if it rejects its credential', async () => {
    // lnd is before cln in payments.json.
    const rejecting = Object.assign(createFailing(createCredentialError('rejected', 401)), { name: 'lnd' });
    const { invoice } = await request([rejecting, Object.assign(node, { name: 'cln' })]);
    expect([rejecting.requests, node.requests, invoice.backend]).toEqual([1, 1, 'cln']);
    expect(await facts()).toMatchObject([{ type: 'InvoiceIssued', data: { backend: 'cln' } }]);
  });

  test.each<[string, UpstreamError]>([
    ['is unavailable', new UpstreamError('upstream_unavailable', 'no connection', { isUnsent: true })],
    ['has failed', new UpstreamError('upstream_error', 'status 500', { status: 500 })],
    [
      'has created a payment before it rejects',
      createCredentialError('rejected', 401).withDetails({ status: undefined }),
    ],
  ])('is not replaced if it %s', async (_, failure) => {
    const failing = Object.assign(createFailing(failure), { name: 'lnd' });
    await expect(request([failing, Object.assign(node, { name: 'cln' })])).rejects.toBe(failure);
    expect(node.requests).toBe(0);
  });

  test('leaves no open invoice if all of the method reject their credentials', async () => {
    const failing = ['lnd', 'cln'].map((name) =>
      Object.assign(createFailing(createCredentialError(name, 401)), { name }),
    );
    for (let i = 0; i < 3; i++) await expect(request(failing)).rejects.toMatchObject({ message: 'cln' });
    expect(failing.map(({ requests }) => requests)).toEqual([3, 3]);
  });
});

test('limits the open invoices of an account, and the calls to the node, under concurrent requests', async () => {
  const asked = await Promise.allSettled([request(), request(), request(), request()]);
  const refused = asked.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  expect(refused).toHaveLength(2);
  for (const each of refused)
    expect(each).toMatchObject({ code: 'too_many_invoices', details: { until: '2026-11-20T12:15:00.000Z' } });
  expect(node.requests).toBe(2);
});

test.each<[string, ConstructorParameters<typeof UpstreamError>, boolean]>([
  ['cannot be reached', ['upstream_unavailable', 'no connection', { isUnsent: true }], false],
  ['responds with an error', ['upstream_error', 'status 500', { status: 500 }], false],
  ['is behind a proxy that gave up', ['upstream_error', 'status 504', { status: 504 }], true],
  ['takes too long', ['timeout', 'too long'], true],
  ['interrupts its response', ['upstream_error', 'interrupted'], true],
])('if the node %s, the invoice counts as open only if it may exist', async (_, failure, isOpen) => {
  const failing: PaymentBackend = Object.assign(new LyingNode(), {
    createPayment: () => Promise.reject(new UpstreamError(...failure)),
  });
  await expect(request([failing])).rejects.toMatchObject({ code: failure[0] });
  await expect(request([failing])).rejects.toMatchObject({ code: failure[0] });
  if (isOpen) await expect(request()).rejects.toMatchObject({ code: 'too_many_invoices' });
  else await expect(request()).resolves.toMatchObject({ topupId: expect.any(String) });
});

test('a failure does not free the invoice of an earlier attempt whose outcome is unknown', async () => {
  const failures = [new UpstreamError('timeout', 'too long'), new UpstreamError('upstream_error', '', { status: 500 })];
  const failing: PaymentBackend = Object.assign(new LyingNode(), {
    createPayment: () => Promise.reject(failures.shift()),
  });
  await expect(request([failing], 'same')).rejects.toMatchObject({ code: 'timeout' });
  await expect(request([failing], 'same')).rejects.toMatchObject({ status: 500 });
  await request();
  await expect(request()).rejects.toMatchObject({ code: 'too_many_invoices' });
});

test('a node that never responds holds the request for 5 s, and its invoice counts as open', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const called = Promise.withResolvers<void>();
    const silent: PaymentBackend = Object.assign(new LyingNode(), {
      createPayment: () => {
        called.resolve();
        return new Promise(() => {});
      },
    });
    let isSettled = false;
    const failure = expect(request([silent]).finally(() => (isSettled = true))).rejects.toMatchObject({
      code: 'upstream_unavailable',
    });
    await called.promise;
    mock.timers.tick(4_999);
    await nextTurn();
    expect(isSettled).toBe(false);
    mock.timers.tick(1);
    await nextTurn();
    expect(isSettled).toBe(true);
    await failure;
  } finally {
    mock.timers.reset();
  }
  await request();
  await expect(request()).rejects.toMatchObject({ code: 'too_many_invoices' });
});

test('rejects an address if an invoice was requested', async () => {
  const wallet: PaymentBackend = Object.assign(new LyingNode(), {
    createPayment: async () => ({ reference: 'r', destination: { kind: 'address', value: 'bcrt1q' } }),
  });
  await expect(request([wallet])).rejects.toMatchObject({ name: 'UpstreamError', code: 'upstream_error' });
  expect(await facts()).toEqual([]);
});

describe('an invoice', () => {
  test('is stored as an event if it matches the request', async () => {
    const { topupId, invoice } = await request();
    expect(await facts()).toMatchObject([
      {
        stream: `topup-${topupId}`,
        type: 'InvoiceIssued',
        data: {
          coin: 'BTC',
          units: '1000000',
          backend: 'lnd',
          reference: HASH.toString('hex'),
          bonusPercent: 5,
          confirmations: 0,
          expiresAt: '2026-11-20T12:15:00.000Z',
        },
      },
    ]);
    expect((await facts())[0]?.data).toEqual(invoice);
  });

  test('may be in upper case', async () => {
    node.damage = (invoice) => invoice.toUpperCase();
    await request();
    expect(await facts()).toHaveLength(1);
  });

  test.each<[string, Partial<InvoiceTerms>]>([
    ['for less than requested', { msat: 999_000n }],
    ['for more than requested', { msat: 1_000_001n }],
    ['for any amount', { msat: 0n }],
    ['for another payment hash', { paymentHash: createHash('sha256').update('other').digest() }],
    ['expired', { timestamp: Date.parse(NOW) / 1000 - 900 }],
    ['valid for zero seconds', { expirySeconds: 0 }],
    ['valid beyond the calendar', { expirySeconds: 10 ** 14 }],
  ])('is rejected without an event if it is %s', async (_, lies) => {
    node.lies = lies;
    await expect(request()).rejects.toMatchObject({ name: 'UpstreamError', code: 'upstream_error' });
    expect(await facts()).toEqual([]);
  });

  test.each<[string, (invoice: string) => string]>([
    ['an empty text', () => ''],
    ['a text', () => 'please pay'],
    ['an address', () => 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'],
    ['truncated', (invoice) => invoice.slice(0, -8)],
    ['damaged', (invoice) => `${invoice.slice(0, 40)}qqqq${invoice.slice(44)}`],
  ])('is rejected without an event if it is not readable: %s', async (_, damage) => {
    node.damage = damage;
    await expect(request()).rejects.toMatchObject({ name: 'UpstreamError', code: 'upstream_error' });
    expect(await facts()).toEqual([]);
  });
});

describe('a report of a payment backend', () => {
  const { coins } = readPayments();
  const most = 10n ** 20n - 1n;
  const amount = fc.constantFrom(0n, 1n, 100_000n, 100_000_000_000n, most, most, 10n ** 40n);
  const words = fc.constantFrom(...Array(12).fill('refunded'), 'x'.repeat(300), 'x'.repeat(9_999), '\0');
  const signed = fc.oneof(
    amount,
    amount.map((units) => -units),
  );
  const change: fc.Arbitrary<PaymentAdjustment> = fc.record({ id: words, units: signed, why: words });
  const changes = fc.oneof(fc.constant([]), fc.tuple(change), fc.tuple(change, change));
  const payments: fc.Arbitrary<BackendPayment> = fc.record({
    reference: fc.constant('r'),
    id: fc.oneof(fc.constant('p'), words),
    units: amount,
    confirmations: fc.constantFrom<BackendPayment['confirmations']>(
      'final',
      'pending',
      'lost',
      0,
      Number.MAX_SAFE_INTEGER,
    ),
    receivedAt: fc.constantFrom(NOW, '2026-11-20T23:00:00.000Z', '9999-12-31T23:59:59.999Z'),
    fees: changes,
    reversals: changes,
  });
  const rate = fc.constantFrom('0.000000000001', '1', '999999999999.999999999999');

  test.each(coins.map((coin) => [coin.code, coin] as const))(
    'is rejected, or becomes events of under 4,096 characters with amounts of at most 36 digits: %s',
    async (_, coin) => {
      const offered = { getCoin: () => coin, getMaxAmount: () => parseUsd('1000') } as unknown as PaymentMethods;
      await fc.assert(
        fc.asyncProperty(payments, rate, async (payment, value) => {
          const rates = { fetchUsdRate: async () => ({ value, source: 'two', at: NOW }) } as unknown as ExchangeRates;
          const invoice = createIssuedInvoice({ coin: coin.code, expiresAt: '2026-11-20T12:15:00.000Z' });
          const query = { ...invoice, pending: ['p'], received: [] };
          const registry = { claim: async () => true } as unknown as PaymentRegistry;
          const recorded = new TopupPayments(rates, offered, registry, new StandingClock()).createCommands('t', query, [
            payment,
          ]);
          const refused = (error: unknown) => {
            expect([UpstreamError, Rejection].some((kind) => error instanceof kind)).toBe(true);
            return [];
          };
          let topup = topupDecider.evolve(topupDecider.getInitialState(), { type: 'InvoiceIssued', data: invoice });
          for (const command of await recorded.catch(refused)) {
            const state = topup;
            const decided = await new Promise<readonly TopupEvent[]>((resolve) =>
              resolve(topupDecider.decide(command, state)),
            ).catch(refused);
            for (const fact of decided) {
              topup = topupDecider.evolve(topup, fact);
              const text = JSON.stringify(fact.data);
              expect([text.length < 4_096, text.match(/"-?\d{37,}"/)]).toEqual([true, null]);
            }
          }
        }),
        { numRuns: 400, seed: 20_261_123 },
      );
    },
  );
});
