import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { decode } from 'light-bolt11-decoder';
import { startSandbox } from '../sandbox.ts';
import { LightningNode } from './node.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeEach(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterEach(() => sandbox.close());

type Json = Record<string, unknown>;

const MACAROON = { 'Grpc-Metadata-macaroon': '0201' };

async function lnd(path: string, body?: Json, headers: Record<string, string> = MACAROON) {
  const request = body ? { method: 'POST', body: JSON.stringify(body), headers } : { headers };
  const response = await fetch(`${sandbox.url}/lnd/v1${path}`, request);
  return { status: response.status, body: (await response.json()) as Json };
}

async function issue(terms: Json = { value: 1_000, memo: 'A top-up', expiry: 900 }) {
  const { body } = await lnd('/invoices', terms);
  const hash = Buffer.from(String(body.r_hash), 'base64').toString('hex');
  return { hash, invoice: String(body.payment_request), body };
}

async function pay(invoice: string, options: Json = {}) {
  const body = JSON.stringify({ invoice, ...options });
  const response = await fetch(`${sandbox.url}/wallet/pay`, { method: 'POST', body });
  return { status: response.status, body: (await response.json()) as Json };
}

const stateOf = async (hash: string) => (await lnd(`/invoice/${hash}`)).body;

/** Reads this many events of a subscription. `meanwhile` runs after its response has started. */
async function events(count: number, query: string, meanwhile: () => Promise<unknown> = async () => {}) {
  const leaving = new AbortController();
  const options = { headers: MACAROON, signal: leaving.signal };
  const response = await fetch(`${sandbox.url}/lnd/v1/invoices/subscribe?${query}`, options);
  await meanwhile();
  let text = '';
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    if (text.split('\n').length > count) break;
  }
  leaving.abort();
  const lines = text.split('\n').slice(0, count);
  return lines.map((line) => (JSON.parse(line) as { result: Json }).result);
}

describe('the Lightning node', () => {
  test('issues an invoice with the requested terms', async () => {
    const { hash, invoice, body } = await issue({ value_msat: '1500', memo: 'Tea', expiry: '60' });
    expect(body).toEqual({
      r_hash: expect.any(String),
      payment_request: invoice,
      add_index: '1',
      payment_addr: expect.any(String),
    });
    const sections = decode(invoice).sections.map((each) => [each.name, 'value' in each ? each.value : '']);
    expect(Object.fromEntries(sections)).toMatchObject({
      amount: '1500',
      payment_hash: hash,
      payment_secret: Buffer.from(String(body.payment_addr), 'base64').toString('hex'),
      description: 'Tea',
      expiry: 60,
    });
  });

  test("returns an open invoice in LND's format: bytes in base64, 64-bit numbers as strings", async () => {
    const { hash, invoice, body } = await issue();
    expect(await stateOf(hash)).toMatchObject({
      state: 'OPEN',
      settled: false,
      memo: 'A top-up',
      value: '1000',
      value_msat: '1000000',
      r_hash: body.r_hash,
      r_preimage: expect.stringMatching(/^[\w+/]{43}=$/),
      payment_request: invoice,
      creation_date: expect.stringMatching(/^\d{10}$/),
      expiry: '900',
      add_index: '1',
      settle_index: '0',
      settle_date: '0',
      amt_paid_sat: '0',
      amt_paid_msat: '0',
      htlcs: [],
    });
  });

  test('returns its public key and its network', async () => {
    const { body } = await lnd('/getinfo');
    expect(body).toMatchObject({
      identity_pubkey: expect.stringMatching(/^0[23][0-9a-f]{64}$/),
      synced_to_chain: true,
      chains: [{ chain: 'bitcoin', network: 'regtest' }],
    });
  });

  test.each([
    ['no macaroon', '/getinfo', undefined, {}, 500, 2, 'expected 1 macaroon, got 0'],
    ['a macaroon that is not hexadecimal', '/getinfo', undefined, { 'grpc-metadata-macaroon': 'x' }, 500, 2, 'hex'],
    ['an unknown invoice', `/invoice/${'00'.repeat(32)}`, undefined, MACAROON, 404, 5, 'unable to locate invoice'],
    ['a hash that is too short', '/invoice/00ff', undefined, MACAROON, 400, 3, 'exactly 32 bytes'],
    ['both amounts', '/invoices', { value: 1, value_msat: 1 }, MACAROON, 500, 2, 'mutually exclusive'],
    ['a negative amount', '/invoices', { value: -1 }, MACAROON, 500, 2, 'negative'],
    ['an amount that is not an integer', '/invoices', { value: '1.5' }, MACAROON, 400, 3, 'value'],
    ['an unknown field', '/invoices', { amount: 1 }, MACAROON, 400, 3, 'unknown field'],
    ['a memo that is too long', '/invoices', { memo: 'x'.repeat(640) }, MACAROON, 500, 2, 'memo too large'],
    ['an expiry beyond a year', '/invoices', { expiry: 31_536_001 }, MACAROON, 500, 2, 'max expiry'],
  ])("rejects %s in LND's error format", async (_, path, sent, headers, status, code, message) => {
    expect(await lnd(path, sent, headers as Record<string, string>)).toEqual({
      status,
      body: { code, message: expect.stringContaining(message), details: [] },
    });
  });

  test('cancels an unpaid invoice on expiry', () => {
    let now = 1_795_223_523_000;
    const node = new LightningNode(() => now);
    const invoice = node.issue({ msat: 1_000n, memo: '', expirySeconds: 60 });
    now += 59_999;
    expect(node.getState(invoice)).toBe('OPEN');
    now += 1;
    expect(node.getState(invoice)).toBe('CANCELED');
  });
});

describe('the wallet', () => {
  test('settles an invoice by a payment, and receives the preimage', async () => {
    const { hash, invoice } = await issue();
    const { status, body } = await pay(invoice);
    expect([status, body]).toEqual([
      200,
      { preimage: expect.stringMatching(/^[0-9a-f]{64}$/), payment_hash: hash, amount_msat: '1000000' },
    ]);
    expect(
      createHash('sha256')
        .update(Buffer.from(String(body.preimage), 'hex'))
        .digest('hex'),
    ).toBe(hash);
    expect(await stateOf(hash)).toMatchObject({
      state: 'SETTLED',
      settled: true,
      settle_index: '1',
      settle_date: expect.stringMatching(/^\d{10}$/),
      amt_paid_sat: '1000',
      amt_paid_msat: '1000000',
      htlcs: [{ amt_msat: '1000000', state: 'SETTLED' }],
    });
  });

  test('pays an invoice in upper case', async () => {
    expect((await pay((await issue()).invoice.toUpperCase())).status).toBe(200);
  });

  test('rejects a second payment of an invoice', async () => {
    const { invoice } = await issue();
    await pay(invoice);
    expect(await pay(invoice)).toEqual({ status: 400, body: { error: 'invoice is already paid' } });
  });

  test('pays an expired invoice only on request', async () => {
    const { hash, invoice } = await issue();
    const afterwards = Number((await stateOf(hash)).creation_date) + 900;
    expect(await pay(invoice, { settled_at: afterwards })).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining('invoice expired') },
    });
    expect((await pay(invoice, { settled_at: afterwards, late: true })).status).toBe(200);
    expect(await stateOf(hash)).toMatchObject({ state: 'SETTLED', settle_date: String(afterwards) });
  });

  test('can pay more than the requested amount, but not less', async () => {
    const { hash, invoice } = await issue();
    expect((await pay(invoice, { amount_msat: '999999' })).status).toBe(400);
    expect((await pay(invoice, { amount_msat: '1000001' })).body.amount_msat).toBe('1000001');
    expect(await stateOf(hash)).toMatchObject({
      value_msat: '1000000',
      amt_paid_msat: '1000001',
      amt_paid_sat: '1000',
    });
  });

  test('must specify the amount if the invoice has none', async () => {
    const { hash, invoice } = await issue({ memo: 'Any amount' });
    expect((await pay(invoice)).status).toBe(400);
    expect((await pay(invoice, { amount_msat: 5_000 })).status).toBe(200);
    expect(await stateOf(hash)).toMatchObject({ value_msat: '0', amt_paid_msat: '5000' });
  });

  test('finds no route to another node', async () => {
    const { paymentRequest } = new LightningNode().issue({ msat: 1n, memo: '', expirySeconds: 60 });
    expect(await pay(paymentRequest)).toMatchObject({ status: 400, body: { error: expect.stringContaining('path') } });
  });

  test.each([
    ['a text that is not an invoice', { invoice: 'hello' }],
    [
      'an invoice of another network',
      { invoice: 'lnbc1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygs' },
    ],
    ['no invoice', { invoice: null }],
    ['an unknown option', { fee: 1 }],
    ['an amount that is not a number', { amount_msat: 'all' }],
    ['an unknown report mode', { report: 'thrice' }],
    ['a time before the invoice was created', { settled_at: 1 }],
    ['a value of late that is not a boolean', { late: 'yes' }],
  ])('rejects %s', async (_, options) => {
    const { hash, invoice } = await issue();
    expect(await pay(invoice, options)).toEqual({ status: 400, body: { error: expect.any(String) } });
    expect((await stateOf(hash)).state).toBe('OPEN');
  });
});

describe('a subscription', () => {
  const seen = (invoices: Json[]) => invoices.map(({ state, add_index }) => `${state} ${add_index}`);
  const paid = async (options?: Json) => pay((await issue()).invoice, options);

  test('reports invoices as they are added and as they are settled', async () => {
    await issue();
    await issue();
    // The replay of the second invoice shows that the subscription is active.
    expect(seen(await events(3, 'add_index=1', paid))).toEqual(['OPEN 2', 'OPEN 3', 'SETTLED 3']);
  });

  test('replays the invoices that were settled after an index', async () => {
    for (const _ of [1, 2, 3]) await paid();
    const replayed = await events(2, 'settle_index=1');
    expect(replayed.map(({ settle_index }) => settle_index)).toEqual(['2', '3']);
    expect(replayed[0]).toEqual(await stateOf(Buffer.from(String(replayed[0]?.r_hash), 'base64').toString('hex')));
  });

  test('with settle_index 0 replays no settled invoice, like LND', async () => {
    await paid();
    await issue();
    expect(seen(await events(3, 'add_index=1&settle_index=0', paid))).toEqual(['OPEN 2', 'OPEN 3', 'SETTLED 3']);
  });

  test('reports a payment twice or never on request; the lookup returns the true state', async () => {
    await issue();
    await issue();
    const invoices: string[] = [];
    const meanwhile = async () => {
      for (const report of ['never', 'twice', 'once']) {
        const { hash, invoice } = await issue();
        invoices.push(hash);
        await pay(invoice, { report });
      }
    };
    expect(seen(await events(7, 'add_index=1', meanwhile))).toEqual([
      'OPEN 2',
      'OPEN 3',
      'OPEN 4',
      'SETTLED 4',
      'SETTLED 4',
      'OPEN 5',
      'SETTLED 5',
    ]);
    for (const hash of invoices) expect((await stateOf(hash)).state).toBe('SETTLED');
  });
});
