import { createHash, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import {
  Clock,
  ExchangeRates,
  type LightningInvoice,
  LightningNode,
  openStreams,
  RequestInvoice,
  RequestInvoiceHandler,
} from '#application';
import { MemoryEventStore } from '#eventstore';
import { START } from '#kernel';
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
  async usdPerBitcoin() {
    return { rate: '100000.00', source: 'kraken' };
  }
}

/** A node whose invoices differ from what was asked for. */
class LyingNode extends LightningNode {
  lies: Partial<InvoiceTerms> = {};
  answer: Partial<LightningInvoice> = {};

  async createInvoice(msat: bigint, description: string, expirySeconds: number): Promise<LightningInvoice> {
    const timestamp = Date.parse(NOW) / 1000;
    const asked = {
      msat,
      timestamp,
      paymentHash: HASH,
      paymentSecret: HASH,
      description,
      expirySeconds,
      minFinalCltv: 80,
    };
    const invoice = encodeInvoice({ ...asked, ...this.lies }, secretKey);
    return { invoice, paymentHash: HASH.toString('hex'), ...this.answer };
  }

  lookUp(): never {
    throw new Error('nothing is looked up here');
  }

  payments(): never {
    throw new Error('nothing is reported here');
  }
}

let store: MemoryEventStore;
let node: LyingNode;

beforeEach(() => {
  store = new MemoryEventStore();
  node = new LyingNode();
});

function request() {
  const runtime = { newId: randomUUID, sleep: async () => {}, alarm: () => {} };
  const { topups } = openStreams(store, { load: async () => undefined, save: async () => {} }, runtime);
  const handler = new RequestInvoiceHandler(topups, node, new StandingRate(), new StandingClock());
  return handler.execute(new RequestInvoice('account', 'btc-lightning', '1', 'USD'));
}

async function facts() {
  for await (const { events } of store.history(START)) return events;
  return [];
}

describe('an invoice', () => {
  test('that is as it was asked for becomes a fact', async () => {
    const { topupId } = await request();
    expect(await facts()).toMatchObject([
      {
        stream: `topup-${topupId}`,
        type: 'InvoiceIssued',
        data: { msat: '1000000', paymentHash: HASH.toString('hex'), expiresAt: '2026-11-20T12:15:00.000Z' },
      },
    ]);
  });

  test('in capitals is the same', async () => {
    const { invoice } = await node.createInvoice(1_000_000n, 'Tea', 900);
    node.answer = { invoice: invoice.toUpperCase() };
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
    const { invoice } = await node.createInvoice(1_000_000n, 'Tea', 900);
    node.answer = { invoice: damage(invoice) };
    await expect(request()).rejects.toMatchObject({ name: 'UpstreamFailure', code: 'upstream_error' });
    expect(await facts()).toEqual([]);
  });
});
