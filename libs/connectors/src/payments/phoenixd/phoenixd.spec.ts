import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { PhoenixdBackend } from '#connectors';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';
import { respondWithJson, StubServer } from '../../../../testing/src/servers/stub-server.ts';

const HASH = 'fb'.repeat(32);

let opened: AsyncDisposableStack;
beforeEach(() => {
  opened = new AsyncDisposableStack();
});
afterEach(() => opened.disposeAsync());

function connect(url: string, secret: string | undefined = 'hook'): PhoenixdBackend {
  const node = new PhoenixdBackend(url, 'hush', secret);
  opened.defer(() => node.close());
  return node;
}

const request = (node: PhoenixdBackend) =>
  node.createPayment({
    topupId: 'topup',
    coin: { code: 'BTC', name: 'Bitcoin', decimals: 11, step: 1000, currencies: {} },
    kind: 'bolt11',
    units: 1_500_000n,
    memo: 'Päivää ☕',
    expirySeconds: 900,
    confirmations: 0,
  });

/** A payment as phoenixd prints it. */
const paid = (more: object = {}) => ({
  type: 'incoming_payment',
  subType: 'lightning',
  paymentHash: HASH,
  preimage: '00'.repeat(32),
  isPaid: true,
  requestedSat: 1500,
  receivedSat: 1500,
  fees: 0,
  completedAt: 1_795_176_000_123,
  createdAt: 1_795_175_000_000,
  ...more,
});
const PAYMENT = {
  reference: HASH,
  id: HASH,
  units: 1_500_000n,
  confirmations: 'final',
  receivedAt: '2026-11-20T12:00:00.123Z',
};

describe('a node that is there', () => {
  async function start(conf: object = {}) {
    const sandbox = await startSandbox({ port: 0 });
    opened.defer(() => sandbox.close());
    const send = (method: string, path: string, body: object) =>
      fetch(sandbox.url + path, { method, body: JSON.stringify(body) });
    await send('PUT', '/phoenixd/conf', conf);
    const pay = (invoice: string, more: object = {}) => send('POST', '/wallet/pay', { invoice, ...more });
    return { node: connect(`${sandbox.url}/phoenixd`, 'sandbox'), pay };
  }

  test('makes an invoice, and is found to be paid', async () => {
    const { node, pay } = await start();
    const { reference, destination } = await request(node);
    expect(await node.fetchPayments([reference])).toEqual([]);
    await pay(destination.value);
    const [payment] = await node.fetchPayments([reference]);
    expect(payment).toMatchObject({ reference, id: reference, units: 1_500_000n, confirmations: 'final' });
    expect(payment).not.toHaveProperty('fees');
  });

  test('credits the customer in full for what it keeps as a fee', async () => {
    const { node, pay } = await start({ liquidity_fee_sat: 400 });
    const { reference, destination } = await request(node);
    await pay(destination.value);
    const fees = [{ id: 'liquidity', units: 400_000n, why: 'liquidity that phoenixd bought' }];
    expect(await node.fetchPayments([reference])).toMatchObject([{ units: 1_500_000n, fees }]);
  });

  test.each([
    ['once', 1, true],
    ['twice', 2, true],
    ['forged', 1, false],
  ])('names what is paid in web hooks, also %s', async (report, count, isBelieved) => {
    const hooks = new StubServer();
    opened.defer(() => hooks.close());
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    hooks.handler = (response) => {
      response.end();
      if (hooks.requests.length === count) resolve();
    };
    const { node, pay } = await start({ webhook: await hooks.listen() });
    const { reference, destination } = await request(node);
    await pay(destination.value, { report });
    await enough;
    const named = hooks.requests.map(({ headers, body }) => node.parseWebhook({ headers, body: Buffer.from(body) }));
    expect(named).toEqual(Array.from({ length: count }, () => (isBelieved ? [reference] : undefined)));
  });
});

describe('a web hook', () => {
  const node = () => connect('http://127.0.0.1:1');
  const hook = (body: string, signature?: string) => ({
    headers: signature === undefined ? {} : { 'x-phoenix-signature': signature },
    body: Buffer.from(body),
  });
  const signed = (body: string, secret = 'hook') => hook(body, createHmac('sha256', secret).update(body).digest('hex'));
  const BODY = JSON.stringify({ type: 'payment_received', amountSat: 1500, paymentHash: HASH });

  test('is believed with the signature over its bytes, and with no other', () => {
    const { headers, body } = signed(BODY);
    expect(node().parseWebhook({ headers, body })).toEqual([HASH]);
    for (let i = 0; i < body.length; i++) {
      const flipped = Buffer.from(body);
      flipped[i] = (flipped[i] ?? 0) ^ 1;
      expect(node().parseWebhook({ headers, body: flipped })).toBeUndefined();
    }
  });

  test.each([
    ['no signature', hook(BODY)],
    ['half a signature', hook(BODY, 'ab')],
    ['something else as a signature', hook(BODY, 'x'.repeat(64))],
    ['the signature of somebody else', signed(BODY, 'other')],
    ['two signatures', { headers: { 'x-phoenix-signature': ['a', 'b'] }, body: Buffer.from(BODY) }],
  ])('with %s is nobody’s', (_, sent) => {
    expect(node().parseWebhook(sent)).toBeUndefined();
  });

  test.each([
    ['what is no JSON', 'hello'],
    ['another event', '{"type":"payment_sent"}'],
    ['no hash', '{"type":"payment_received"}'],
    ['null', 'null'],
  ])('of %s names nothing', (_, body) => {
    expect(node().parseWebhook(signed(body))).toEqual([]);
  });

  test('is never believed where no secret is configured, also not one signed with nothing', () => {
    const open = new PhoenixdBackend('http://127.0.0.1:1', 'hush', undefined);
    opened.defer(() => open.close());
    expect(open.parseWebhook(signed(BODY))).toBeUndefined();
  });
});

describe('a node that answers something else', () => {
  let server: StubServer;
  async function start(answer: unknown, status = 200): Promise<PhoenixdBackend> {
    const own = new StubServer();
    server = own;
    opened.defer(() => own.close());
    server.handler = respondWithJson(answer, status);
    return connect(await server.listen());
  }

  test('is asked with a form, and the password', async () => {
    await request(await start({ amountSat: 1500, paymentHash: HASH, serialized: 'lnbcrt1' }));
    const asked = server.requests[0];
    expect([asked?.line, asked?.headers.authorization]).toEqual(['POST /createinvoice', 'Basic Omh1c2g=']);
    expect(Object.fromEntries(new URLSearchParams(asked?.body))).toEqual({
      amountSat: '1500',
      description: 'Päivää ☕',
      expirySeconds: '900',
      externalId: 'topup',
    });
  });

  test.each([{}, { paymentHash: HASH }, { paymentHash: 'fb', serialized: 'lnbcrt1' }, 'null'])(
    'makes no invoice: %j',
    async (made) => {
      await expect(request(await start(made))).rejects.toMatchObject({ code: 'upstream_error' });
    },
  );

  test.each([
    ['as much as was asked for', {}, PAYMENT],
    ['more', { receivedSat: 2000 }, { ...PAYMENT, units: 2_000_000n }],
    ['less than nothing, after a purchase of liquidity', { receivedSat: -500, fees: 9_000_000 }, PAYMENT],
    ['less, and fees that others have paid before', { receivedSat: 1400, fees: 9_000_000 }, PAYMENT],
  ])('has received %s', async (_, more, payment) => {
    const found = await (await start(paid(more))).fetchPayments([HASH]);
    expect(found).toMatchObject([payment]);
    const kept = found[0]?.fees?.reduce((sum, { units }) => sum + units, 0n) ?? 0n;
    const received = BigInt((paid(more) as { receivedSat: number }).receivedSat) * 1000n;
    expect((found[0]?.units ?? 0n) - kept).toBe(received);
  });

  test.each([[{ isPaid: false, completedAt: undefined }], [{ isPaid: undefined }], [{ isPaid: 'yes' }]])(
    'has received nothing: %j',
    async (more) => {
      expect(await (await start(paid(more))).fetchPayments([HASH])).toEqual([]);
    },
  );

  test('does not know the payment', async () => {
    expect(await (await start('Not found', 404)).fetchPayments([HASH])).toEqual([]);
  });

  test.each([
    ['of another invoice', { paymentHash: '00'.repeat(32) }],
    ['of no invoice', { paymentHash: undefined }],
    ['without an amount', { receivedSat: undefined }],
    ['of a part of a satoshi', { receivedSat: 1.5 }],
    ['of an unknown amount', { requestedSat: undefined }],
    ['for less than nothing', { requestedSat: -1 }],
    ['without a time', { completedAt: undefined }],
    ['at a time that is none', { completedAt: 1e16 }],
  ])('is believed no payment %s', async (_, more) => {
    const node = await start(paid(more));
    await expect(node.fetchPayments([HASH])).rejects.toMatchObject({ code: 'upstream_error' });
  });
});
