/** Tests the simulated Stripe with Stripe's own library, unmodified. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Stripe } from 'stripe';
import { waitUntil } from '#testing';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let stripe: Stripe;
let opened: AsyncDisposableStack;
beforeEach(async () => {
  opened = new AsyncDisposableStack();
  sandbox = await startSandbox({ port: 0 });
  opened.defer(() => sandbox.close());
  stripe = open('sk_test_sandbox');
});
afterEach(() => opened.disposeAsync());

const open = (key: string) =>
  new Stripe(key, { host: '127.0.0.1', port: new URL(sandbox.url).port, protocol: 'http', telemetry: false });

const TERMS: Stripe.Checkout.SessionCreateParams = {
  mode: 'payment',
  line_items: [{ quantity: 1, price_data: { currency: 'usd', unit_amount: 2_500, product_data: { name: 'Top-up' } } }],
  success_url: 'https://example.com/done',
  cancel_url: 'https://example.com/not',
  metadata: { topup: 'abc' },
};
const EXPAND = { expand: ['payment_intent.latest_charge.balance_transaction', 'payment_intent.latest_charge.refunds'] };
const create = (more: object = {}, idempotencyKey?: string) =>
  stripe.checkout.sessions.create({ ...TERMS, ...more }, idempotencyKey ? { idempotencyKey } : {});

async function act(session: string, what: string, more: object = {}) {
  const body = JSON.stringify({ do: what, ...more });
  const response = await fetch(`${sandbox.url}/stripe/sessions/${session}`, { method: 'POST', body });
  expect([response.status, await response.clone().text()]).toEqual([200, expect.anything()]);
  return ((await response.json()) as { events: { type: string; data: { object: { id: string } } }[] }).events;
}

async function looked(id: string) {
  const session = await stripe.checkout.sessions.retrieve(id, EXPAND);
  const intent = session.payment_intent as Stripe.PaymentIntent | null;
  return { session, intent, charge: intent?.latest_charge as Stripe.Charge | null };
}

describe('a session', () => {
  test('is open and unpaid at first, and is paid on its payment page', async () => {
    const session = await create();
    expect(session).toMatchObject({
      id: expect.stringMatching(/^cs_test_/),
      status: 'open',
      payment_status: 'unpaid',
      payment_intent: null,
      amount_total: 2_500,
      currency: 'usd',
      metadata: { topup: 'abc' },
      livemode: false,
    });
    const page = await fetch(String(session.url));
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('25.00 USD')]);
    const paid = await fetch(String(session.url), { method: 'POST', redirect: 'manual' });
    expect([paid.status, paid.headers.get('location')]).toEqual([303, 'https://example.com/done']);
    expect((await stripe.checkout.sessions.retrieve(session.id)).payment_status).toBe('paid');
  });

  test('is created once per idempotency key, which cannot be reused for another request', async () => {
    const first = await create({}, 'key');
    expect((await create({}, 'key')).id).toBe(first.id);
    await expect(create({ client_reference_id: 'x' }, 'key')).rejects.toThrow(/same parameters/);
  });

  test.each([
    ['with an unknown id', () => stripe.checkout.sessions.retrieve('cs_test_no'), 404],
    ['for an invalid API key', () => open('nonsense').checkout.sessions.retrieve('cs_test_no'), 401],
    ['with an expiry that is too early', () => create({ expires_at: Math.floor(Date.now() / 1000) + 60 }), 400],
    ['without a valid success_url', () => create({ success_url: 'x' }), 400],
  ])("%s is rejected with Stripe's status and error type", async (_, asked, statusCode) => {
    await expect(asked()).rejects.toMatchObject({ statusCode, rawType: 'invalid_request_error' });
  });

  test('that is paid has a charge with a fee', async () => {
    const { id } = await create();
    await act(id, 'pay');
    const { session, intent, charge } = await looked(id);
    expect([session.status, session.payment_status]).toEqual(['complete', 'paid']);
    expect(intent).toMatchObject({ status: 'succeeded', amount_received: 2_500 });
    expect(charge?.balance_transaction).toMatchObject({ amount: 2_500, fee: 103, net: 2_397, currency: 'usd' });
  });

  test('that is paid asynchronously is complete, but unpaid until the payment succeeds', async () => {
    const { id } = await create();
    await act(id, 'pay_later');
    expect((await looked(id)).session).toMatchObject({ status: 'complete', payment_status: 'unpaid' });
    await act(id, 'succeed');
    expect((await looked(id)).session.payment_status).toBe('paid');
  });
});

describe('a charge', () => {
  let id: string;
  let paymentIntent: string;
  beforeEach(async () => {
    id = (await create()).id;
    await act(id, 'pay');
    paymentIntent = (await looked(id)).intent?.id ?? '';
  });

  test('can be refunded in parts; a failed refund does not count as refunded', async () => {
    const [created] = await act(id, 'refund', { amount: 1_000 });
    await act(id, 'refund', { amount: 1_500 });
    expect((await looked(id)).charge).toMatchObject({ amount_refunded: 2_500, refunded: true });
    await act(id, 'fail_refund', { refund: created?.data.object.id });
    const { charge } = await looked(id);
    expect(charge).toMatchObject({ amount_refunded: 1_500, refunded: false });
    expect(charge?.refunds?.data.map(({ amount, status }) => [amount, status])).toEqual([
      [1_500, 'succeeded'],
      [1_000, 'failed'],
    ]);
    const { data } = await stripe.refunds.list({ payment_intent: paymentIntent, expand: ['data.balance_transaction'] });
    expect(data.map(({ balance_transaction: at }) => (at as Stripe.BalanceTransaction).amount)).toEqual([
      -1_500, -1_000,
    ]);
  });

  test.each([
    ['won', 'win', [-2_500, 2_500]],
    ['lost', 'lose', [-2_500]],
  ])('can have a dispute that is %s', async (status, how, moved) => {
    await act(id, 'dispute');
    expect((await looked(id)).charge?.disputed).toBe(true);
    await act(id, how);
    const [dispute] = (await stripe.disputes.list({ payment_intent: paymentIntent })).data;
    expect(dispute?.status).toBe(status);
    expect(dispute?.balance_transactions.map(({ amount }) => amount)).toEqual(moved);
    expect(dispute?.balance_transactions[0]?.fee).toBe(1_500);
  });

  test('creates events, which can be listed after a given event or by type', async () => {
    const [first] = (await stripe.events.list({ limit: 1 })).data;
    await act(id, 'refund', { amount: 1_000 });
    await act(id, 'refund', { amount: 1_500 });
    const types: string[] = [];
    for await (const { type } of stripe.events.list({ ending_before: first?.id ?? '', limit: 1 })) types.push(type);
    expect(types).toEqual(['refund.created', 'charge.refunded', 'refund.created', 'charge.refunded']);
    const only = await stripe.events.list({ types: ['charge.refunded'] });
    expect(only.data.map(({ type }) => type)).toEqual(['charge.refunded', 'charge.refunded']);
  });
});

describe('a webhook', () => {
  const SECRET = 'whsec_test';
  let listener: Server;
  let came: { readonly type: string; readonly valid: boolean }[];
  let answers: number[];
  beforeEach(async () => {
    [came, answers] = [[], []];
    listener = createServer(async (request, response) => {
      const body = await buffer(request);
      const signature = String(request.headers['stripe-signature']);
      const valid = (() => {
        try {
          return stripe.webhooks.constructEvent(body, signature, SECRET) !== undefined;
        } catch {
          return false;
        }
      })();
      came.push({ type: JSON.parse(body.toString()).type, valid });
      response.writeHead(answers.shift() ?? 200).end();
    });
    await new Promise<void>((listening) => listener.listen(0, '127.0.0.1', listening));
    opened.defer(async () => {
      listener.closeAllConnections();
      await new Promise((closed) => listener.close(closed));
    });
    const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
    await fetch(`${sandbox.url}/stripe/webhooks`, { method: 'POST', body: JSON.stringify({ url, secret: SECRET }) });
  });

  async function arrived(count: number) {
    await waitUntil(() => came.length >= count);
    return came;
  }

  test.each([
    ['once', 2, true],
    ['twice', 4, true],
    ['at once', 8, true],
    ['forged', 2, false],
  ])('in report mode %s delivers two events %i times in total (validly signed: %p)', async (report, count, valid) => {
    await act((await create()).id, 'pay', { report });
    expect(await arrived(count)).toHaveLength(count);
    expect(new Set(came.map((each) => each.valid))).toEqual(new Set([valid]));
  });

  test('for a reordered event arrives after those for the next events; several arrive in reverse order', async () => {
    const { id } = await create();
    await act(id, 'pay', { report: 'reordered' });
    await act(id, 'refund');
    expect((await arrived(4)).map(({ type }) => type)).toEqual([
      'refund.created',
      'charge.refunded',
      'checkout.session.completed',
      'charge.succeeded',
    ]);
  });
});
