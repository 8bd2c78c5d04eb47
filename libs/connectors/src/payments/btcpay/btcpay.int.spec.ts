import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import { BtcPayBackend } from '#connectors';
import type { CoinTerms } from '#domain';
import { getCoin } from '#testing';

const { coins } = readPayments();
const KEY = 'planted-key-9f31';
const SECRET = 'planted-secret-77ab';
const ORDER = 'T0pUp';
const ID = 'Inv0ice';
const REFERENCE = `${ORDER}/BTC-CHAIN/${ID}`;
const ADDRESS = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';

// biome-ignore lint/suspicious/noExplicitAny: responses of any format
type Json = any;

let opened: AsyncDisposableStack;
let asked: { readonly line: string; readonly key: string | undefined; readonly body: Json }[];
/** Responses of the server by the end of the requested path. */
let answers: Record<string, Json>;
beforeEach(() => {
  opened = new AsyncDisposableStack();
  asked = [];
  answers = { invoices: invoice(), 'payment-methods': [method()], list: [] };
});
afterEach(() => opened.disposeAsync());

const invoice = (more: object = {}) => ({
  id: ID,
  storeId: 'store',
  amount: '0.00012000',
  type: 'Standard',
  currency: 'BTC',
  status: 'New',
  additionalStatus: 'None',
  metadata: { orderId: ORDER, paymentMethod: 'BTC-CHAIN' },
  checkout: { paymentMethods: ['BTC-CHAIN'], paymentTolerance: 0.0, speedPolicy: 'LowMediumSpeed' },
  ...more,
});
const method = (more: object = {}) => ({
  paymentMethodId: 'BTC-CHAIN',
  currency: 'BTC',
  activated: true,
  destination: ADDRESS,
  amount: '0.00012000',
  payments: [],
  ...more,
});
const paid = (more: object = {}) => ({
  id: `${'ab'.repeat(32)}-0`,
  receivedDate: 1_795_176_000,
  value: '0.00012000',
  fee: '0',
  status: 'Settled',
  destination: ADDRESS,
  ...more,
});
const asking = (more: object = {}) => ({
  topupId: ORDER,
  coin: getCoin({ coins }, 'BTC'),
  kind: 'address' as const,
  units: 12_000_000n,
  memo: 'Countinghouse top-up',
  expirySeconds: 3_600,
  confirmations: 2,
  ...more,
});

/** Starts a server that sends the current `answers`. */
async function start(status = 200): Promise<BtcPayBackend> {
  const server: Server = createServer(async (request, response) => {
    const { url = '', headers } = request;
    const body = await text(request);
    asked.push({ line: `${request.method} ${url}`, key: headers.authorization, body: body && JSON.parse(body) });
    const path = url.split('?')[0]?.split('/') ?? [];
    const name = url.includes('orderId=') ? 'list' : (path.at(-1) ?? '');
    const answer = answers[path.slice(-2).join('/')] ?? answers[name];
    response.writeHead(answer === undefined ? 404 : status, { 'content-type': 'application/json' });
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.defer(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

function connect(btcpayUrl: string, btcpayWebhookSecret: string | undefined = SECRET): BtcPayBackend {
  const settings = { btcpayUrl, btcpayStoreId: 'store', btcpayApiKey: KEY, btcpayWebhookSecret };
  const backend = new BtcPayBackend(settings, coins);
  opened.defer(() => backend.close());
  return backend;
}

const found = (more: object = {}) => ({
  reference: REFERENCE,
  id: `BTC:${'ab'.repeat(32)}-0`,
  units: 12_000_000n,
  confirmations: 'final',
  receivedAt: '2026-11-20T12:00:00.000Z',
  ...more,
});

describe('a payment request', () => {
  test('creates an invoice with exactly the requested amount of the coin and one payment method', async () => {
    const backend = await start();
    expect(await backend.createPayment(asking())).toEqual({
      reference: REFERENCE,
      destination: { kind: 'address', value: ADDRESS },
    });
    expect(asked[0]).toEqual({
      line: 'POST /api/v1/stores/store/invoices',
      key: `token ${KEY}`,
      body: {
        amount: '0.00012',
        currency: 'BTC',
        metadata: { orderId: ORDER, paymentMethod: 'BTC-CHAIN' },
        checkout: {
          speedPolicy: 'LowMediumSpeed',
          paymentMethods: ['BTC-CHAIN'],
          defaultPaymentMethod: 'BTC-CHAIN',
          expirationMinutes: 60,
          monitoringMinutes: 10_080,
          paymentTolerance: 0,
          lazyPaymentMethods: false,
        },
      },
    });
  });

  test.each([
    [0, 'BTC', 'HighSpeed'],
    [1, 'BTC', 'MediumSpeed'],
    [2, 'BTC', 'LowMediumSpeed'],
    [3, 'BTC', 'LowSpeed'],
    [6, 'LTC', 'LowSpeed'],
    [10, 'XMR', 'LowSpeed'], // the plug-in has its own threshold
  ])('with %d confirmations of %s has the speed policy %s', async (confirmations, code, policy) => {
    const coin = getCoin({ coins }, code);
    const backend = await start();
    await backend.createPayment(asking({ coin, confirmations })).catch(() => {});
    expect(asked[0]?.body.checkout.speedPolicy).toBe(policy);
  });

  test.each<[string, Record<string, Json>]>([
    ['with another amount', { invoices: invoice({ amount: '0.00011999' }) }],
    ['in another currency', { invoices: invoice({ currency: 'USD' }) }],
    ['of another order', { invoices: invoice({ metadata: { orderId: 'other' } }) }],
    ['for any amount', { invoices: invoice({ type: 'TopUp' }) }],
    [
      'with a faster speed policy',
      { invoices: invoice({ checkout: { ...invoice().checkout, speedPolicy: 'HighSpeed' } }) },
    ],
    ['with a payment tolerance', { invoices: invoice({ checkout: { ...invoice().checkout, paymentTolerance: 5 } }) }],
    ['with an id that is another path', { invoices: invoice({ id: '../../server' }) }],
    ['without an id', { invoices: invoice({ id: undefined }) }],
    ['with a second method', { 'payment-methods': [method(), method({ paymentMethodId: 'BTC-LN' })] }],
    ['with another method', { 'payment-methods': [method({ paymentMethodId: 'LTC-CHAIN' })] }],
    ['without a method', { 'payment-methods': [] }],
    ['with an additional fee', { 'payment-methods': [method({ amount: '0.00012100' })] }],
    ['of another coin', { 'payment-methods': [method({ currency: 'LTC' })] }],
    ['that is not active', { 'payment-methods': [method({ activated: false, destination: '' })] }],
    ['with a Lightning destination', { 'payment-methods': [method({ destination: `lnbcrt1${'q'.repeat(200)}` })] }],
    ['with a page as destination', { 'payment-methods': [method({ destination: 'https://pay.example/i/1' })] }],
    ['without a destination', { 'payment-methods': [method({ destination: null })] }],
    ['that is a JSON string', { invoices: '"yes"' }],
    ['that is incomplete JSON', { invoices: JSON.stringify(invoice()).slice(0, 40) }],
  ])('fails for an invoice %s', async (_, lies) => {
    const backend = await start();
    answers = { ...answers, ...lies };
    await expect(backend.createPayment(asking())).rejects.toMatchObject({
      code: 'upstream_error',
      name: 'UpstreamError',
    });
  });
});

describe('polling an invoice', () => {
  test.each([
    ['Settled', 'final'],
    ['Processing', 0],
    ['Invalid', 'lost'],
  ])('translates the payment status %s to %p', async (status, confirmations) => {
    const backend = await start();
    answers['payment-methods'] = [method({ payments: [paid({ status })] })];
    expect(await backend.fetchPayments([REFERENCE])).toEqual([found({ confirmations })]);
    expect(asked.map(({ line }) => line)).toEqual([
      `GET /api/v1/stores/store/invoices?includePaymentMethods=true&take=200&orderId=${ORDER}`,
      `GET /api/v1/stores/store/invoices/${ID}/payment-methods?onlyAccountedPayments=false`,
    ]);
  });

  test.each([
    ['0.00000001', 1_000n],
    ['1', 100_000_000_000n],
    ['1.0', 100_000_000_000n],
    ['0.00012345678', 12_345_678n],
    ['21000000.00000000000', 2_100_000_000_000_000_000n],
    ['0.000120000000000000000000', 12_000_000n],
  ])('parses %s BTC exactly', async (value, units) => {
    const backend = await start();
    answers['payment-methods'] = [method({ payments: [paid({ value })] })];
    expect(await backend.fetchPayments([REFERENCE])).toEqual([found({ units })]);
  });

  test('finds no payment for an unknown invoice or an output without value', async () => {
    const backend = await start();
    answers['payment-methods'] = [method({ payments: [paid({ value: '0.00000000' })] })];
    expect(await backend.fetchPayments([REFERENCE])).toEqual([]);
    delete answers['payment-methods'];
    expect(await backend.fetchPayments([REFERENCE])).toEqual([]);
  });

  const listed = (id: string, more: object, payments: readonly object[] = []) =>
    invoice({ id, paymentMethods: [method({ payments })], ...more });
  const referring = (...ids: string[]) => ids.map((id) => `${ORDER}/BTC-CHAIN/${id}`);

  test('uses one request for three invoices', async () => {
    const backend = await start();
    answers.list = [
      listed('paid', { status: 'Settled' }, [paid()]),
      listed('expired', { status: 'Expired' }),
      listed('new', {}),
      listed('of somebody else', {}, [paid({ id: 'x' })]),
    ];
    const [reference] = referring('paid') as [string];
    expect(await backend.fetchPayments(referring('new', 'expired', 'paid'), [found().id])).toEqual([
      found({ reference }),
    ]);
    expect(asked.map(({ line }) => line)).toEqual([
      `GET /api/v1/stores/store/invoices?includePaymentMethods=true&take=200${`&orderId=${ORDER}`.repeat(3)}`,
    ]);
  });

  test('fetches individually each invoice that is missing or invalid in the list', async () => {
    const backend = await start();
    answers.list = [
      listed('new', {}),
      invoice({ id: 'strange', paymentMethods: 'none' }),
      invoice({ id: 'before2-4' }),
      listed('renamed', { metadata: { orderId: 'other' } }),
    ];
    answers['payment-methods'] = [method({ payments: [paid()] })];
    const ids = ['strange', 'before2-4', 'renamed', 'archived'];
    const looked = await backend.fetchPayments(referring('new', ...ids));
    expect(looked.map(({ reference }) => reference)).toEqual(referring(...ids));
    expect(asked).toHaveLength(1 + ids.length);
  });

  test.each([
    ['only in invoices with activity', 'PaidPartial', ['settled', 'undone']],
    ['in invoices with activity and then in the others', 'None', ['settled', 'new', 'undone']],
  ])('searches for a recorded payment that the list omits, %s', async (_, status, looked) => {
    const backend = await start();
    const other = paid({ id: 'other' });
    answers.list = [
      listed('undone', { additionalStatus: status }),
      listed('settled', { status: 'Settled' }, [other]),
      listed('new', {}),
    ];
    answers['settled/payment-methods'] = [method({ payments: [other] })];
    answers['undone/payment-methods'] = [method({ payments: [paid({ status: 'Invalid' })] })];
    answers['new/payment-methods'] = [method()];
    const references = referring('settled', 'new', 'undone');
    const all = await backend.fetchPayments(references, [found().id, 'BTC:other']);
    expect(all).toContainEqual(found({ reference: references[2], confirmations: 'lost' }));
    expect(all).toHaveLength(2);
    const singly = asked.slice(1).map(({ line }) => line.split('/').at(-2));
    expect(singly).toEqual(looked);
  });

  test('returns only recorded payments when it searches for payments that the list omits', async () => {
    const backend = await start();
    answers.list = [listed(ID, { additionalStatus: 'PaidPartial' })];
    const [lost, other] = [paid({ status: 'Invalid' }), paid({ id: 'other', status: 'Invalid' })];
    answers['payment-methods'] = [method({ payments: [lost, other, paid({ id: 'new' })] })];
    expect(await backend.fetchPayments([REFERENCE], [found().id])).toEqual([found({ confirmations: 'lost' })]);
  });

  test.each<[string, Json]>([
    ['a payment by another method', [method({ paymentMethodId: 'LTC-CHAIN', payments: [paid()] })]],
    ['a payment by two methods', [method(), method({ paymentMethodId: 'BTC-LN', payments: [paid()] })]],
    ['a payment of another coin', [method({ currency: 'LTC', payments: [paid()] })]],
    ['a duplicate payment', [method({ payments: [paid(), paid()] })]],
    ['a payment without an id', [method({ payments: [paid({ id: undefined })] })]],
    ['a payment with an invalid id', [method({ payments: [paid({ id: 'a b\n' })] })]],
    ['a negative amount', [method({ payments: [paid({ value: '-0.00012' })] })]],
    ['an amount with an exponent', [method({ payments: [paid({ value: '1.2e5' })] })]],
    ['an amount as a number', [method({ payments: [paid({ value: 0.00012 })] })]],
    ['an amount with too many digits', [method({ payments: [paid({ value: '9'.repeat(400) })] })]],
    ['an amount with too many decimals', [method({ payments: [paid({ value: '0.000000000001' })] })]],
    ['a payment without an amount', [method({ payments: [paid({ value: null })] })]],
    ['a payment with an unknown status', [method({ payments: [paid({ status: 'constructor' })] })]],
    ['a payment with an invalid time', [method({ payments: [paid({ receivedDate: 'today' })] })]],
    ['a payment with an implausible time', [method({ payments: [paid({ receivedDate: 1e15 })] })]],
    ['a payment that is a string', [method({ payments: ['paid'] })]],
    ['payments that are not a list', [method({ payments: { 0: paid() } })]],
    ['null', 'null'],
    ['an HTML page', '<html>'],
  ])('fails for %s', async (_, answer) => {
    const backend = await start();
    answers['payment-methods'] = answer;
    await expect(backend.fetchPayments([REFERENCE])).rejects.toMatchObject({
      code: 'upstream_error',
      name: 'UpstreamError',
    });
  });

  test('fails for a coin that is missing from payments.json', async () => {
    const backend = await start();
    await expect(backend.fetchPayments([`${ORDER}/DOGE-CHAIN/${ID}`])).rejects.toMatchObject({ name: 'UpstreamError' });
  });

  test.each(['nothing', '../BTC-CHAIN/x', `${REFERENCE}/more`, `${ORDER}/BTC-CHAIN/a%2f`])(
    'fails without a request for the invalid reference %p',
    async (reference) => {
      const backend = await start();
      await expect(backend.fetchPayments([reference])).rejects.toMatchObject({ name: 'UpstreamError' });
      expect(asked).toEqual([]);
    },
  );
});

describe('a failing BTCPay Server', () => {
  const calls = [
    (each: BtcPayBackend) => each.createPayment(asking()),
    (each: BtcPayBackend) => each.fetchPayments([REFERENCE]),
  ];

  test.each<[number, string, boolean]>([
    ...[400, 422, 429, 500, 503].map((status): [number, string, boolean] => [status, 'upstream_error', false]),
    [401, 'upstream_unavailable', true],
    [403, 'upstream_unavailable', true],
  ])('with status %i results in %s', async (status, code, isCredentialRejected) => {
    const backend = await start(status);
    for (const call of calls) await expect(call(backend)).rejects.toMatchObject({ code, status, isCredentialRejected });
  });

  test('results in errors without the API key', async () => {
    const failures: unknown[] = [];
    for (const backend of [await start(401), connect('http://127.0.0.1:1')])
      for (const call of calls) await call(backend).catch((error) => failures.push(error));
    expect(failures).toHaveLength(4);
    for (const error of failures as Error[])
      expect(`${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain(KEY);
  });

  test('results in upstream_unavailable if it is unreachable', async () => {
    for (const call of calls)
      await expect(call(connect('http://127.0.0.1:1'))).rejects.toMatchObject({ code: 'upstream_unavailable' });
  });
});

describe('a BTCPay webhook', () => {
  const event = (more: object = {}) =>
    Buffer.from(
      JSON.stringify(
        { type: 'InvoiceSettled', storeId: 'store', invoiceId: ID, metadata: invoice().metadata, ...more },
        undefined,
        2,
      ),
    );
  const signed = (body: Buffer, secret = SECRET) => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  const notified = (body: Buffer, signature: string | readonly string[] | undefined = signed(body)) =>
    connect('http://127.0.0.1:1').parseWebhook({ headers: { 'btcpay-sig': signature }, body });

  /** The signature was computed with `openssl dgst -sha256 -hmac planted-secret-77ab` over the bytes of the body. */
  test('with a signature that OpenSSL has computed names its invoice', () => {
    const body = Buffer.from(DOCUMENTED.body);
    expect(notified(body, DOCUMENTED.signature)).toEqual([REFERENCE]);
  });

  test('is rejected if any bit of its body or signature is flipped', () => {
    const body = event();
    const signature = Buffer.from(signed(body));
    for (let bit = 0; bit < body.length * 8; bit++)
      expect(notified(turned(body, bit), signature.toString())).toBeUndefined();
    for (let bit = 0; bit < signature.length * 8; bit++)
      expect(notified(body, turned(signature, bit).toString('latin1'))).toBeUndefined();
  });

  test.each<[string, string | readonly string[] | undefined]>([
    ['no signature', undefined],
    ['an empty signature', ''],
    ['an incomplete signature', signed(event()).slice(0, 40)],
    ['two signatures', `${signed(event())},${signed(event())}`],
    ['a signature in upper case', signed(event()).toUpperCase()],
    ['a signature without its algorithm', signed(event()).slice(7)],
    ['a list of signatures', [signed(event())]],
    ['the signature of another secret', signed(event(), 'other')],
    ['the signature of an empty secret', signed(event(), '')],
  ])('is rejected with %s', (_, signature) => {
    const headers = signature === undefined ? {} : { 'btcpay-sig': signature };
    expect(connect('http://127.0.0.1:1').parseWebhook({ headers, body: event() })).toBeUndefined();
  });

  test.each(['', 'null', '[', '"text"'])('is rejected with the signed body %p', (said) => {
    expect(notified(Buffer.from(said))).toBeUndefined();
  });

  test.each([
    ['another store', event({ storeId: 'other' })],
    ['metadata of another application', event({ metadata: { orderId: 'pos-1' } })],
    ['no invoice', event({ invoiceId: undefined })],
    ['no metadata', event({ metadata: null })],
    ['an id that is another path', event({ invoiceId: '../x' })],
  ])('with %s names no invoice', (_, body) => {
    expect(notified(body)).toEqual([]);
  });

  test('is rejected if no secret is configured', () => {
    const backend = new BtcPayBackend(
      { btcpayUrl: 'http://127.0.0.1:1', btcpayStoreId: 'store', btcpayApiKey: KEY, btcpayWebhookSecret: undefined },
      coins as readonly CoinTerms[],
    );
    opened.defer(() => backend.close());
    const body = event();
    expect(backend.parseWebhook({ headers: { 'btcpay-sig': signed(body, '') }, body })).toBeUndefined();
  });
});

function turned(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[bit >> 3] = (copy[bit >> 3] as number) ^ (1 << (bit & 7));
  return copy;
}

/** A webhook delivery in the format of BTCPay. */
const DOCUMENTED = {
  body: `{
  "manuallyMarked": false,
  "overPaid": false,
  "deliveryId": "7H7JGiwRXPjQRcVJcqFuiq",
  "webhookId": "Mm9sG8NQzJhWvmoYLgjfFS",
  "originalDeliveryId": "7H7JGiwRXPjQRcVJcqFuiq",
  "isRedelivery": false,
  "type": "InvoiceSettled",
  "timestamp": 1795176000,
  "storeId": "store",
  "invoiceId": "Inv0ice",
  "metadata": {
    "orderId": "T0pUp",
    "paymentMethod": "BTC-CHAIN"
  }
}`,
  signature: 'sha256=c0676fa25e9c1949920bc94396778748354967f73387a6c794ff6c8263ea6d02',
};
