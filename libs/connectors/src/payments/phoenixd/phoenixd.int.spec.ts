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
  const node = new PhoenixdBackend({ phoenixdUrl: url, phoenixdPassword: 'hush', phoenixdWebhookSecret: secret });
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

/** A payment in the format of phoenixd. */
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

describe('a phoenixd node', () => {
  async function start(conf: object = {}) {
    const sandbox = await startSandbox({ port: 0 });
    opened.defer(() => sandbox.close());
    const send = (method: string, path: string, body: object) =>
      fetch(sandbox.url + path, { method, body: JSON.stringify(body) });
    await send('PUT', '/phoenixd/conf', conf);
    const pay = (invoice: string, more: object = {}) => send('POST', '/wallet/pay', { invoice, ...more });
    return { node: connect(`${sandbox.url}/phoenixd`, 'sandbox'), pay };
  }

  test('creates an invoice, and reports its payment', async () => {
    const { node, pay } = await start();
    const { reference, destination } = await request(node);
    expect(await node.fetchPayments([reference])).toEqual([]);
    await pay(destination.value);
    const [payment] = await node.fetchPayments([reference]);
    expect(payment).toMatchObject({ reference, id: reference, units: 1_500_000n, confirmations: 'final' });
    expect(payment).not.toHaveProperty('fees');
  });

  test('reports the full payment and the deducted fee', async () => {
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
  ])('sends webhooks that name the payment, accepted only if valid: %s', async (report, count, isBelieved) => {
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

describe('a phoenixd webhook', () => {
  const node = () => connect('http://127.0.0.1:1');
  const hook = (body: string, signature?: string) => ({
    headers: signature === undefined ? {} : { 'x-phoenix-signature': signature },
    body: Buffer.from(body),
  });
  const signed = (body: string, secret = 'hook') => hook(body, createHmac('sha256', secret).update(body).digest('hex'));
  const BODY = JSON.stringify({ type: 'payment_received', amountSat: 1500, paymentHash: HASH });

  test('is accepted only with the signature of its exact bytes', () => {
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
    ['an incomplete signature', hook(BODY, 'ab')],
    ['a signature that is not hexadecimal', hook(BODY, 'x'.repeat(64))],
    ['the signature of another secret', signed(BODY, 'other')],
    ['two signatures', { headers: { 'x-phoenix-signature': ['a', 'b'] }, body: Buffer.from(BODY) }],
  ])('is rejected with %s', (_, sent) => {
    expect(node().parseWebhook(sent)).toBeUndefined();
  });

  test.each([
    ['invalid JSON', 'hello'],
    ['another event', '{"type":"payment_sent"}'],
    ['no hash', '{"type":"payment_received"}'],
    ['null', 'null'],
  ])('with %s names no payment', (_, body) => {
    expect(node().parseWebhook(signed(body))).toEqual([]);
  });

  test('is rejected if no secret is configured', () => {
    const open = new PhoenixdBackend({
      phoenixdUrl: 'http://127.0.0.1:1',
      phoenixdPassword: 'hush',
      phoenixdWebhookSecret: undefined,
    });
    opened.defer(() => open.close());
    expect(open.parseWebhook(signed(BODY))).toBeUndefined();
  });
});

describe('a phoenixd node with prepared responses', () => {
  let server: StubServer;
  async function start(answer: unknown, status = 200): Promise<PhoenixdBackend> {
    const own = new StubServer();
    server = own;
    opened.defer(() => own.close());
    server.handler = respondWithJson(answer, status);
    return connect(await server.listen());
  }

  test('receives a form and the password', async () => {
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
    'fails to create a payment with the response %j',
    async (made) => {
      await expect(request(await start(made))).rejects.toMatchObject({ code: 'upstream_error' });
    },
  );

  test.each([
    ['the requested amount', {}, PAYMENT],
    ['a larger amount', { receivedSat: 2000 }, { ...PAYMENT, units: 2_000_000n }],
    ['a negative amount after a purchase of liquidity', { receivedSat: -500, fees: 9_000_000 }, PAYMENT],
    ['a smaller amount, with fees of earlier payments', { receivedSat: 1400, fees: 9_000_000 }, PAYMENT],
  ])('reports payment and fees so that their difference is the received amount: %s', async (_, more, payment) => {
    const found = await (await start(paid(more))).fetchPayments([HASH]);
    expect(found).toMatchObject([payment]);
    const kept = found[0]?.fees?.reduce((sum, { units }) => sum + units, 0n) ?? 0n;
    const received = BigInt((paid(more) as { receivedSat: number }).receivedSat) * 1000n;
    expect((found[0]?.units ?? 0n) - kept).toBe(received);
  });

  test.each([[{ isPaid: false, completedAt: undefined }], [{ isPaid: undefined }], [{ isPaid: 'yes' }]])(
    'has no payment for an unpaid invoice: %j',
    async (more) => {
      expect(await (await start(paid(more))).fetchPayments([HASH])).toEqual([]);
    },
  );

  test('has no payment for an unknown invoice', async () => {
    expect(await (await start('Not found', 404)).fetchPayments([HASH])).toEqual([]);
  });

  test.each([
    ['of another invoice', { paymentHash: '00'.repeat(32) }],
    ['without a hash', { paymentHash: undefined }],
    ['without an amount', { receivedSat: undefined }],
    ['with a fractional amount', { receivedSat: 1.5 }],
    ['without a requested amount', { requestedSat: undefined }],
    ['with a negative requested amount', { requestedSat: -1 }],
    ['without a time', { completedAt: undefined }],
    ['with an implausible time', { completedAt: 1e16 }],
  ])('fails for a payment %s', async (_, more) => {
    const node = await start(paid(more));
    await expect(node.fetchPayments([HASH])).rejects.toMatchObject({ code: 'upstream_error' });
  });
});
