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

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
type Json = any;

let opened: AsyncDisposableStack;
let asked: { readonly line: string; readonly key: string | undefined; readonly body: Json }[];
/** What the server answers, by the end of what it is asked for. */
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

/** A server that answers as `answers` says at the time. */
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

describe('a request', () => {
  test('is an invoice of exactly that amount of the coin, by one method', async () => {
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
    [10, 'XMR', 'LowSpeed'], // its plug-in has a threshold of its own
  ])('with %d confirmations of %s is settled at %s', async (confirmations, code, policy) => {
    const coin = getCoin({ coins }, code);
    const backend = await start();
    await backend.createPayment(asking({ coin, confirmations })).catch(() => {});
    expect(asked[0]?.body.checkout.speedPolicy).toBe(policy);
  });

  test.each<[string, Record<string, Json>]>([
    ['of another amount', { invoices: invoice({ amount: '0.00011999' }) }],
    ['in another currency', { invoices: invoice({ currency: 'USD' }) }],
    ['of another order', { invoices: invoice({ metadata: { orderId: 'other' } }) }],
    ['for any amount', { invoices: invoice({ type: 'TopUp' }) }],
    [
      'that is settled too soon',
      { invoices: invoice({ checkout: { ...invoice().checkout, speedPolicy: 'HighSpeed' } }) },
    ],
    ['that tolerates less', { invoices: invoice({ checkout: { ...invoice().checkout, paymentTolerance: 5 } }) }],
    ['with an id that leads elsewhere', { invoices: invoice({ id: '../../server' }) }],
    ['without an id', { invoices: invoice({ id: undefined }) }],
    ['with a second method', { 'payment-methods': [method(), method({ paymentMethodId: 'BTC-LN' })] }],
    ['with another method', { 'payment-methods': [method({ paymentMethodId: 'LTC-CHAIN' })] }],
    ['with no method', { 'payment-methods': [] }],
    ['with a fee on top', { 'payment-methods': [method({ amount: '0.00012100' })] }],
    ['of another coin', { 'payment-methods': [method({ currency: 'LTC' })] }],
    ['that is not active', { 'payment-methods': [method({ activated: false, destination: '' })] }],
    ['to a Lightning invoice', { 'payment-methods': [method({ destination: `lnbcrt1${'q'.repeat(200)}` })] }],
    ['to a page', { 'payment-methods': [method({ destination: 'https://pay.example/i/1' })] }],
    ['to nothing', { 'payment-methods': [method({ destination: null })] }],
    ['that is a text', { invoices: '"yes"' }],
    ['that is half an answer', { invoices: JSON.stringify(invoice()).slice(0, 40) }],
  ])('is not believed to have made an invoice %s', async (_, lies) => {
    const backend = await start();
    answers = { ...answers, ...lies };
    await expect(backend.createPayment(asking())).rejects.toMatchObject({
      code: 'upstream_error',
      name: 'UpstreamError',
    });
  });
});

describe('a look', () => {
  test.each([
    ['Settled', 'final'],
    ['Processing', 0],
    ['Invalid', 'lost'],
  ])('finds a payment that is %s to be %p', async (status, confirmations) => {
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
  ])('reads %s BTC exactly', async (value, units) => {
    const backend = await start();
    answers['payment-methods'] = [method({ payments: [paid({ value })] })];
    expect(await backend.fetchPayments([REFERENCE])).toEqual([found({ units })]);
  });

  test('finds nothing for an invoice that is not there, and nothing in an output without value', async () => {
    const backend = await start();
    answers['payment-methods'] = [method({ payments: [paid({ value: '0.00000000' })] })];
    expect(await backend.fetchPayments([REFERENCE])).toEqual([]);
    delete answers['payment-methods'];
    expect(await backend.fetchPayments([REFERENCE])).toEqual([]);
  });

  const listed = (id: string, more: object, payments: readonly object[] = []) =>
    invoice({ id, paymentMethods: [method({ payments })], ...more });
  const referring = (...ids: string[]) => ids.map((id) => `${ORDER}/BTC-CHAIN/${id}`);

  test('after many asks once for all', async () => {
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

  test('looks again at each that the list does not have, or not as it must be', async () => {
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
    ['with which something has happened', 'PaidPartial', ['settled', 'undone']],
    ['of which nothing is said, last of all', 'None', ['settled', 'new', 'undone']],
  ])('looks for a payment that was received and is not in the list in those %s', async (_, status, looked) => {
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

  test('takes from such a look what was received before, and nothing that is new', async () => {
    const backend = await start();
    answers.list = [listed(ID, { additionalStatus: 'PaidPartial' })];
    const [lost, other] = [paid({ status: 'Invalid' }), paid({ id: 'other', status: 'Invalid' })];
    answers['payment-methods'] = [method({ payments: [lost, other, paid({ id: 'new' })] })];
    expect(await backend.fetchPayments([REFERENCE], [found().id])).toEqual([found({ confirmations: 'lost' })]);
  });

  test.each<[string, Json]>([
    ['of another method', [method({ paymentMethodId: 'LTC-CHAIN', payments: [paid()] })]],
    ['of two methods', [method(), method({ paymentMethodId: 'BTC-LN', payments: [paid()] })]],
    ['of another coin', [method({ currency: 'LTC', payments: [paid()] })]],
    ['that is there twice', [method({ payments: [paid(), paid()] })]],
    ['without an id', [method({ payments: [paid({ id: undefined })] })]],
    ['with an id that is no word', [method({ payments: [paid({ id: 'a b\n' })] })]],
    ['of a negative amount', [method({ payments: [paid({ value: '-0.00012' })] })]],
    ['in exponent form', [method({ payments: [paid({ value: '1.2e5' })] })]],
    ['of a number', [method({ payments: [paid({ value: 0.00012 })] })]],
    ['of absurd digits', [method({ payments: [paid({ value: '9'.repeat(400) })] })]],
    ['finer than the coin', [method({ payments: [paid({ value: '0.000000000001' })] })]],
    ['of no amount', [method({ payments: [paid({ value: null })] })]],
    ['of a status that there is not', [method({ payments: [paid({ status: 'constructor' })] })]],
    ['at no time', [method({ payments: [paid({ receivedDate: 'today' })] })]],
    ['at the end of time', [method({ payments: [paid({ receivedDate: 1e15 })] })]],
    ['that is a text', [method({ payments: ['paid'] })]],
    ['in no list', [method({ payments: { 0: paid() } })]],
    ['of nothing', 'null'],
    ['in a page', '<html>'],
  ])('believes no payment %s', async (_, answer) => {
    const backend = await start();
    answers['payment-methods'] = answer;
    await expect(backend.fetchPayments([REFERENCE])).rejects.toMatchObject({
      code: 'upstream_error',
      name: 'UpstreamError',
    });
  });

  test('for a coin that was taken out of the data fails', async () => {
    const backend = await start();
    await expect(backend.fetchPayments([`${ORDER}/DOGE-CHAIN/${ID}`])).rejects.toMatchObject({ name: 'UpstreamError' });
  });

  test.each(['nothing', '../BTC-CHAIN/x', `${REFERENCE}/more`, `${ORDER}/BTC-CHAIN/a%2f`])(
    'for the reference %p, which is none, asks for nothing',
    async (reference) => {
      const backend = await start();
      await expect(backend.fetchPayments([reference])).rejects.toMatchObject({ name: 'UpstreamError' });
      expect(asked).toEqual([]);
    },
  );
});

describe('a server that fails', () => {
  const calls = [
    (each: BtcPayBackend) => each.createPayment(asking()),
    (each: BtcPayBackend) => each.fetchPayments([REFERENCE]),
  ];

  test.each([400, 401, 403, 422, 429, 500, 503])('with status %i is an error of the upstream', async (status) => {
    const backend = await start(status);
    for (const call of calls) await expect(call(backend)).rejects.toMatchObject({ code: 'upstream_error', status });
  });

  test('does not learn anybody its key: no error has it', async () => {
    const failures: unknown[] = [];
    for (const backend of [await start(401), connect('http://127.0.0.1:1')])
      for (const call of calls) await call(backend).catch((error) => failures.push(error));
    expect(failures).toHaveLength(4);
    for (const error of failures as Error[])
      expect(`${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain(KEY);
  });

  test('by not being there is unavailable', async () => {
    for (const call of calls)
      await expect(call(connect('http://127.0.0.1:1'))).rejects.toMatchObject({ code: 'upstream_unavailable' });
  });
});

describe('a web hook', () => {
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

  /** Computed with `openssl dgst -sha256 -hmac planted-secret-77ab` over the bytes of the body. */
  test('as BTCPay documents its signature names its invoice', () => {
    const body = Buffer.from(DOCUMENTED.body);
    expect(notified(body, DOCUMENTED.signature)).toEqual([REFERENCE]);
  });

  test('in which any bit was turned, in the body or in the signature, is refused', () => {
    const body = event();
    const signature = Buffer.from(signed(body));
    for (let bit = 0; bit < body.length * 8; bit++)
      expect(notified(turned(body, bit), signature.toString())).toBeUndefined();
    for (let bit = 0; bit < signature.length * 8; bit++)
      expect(notified(body, turned(signature, bit).toString('latin1'))).toBeUndefined();
  });

  test.each<[string, string | readonly string[] | undefined]>([
    ['no signature', undefined],
    ['an empty one', ''],
    ['half of one', signed(event()).slice(0, 40)],
    ['more than one', `${signed(event())},${signed(event())}`],
    ['one in capitals', signed(event()).toUpperCase()],
    ['one without its algorithm', signed(event()).slice(7)],
    ['a list of them', [signed(event())]],
    ['that of another secret', signed(event(), 'other')],
    ['that of no secret', signed(event(), '')],
  ])('with %s is refused', (_, signature) => {
    const headers = signature === undefined ? {} : { 'btcpay-sig': signature };
    expect(connect('http://127.0.0.1:1').parseWebhook({ headers, body: event() })).toBeUndefined();
  });

  test.each(['', 'null', '[', '"text"'])('that is signed and says %p is refused', (said) => {
    expect(notified(Buffer.from(said))).toBeUndefined();
  });

  test.each([
    ['another store', event({ storeId: 'other' })],
    ['an invoice that is not ours', event({ metadata: { orderId: 'pos-1' } })],
    ['no invoice', event({ invoiceId: undefined })],
    ['no metadata', event({ metadata: null })],
    ['an id that leads elsewhere', event({ invoiceId: '../x' })],
  ])('of %s names nothing', (_, body) => {
    expect(notified(body)).toEqual([]);
  });

  test('is not believed where no secret is set', () => {
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

/** A delivery in BTCPay's form. */
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
