import { createHash, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import {
  Clock,
  CreateTopup,
  CreateTopupHandler,
  ExchangeRates,
  OfferedPayments,
  openStreams,
  type PaymentBackend,
  PaymentBackends,
  type PaymentRequest,
  type RequestedPayment,
} from '#application';
import { readPayments } from '#catalogue';
import { MemoryEventStore } from '#eventstore';
import { NO_SNAPSHOTS, START } from '#kernel';
import { BY_A_TEST } from '#testing';
import { encodeInvoice, type InvoiceTerms } from '../../../../apps/sandbox/src/lightning/bolt11.ts';

const NOW = '2026-11-20T12:00:00.000Z';
const HASH = createHash('sha256').update('preimage').digest();
const { secretKey } = secp256k1.keygen();

class StandingClock extends Clock {
  milliseconds(): number {
    return Date.parse(NOW);
  }
}

/** Bitcoin is at 100,000 USD: a dollar is a thousand satoshis. */
class StandingRate extends ExchangeRates {
  async usdPer() {
    return { value: '100000.00', source: 'kraken', at: NOW };
  }
}

/** A node whose invoices differ from what was asked for. */
class LyingNode implements PaymentBackend {
  readonly name = 'lnd';
  readonly batch = 1;
  lies: Partial<InvoiceTerms> = {};
  damage = (invoice: string) => invoice;

  requests = 0;

  async request({ units, memo, expirySeconds }: PaymentRequest): Promise<RequestedPayment> {
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

  look(): never {
    throw new Error('nothing is looked up here');
  }

  hints(): never {
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

function request(backends: readonly PaymentBackend[] = [node]) {
  const runtime = { newId: randomUUID, sleep: async () => {}, alarm: () => {} };
  const streams = openStreams(store, NO_SNAPSHOTS, runtime);
  const handler = new CreateTopupHandler(
    streams,
    new OfferedPayments(readPayments(), new PaymentBackends(backends), 2),
    new StandingRate(),
    new StandingClock(),
  );
  return handler.execute(
    new CreateTopup('account', { method: 'btc-lightning', requested: { amount: '1', currency: 'USD' } }, BY_A_TEST),
  );
}

/** Of top-ups. */
async function facts() {
  for await (const { events } of store.history(START))
    return events.filter(({ stream }) => stream.startsWith('topup-'));
  return [];
}

describe('a method', () => {
  test('is not to be had where none of its back ends is configured', async () => {
    await expect(request([])).rejects.toMatchObject({ name: 'UnservableRequest', status: 404, param: 'method' });
    expect(await facts()).toEqual([]);
  });
});

test('an account has no more invoices at once than it may, however fast it asks for them, and the node is asked for no more', async () => {
  const asked = await Promise.allSettled([request(), request(), request(), request()]);
  const refused = asked.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  expect(refused).toHaveLength(2);
  for (const each of refused)
    expect(each).toMatchObject({ code: 'too_many_invoices', details: { until: '2026-11-20T12:15:00.000Z' } });
  expect(node.requests).toBe(2);
});

test('an address where an invoice was asked for is not handed out', async () => {
  const wallet: PaymentBackend = Object.assign(new LyingNode(), {
    request: async () => ({ reference: 'r', destination: { kind: 'address', value: 'bcrt1q' } }),
  });
  await expect(request([wallet])).rejects.toMatchObject({ name: 'UpstreamFailure', code: 'upstream_error' });
  expect(await facts()).toEqual([]);
});

describe('an invoice', () => {
  test('that is as it was asked for becomes a fact', async () => {
    const { topupId, invoice } = await request();
    expect(await facts()).toMatchObject([
      {
        stream: `topup-${topupId}`,
        type: 'InvoiceIssued',
        data: {
          ...{ coin: 'BTC', units: '1000000', backend: 'lnd', reference: HASH.toString('hex') },
          ...{ bonusPercent: 5, confirmations: 0, expiresAt: '2026-11-20T12:15:00.000Z' },
        },
      },
    ]);
    expect((await facts())[0]?.data).toEqual(invoice);
  });

  test('in capitals is the same', async () => {
    node.damage = (invoice) => invoice.toUpperCase();
    await request();
    expect(await facts()).toHaveLength(1);
  });

  test.each<[string, Partial<InvoiceTerms>]>([
    ['for less than was asked', { msat: 999_000n }],
    ['for more than was asked', { msat: 1_000_001n }],
    ['for any amount', { msat: 0n }],
    ['for another payment hash', { paymentHash: createHash('sha256').update('other').digest() }],
    ['that has expired', { timestamp: Date.parse(NOW) / 1000 - 900 }],
    ['that expires at once', { expirySeconds: 0 }],
  ])('%s is not handed out, and leaves nothing in the books', async (_, lies) => {
    node.lies = lies;
    await expect(request()).rejects.toMatchObject({ name: 'UpstreamFailure', code: 'upstream_error' });
    expect(await facts()).toEqual([]);
  });

  test.each<[string, (invoice: string) => string]>([
    ['nothing', () => ''],
    ['a text', () => 'please pay'],
    ['an address', () => 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'],
    ['cut off', (invoice) => invoice.slice(0, -8)],
    ['damaged', (invoice) => `${invoice.slice(0, 40)}qqqq${invoice.slice(44)}`],
  ])('that is %s is not handed out, and leaves nothing in the books', async (_, damage) => {
    node.damage = damage;
    await expect(request()).rejects.toMatchObject({ name: 'UpstreamFailure', code: 'upstream_error' });
    expect(await facts()).toEqual([]);
  });
});
