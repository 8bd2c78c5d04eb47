import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ClnBackend } from '#connectors';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';
import { respondWithJson, StubServer } from '../../../../testing/src/servers/stub-server.ts';

const HASH = 'fb'.repeat(32);
const RUNE = 'hush-rune=';

let opened: AsyncDisposableStack;
beforeEach(() => {
  opened = new AsyncDisposableStack();
});
afterEach(() => opened.disposeAsync());

function connect(url: string, rune = RUNE): ClnBackend {
  const node = new ClnBackend({ clnUrl: url, clnRune: rune, clnCertificates: undefined });
  opened.defer(() => node.close());
  return node;
}

const request = (node: ClnBackend, topupId = 'topup') =>
  node.createPayment({
    topupId,
    coin: { code: 'BTC', name: 'Bitcoin', decimals: 11, step: 1000, currencies: {} },
    kind: 'bolt11',
    units: 1_500_000n,
    memo: 'Päivää ☕',
    expirySeconds: 900,
    confirmations: 0,
  });

/** A paid invoice in the format of Core Lightning. */
const paid = (more: object = {}) => ({
  label: 'topup',
  bolt11: 'lnbcrt1',
  payment_hash: HASH,
  amount_msat: 1_500_000,
  status: 'paid',
  pay_index: 3,
  amount_received_msat: 1_500_000,
  paid_at: 1_795_176_000,
  payment_preimage: '00'.repeat(32),
  ...more,
});

describe('a Core Lightning node', () => {
  async function start() {
    const sandbox = await startSandbox({ port: 0 });
    opened.defer(() => sandbox.close());
    const pay = async (invoice: string, more: object = {}) => {
      const body = JSON.stringify({ invoice, ...more });
      return (await fetch(`${sandbox.url}/wallet/pay`, { method: 'POST', body })).status;
    };
    return { url: `${sandbox.url}/cln`, node: connect(`${sandbox.url}/cln`), pay };
  }

  test('creates only one invoice for each top-up, even if the request is repeated', async () => {
    const { node } = await start();
    const [first, again, other] = [await request(node), await request(node), await request(node, 'other')];
    expect(again).toEqual(first);
    expect(other.reference).not.toBe(first.reference);
  });

  test('reports the amount that was actually paid', async () => {
    const { node, pay } = await start();
    const { reference, destination } = await request(node);
    expect(await node.fetchPayments([reference])).toEqual([]);
    await pay(destination.value, { amount_msat: '2000000' });
    const payment = { reference, id: reference, units: 2_000_000n, confirmations: 'final' };
    expect(await node.fetchPayments([reference])).toMatchObject([payment]);
  });

  test('reports a new payment to a subscriber, after eleven earlier payments', async () => {
    const { url, node, pay } = await start();
    const before = await Promise.all(Array.from({ length: 11 }, (_, i) => request(node, `before${i}`)));
    for (const { destination } of before) await pay(destination.value);
    const stop = new AbortController();
    const hints = connect(url).subscribe(stop.signal);
    let hint: string | undefined;
    const hinted = hints.next().then(({ value }) => {
      hint = value;
    });
    const after: string[] = [];
    while (hint === undefined) {
      const made = await request(node, `after${after.length}`);
      after.push(made.reference);
      await pay(made.destination.value);
    }
    await hinted;
    expect(after).toContain(hint);
    stop.abort();
    const toTheEnd = async () => {
      for await (const _ of hints);
    };
    await expect(toTheEnd()).rejects.toThrow();
  });
});

describe('a Core Lightning node with prepared responses', () => {
  let server: StubServer;
  async function start(answer: unknown, status = 201): Promise<ClnBackend> {
    const own = new StubServer();
    server = own;
    opened.defer(() => own.close());
    server.handler = respondWithJson(answer, status);
    return connect(await server.listen());
  }

  test('receives the parameters of the command and the rune', async () => {
    const node = await start({ payment_hash: HASH, bolt11: 'lnbcrt1' });
    await request(node);
    const [{ line, headers, body }] = server.requests as unknown as [
      { line: string; headers: { rune: string }; body: string },
    ];
    expect([line, headers.rune]).toEqual(['POST /v1/invoice', RUNE]);
    const asked = { amount_msat: '1500000msat', label: 'topup', description: 'Päivää ☕', expiry: 900 };
    expect(JSON.parse(body)).toEqual(asked);
  });

  test.each([{}, { payment_hash: HASH }, { payment_hash: 'fb', bolt11: 'lnbcrt1' }, { bolt11: 'lnbcrt1' }])(
    'fails to create a payment with the response %j',
    async (made) => {
      await expect(request(await start(made))).rejects.toMatchObject({ code: 'upstream_error' });
    },
  );

  test.each(['unpaid', 'expired', undefined])('has no payment for an invoice with status %p', async (status) => {
    expect(await (await start({ invoices: [paid({ status })] })).fetchPayments([HASH])).toEqual([]);
  });

  test('has no payment for an unknown invoice', async () => {
    expect(await (await start({ invoices: [] })).fetchPayments([HASH])).toEqual([]);
  });

  test('fails for an unpaid invoice with another hash, because the requested one may be paid', async () => {
    const node = await start({ invoices: [paid({ status: 'unpaid', payment_hash: '00'.repeat(32) })] });
    await expect(node.fetchPayments([HASH])).rejects.toMatchObject({ code: 'upstream_error' });
  });

  test.each([
    ['of another invoice', { payment_hash: '00'.repeat(32) }],
    ['without an invoice', { payment_hash: undefined }],
    ['without an amount', { amount_received_msat: undefined }],
    ['with an amount as a string', { amount_received_msat: '1500000msat' }],
    ['with a negative amount', { amount_received_msat: -1 }],
    ['without a time', { paid_at: undefined }],
  ])('fails for a payment %s', async (_, more) => {
    const node = await start({ invoices: [paid(more)] });
    await expect(node.fetchPayments([HASH])).rejects.toMatchObject({ code: 'upstream_error' });
  });

  test('fails the subscription if its payment index does not increase', async () => {
    const node = await start(paid({ pay_index: 0 }));
    const hints = node.subscribe(new AbortController().signal)[Symbol.asyncIterator]();
    await expect(hints.next()).rejects.toMatchObject({ code: 'upstream_error' });
  });

  test('ends the subscription if no invoice is paid in time', async () => {
    const node = await start({ code: 904, message: 'Timed out' }, 500);
    const hints = node.subscribe(new AbortController().signal)[Symbol.asyncIterator]();
    expect(await hints.next()).toEqual({ done: true, value: undefined });
  });
});
