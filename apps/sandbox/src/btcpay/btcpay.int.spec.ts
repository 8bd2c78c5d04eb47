import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { replaceDelays, waitUntil } from '#testing';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let opened: AsyncDisposableStack;
beforeEach(async () => {
  opened = new AsyncDisposableStack();
  sandbox = await startSandbox({ port: 0 });
  opened.defer(() => sandbox.close());
});
afterEach(() => opened.disposeAsync());

// biome-ignore lint/suspicious/noExplicitAny: specs read responses of every format
type Json = any;

const KEY = { authorization: 'token key' };
async function ask(path: string, body?: object, headers: Record<string, string> = KEY) {
  const sent = body ? { method: 'POST', body: JSON.stringify(body), headers } : { headers };
  const response = await fetch(sandbox.url + path, sent);
  return { status: response.status, body: (await response.json()) as Json };
}
const store = (path: string, body?: object) => ask(`/btcpay/api/v1/stores/sandbox/${path}`, body);

async function invoice(more: object = {}, method = 'BTC-CHAIN', amount = '0.001') {
  const checkout = { paymentMethods: [method], speedPolicy: 'LowMediumSpeed', expirationMinutes: 15, ...more };
  const [currency] = method.split('-');
  const { body } = await store('invoices', { amount, currency, checkout, metadata: { orderId: `order ${method}` } });
  const [{ destination }] = (await store(`invoices/${body.id}/payment-methods`)).body;
  return { id: body.id as string, destination: destination as string, expires: body.expirationTime as number };
}

const send = async (address: string, amount: string, more: object = {}, coin = 'BTC') =>
  (await ask('/wallet/send', { coin, address, amount, ...more })).body;
const mine = (blocks: number, coin = 'BTC') => ask(`/chains/${coin}/mine`, { blocks });
const state = async (id: string) => {
  const { status, additionalStatus, paidAmount } = (await store(`invoices/${id}`)).body;
  return [status, additionalStatus, paidAmount];
};
const payments = async (id: string) =>
  (await store(`invoices/${id}/payment-methods?onlyAccountedPayments=false`)).body[0].payments;

describe('an invoice', () => {
  test('is new until it is paid, processing until the payment has two confirmations, and then settled', async () => {
    const { id, destination } = await invoice();
    expect(await state(id)).toEqual(['New', 'None', '0']);
    const { txid } = await send(destination, '0.001');
    expect(await state(id)).toEqual(['Processing', 'None', '0.001']);
    expect(await payments(id)).toMatchObject([{ id: `${txid}-0`, status: 'Processing', value: '0.001', destination }]);
    await mine(1);
    expect(await state(id)).toEqual(['Processing', 'None', '0.001']);
    await mine(1);
    expect(await state(id)).toEqual(['Settled', 'None', '0.001']);
  });

  test('with a partial payment is new and PaidPartial; with an overpayment it is processing and PaidOver', async () => {
    const { id, destination } = await invoice();
    await send(destination, '0.0004');
    expect(await state(id)).toEqual(['New', 'PaidPartial', '0.0004']);
    await send(destination, '0.0008');
    expect(await state(id)).toEqual(['Processing', 'PaidOver', '0.0012']);
  });

  test('that is paid after its expiry stays expired and becomes PaidLate', async () => {
    const { id, destination, expires } = await invoice();
    await send(destination, '0.001', { received_at: expires + 60 });
    await mine(2);
    expect(await state(id)).toEqual(['Expired', 'PaidLate', '0.001']);
    expect(await payments(id)).toMatchObject([{ status: 'Settled', receivedDate: expires + 60 }]);
  });

  test('whose payment is replaced by a smaller one is new, and lists the replaced one only on request', async () => {
    const { id, destination } = await invoice();
    const { txid } = await send(destination, '0.001', { low_fee: true });
    await send(destination, '0.0003', { replaces: txid });
    expect(await state(id)).toEqual(['New', 'PaidPartial', '0.0003']);
    expect((await payments(id)).map((each: Json) => each.status)).toEqual(['Invalid', 'Processing']);
    const { body } = await store(`invoices?orderId=order BTC-CHAIN&includePaymentMethods=true`);
    expect(body[0].paymentMethods[0].payments).toHaveLength(1); // lists leave out payments that do not count
  });

  test('stays settled when its settled payment is reversed', async () => {
    const { id, destination } = await invoice();
    const { txid } = await send(destination, '0.001');
    await mine(2);
    expect(await state(id)).toEqual(['Settled', 'None', '0.001']);
    await ask('/chains/BTC/undo', { txid });
    expect(await state(id)).toEqual(['Settled', 'None', '0.001']);
  });

  test.each([
    ['LTC', '1.5'],
    ['XMR', '0.123456789012'],
    ['DOGE', '10'],
  ])('in %s is processing after its amount was sent in that coin', async (coin, amount) => {
    const { id, destination } = await invoice({}, `${coin}-CHAIN`, amount);
    await send(destination, amount, {}, coin);
    expect(await state(id)).toEqual(['Processing', 'None', amount]);
  });

  test('over Lightning is settled as soon as it is paid', async () => {
    const { id, destination } = await invoice({}, 'BTC-LN');
    expect((await ask('/wallet/pay', { invoice: destination })).status).toBe(200);
    expect(await state(id)).toEqual(['Settled', 'None', '0.001']);
    expect(await payments(id)).toMatchObject([{ status: 'Settled', id: expect.stringMatching(/^[0-9a-f]{64}$/) }]);
  });
});

describe('a caller', () => {
  test.each([
    ['has no key', 'invoices/x', undefined, 401],
    ['requests an unknown invoice', 'invoices/x', 'token key', 404],
  ])('that %s is rejected', async (_, path, authorization, status) => {
    const answer = await ask(
      `/btcpay/api/v1/stores/sandbox/${path}`,
      undefined,
      authorization ? { authorization } : {},
    );
    expect([answer.status, typeof answer.body.code]).toEqual([status, 'string']);
  });

  test.each([
    [{ amount: '-1' }, 422],
    [{ currency: 'USD' }, 400],
    [{ checkout: { paymentMethods: ['LTC-LN'] } }, 422],
    [{ checkout: { paymentMethods: ['BTC-CHAIN'], expirationMinutes: 0 } }, 422],
    [{ checkout: { paymentMethods: ['BTC-CHAIN'], speedPolicy: 'Warp' } }, 422],
  ])('that requests %p is rejected', async (wrong, status) => {
    const asked = { amount: '1', currency: 'BTC', checkout: { paymentMethods: ['BTC-CHAIN'] }, ...wrong };
    expect((await store('invoices', asked)).status).toBe(status);
  });
});

describe('a webhook', () => {
  const SECRET = 'secret';

  /** Starts a server that receives webhooks and responds with these statuses in turn, then with 200. */
  async function listener(...statuses: number[]) {
    const got: { type: string; body: Json; genuine: boolean }[] = [];
    const server: Server = createServer(async (request, response) => {
      const raw = await text(request);
      const signature = `sha256=${createHmac('sha256', SECRET).update(raw).digest('hex')}`;
      const body = JSON.parse(raw) as Json;
      got.push({ type: body.type, body, genuine: request.headers['btcpay-sig'] === signature });
      response.writeHead(statuses.shift() ?? 200).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    opened.defer(() => new Promise<void>((resolve) => server.close(() => resolve())));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const { body } = await store('webhooks', { url, secret: SECRET });
    const until = async (count: number) => {
      await waitUntil(() => got.length >= count);
      return got;
    };
    return { got, until, id: body.id as string };
  }

  test('reports the events of an invoice that is paid and settled, in order and signed', async () => {
    const { until } = await listener();
    const { id, destination } = await invoice();
    await send(destination, '0.001');
    await mine(2);
    const got = await until(5);
    expect(got.map(({ type }) => type)).toEqual([
      'InvoiceCreated',
      'InvoiceReceivedPayment',
      'InvoiceProcessing',
      'InvoicePaymentSettled',
      'InvoiceSettled',
    ]);
    expect(got.every(({ genuine, body }) => genuine && body.invoiceId === id)).toBe(true);
    expect(got[1]?.body).toMatchObject({ metadata: { orderId: 'order BTC-CHAIN' }, payment: { value: '0.001' } });
  });

  test.each([
    ['twice', 9, true],
    ['forged', 5, false],
  ])('in report mode %s makes at least %i deliveries, genuine after the first: %p', async (report, count, genuine) => {
    const { until } = await listener();
    const { destination } = await invoice();
    await send(destination, '0.001', { report });
    await mine(2);
    const got = (await until(count)).slice(1);
    expect(got.every((each) => each.genuine === genuine)).toBe(true);
  });

  test('delivers the last event directly after the first if the report mode of the payment is reordered', async () => {
    const { until } = await listener();
    const { destination } = await invoice();
    await send(destination, '0.001', { report: 'reordered' });
    await mine(2);
    expect((await until(5)).slice(1).map(({ type }) => type)[0]).toBe('InvoiceSettled');
  });

  test('that gets status 500 or 503 is delivered again, before the next one', async () => {
    opened.defer(replaceDelays(async () => {}));
    const { until } = await listener(500, 503, 200);
    await invoice();
    await invoice();
    const got = await until(4);
    expect(got.map(({ body }) => body.isRedelivery)).toEqual([false, true, true, false]);
    expect(new Set(got.slice(0, 3).map(({ body }) => body.originalDeliveryId)).size).toBe(1);
  });

  test('that is rejected with 401 is not delivered again', async () => {
    const { until } = await listener(401);
    await invoice();
    await invoice();
    expect((await until(2)).map(({ body }) => body.isRedelivery)).toEqual([false, false]);
  });

  test('can be delivered again on request, with the id of its original delivery', async () => {
    const { until, id } = await listener();
    await invoice();
    const [first] = await until(1);
    await store(`webhooks/${id}/deliveries/${first?.body.deliveryId}/redeliver`, {});
    const [, second] = await until(2);
    expect(second?.body).toMatchObject({ isRedelivery: true, originalDeliveryId: first?.body.deliveryId });
    expect(second?.body.deliveryId).not.toBe(first?.body.deliveryId);
  });
});
