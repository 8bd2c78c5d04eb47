import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { decode } from 'light-bolt11-decoder';
import pg from 'pg';
import { type TestAccount, TestWorld } from '#testing';

const LIGHTNING = '/topup/create/btc-lightning';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
  account = await world.createAccount();
});
afterAll(() => world.close());

const create = (body: unknown, route = LIGHTNING) => world.post(route, body, account);

function read(invoice: string): Record<string, unknown> {
  return Object.fromEntries(
    decode(invoice).sections.map((section) => [section.name, 'value' in section ? section.value : undefined]),
  );
}

/**
 * The gateway and the node each record the time in seconds, so a call that crosses into the next second is repeated.
 */
async function withinOneSecond<T>(create: () => Promise<T>): Promise<{ readonly before: number; readonly created: T }> {
  const now = () => Math.floor(Date.now() / 1000);
  for (;;) {
    const before = now();
    const created = await create();
    if (now() === before) return { before, created };
  }
}

describe('a Lightning top-up', () => {
  test('has a valid BOLT 11 invoice, and every field that clients expect', async () => {
    const { before, created } = await withinOneSecond(() => create({ amount: 25, currency: 'USD' }));
    const { status, body } = created;
    expect(status).toBe(201);
    expect(body).toEqual({
      invoice_id: expect.stringMatching(/^[A-Za-z0-9]{22}$/),
      amount: 25,
      currency: 'USD',
      created_at: expect.any(Number),
      expires_at: body.created_at + 900,
      checkout_url: `${world.api}/topup/checkout/${body.invoice_id}`,
      lightning_invoice: expect.stringMatching(/^lnbcrt/),
      payment_request: body.lightning_invoice,
      crypto_amount_due: 0.00025,
    });
    expect(body.created_at).toBeGreaterThanOrEqual(before);
    expect(Number.isInteger(body.created_at)).toBe(true);
    expect(read(body.lightning_invoice)).toMatchObject({
      amount: '25000000',
      timestamp: body.created_at,
      expiry: 900,
      payment_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  test('starts as New, with nothing paid', async () => {
    const { body } = await create({ amount: 1000, currency: 'SATS' });
    const { invoice_id, amount, currency, created_at, expires_at, lightning_invoice } = body;
    expect((await world.get(`/topup/status/${invoice_id}`)).body).toEqual({
      invoice_id,
      amount,
      currency,
      created_at,
      expires_at,
      lightning_invoice,
      status: 'New',
      payment_method: 'Bitcoin Lightning',
      amount_paid: 0,
      amount_due: 0.00001,
    });
    expect((await world.get(body.checkout_url.slice(world.api.length))).status).toBe(200);
  });

  // At 100,000 USD for one bitcoin a satoshi is a tenth of a cent.
  test.each([
    ['USD', 0.1, '100000', '0.000001'],
    ['USD', 1000, '1000000000', '0.01'],
    ['USD', 0.1001, '101000', '0.00000101'],
    ['USD', 1.23, '1230000', '0.0000123'],
    ['SATS', 100, '100000', '0.000001'],
    ['SATS', 1_000_000, '1000000000', '0.01'],
    ['BTC', 0.000001, '100000', '0.000001'],
    ['BTC', 0.01, '1000000000', '0.01'],
    ['BTC', 0.00000123, '123000', '0.00000123'],
    ['sats', 100, '100000', '0.000001'],
  ])('of %s %d requests %s msat, and returns the amount as it was sent', async (currency, amount, msat, coins) => {
    const { status, body, text } = await create({ amount, currency });
    expect(status).toBe(201);
    expect([body.amount, body.currency]).toEqual([amount, currency.toUpperCase()]);
    expect(read(body.lightning_invoice).amount).toBe(msat);
    expect(text).toContain(`"crypto_amount_due":${coins}}`);
    expect(text).not.toMatch(/":-?\d+(\.\d+)?e/i);
  });

  test.each([
    ['USD', 0.09],
    ['USD', 1000.01],
    ['USD', 0],
    ['USD', -5],
    ['SATS', 99],
    ['SATS', 1_000_001],
    ['SATS', 100.5],
    ['BTC', 0.00000099],
    ['BTC', 0.01000001],
    ['BTC', 0.000001001],
    ['USD', '5'],
    ['USD', null],
    ['USD', undefined],
    ['USD', [5]],
    ['USD', 1e300],
  ])('of %s %p is rejected with the name of the field', async (currency, amount) => {
    const { status, body } = await create({ amount, currency });
    expect([status, body.error.param, body.error.type]).toEqual([400, 'amount', 'invalid_request_error']);
  });

  test.each(['EUR', 'LTC', '', 'constructor', null, undefined, 5, ['USD']])(
    'in %p is rejected with the name of the field',
    async (currency) => {
      const { status, body } = await create({ amount: 5, currency });
      expect([status, body.error.param]).toEqual([400, 'currency']);
    },
  );

  test.each(['cash', 'card', 'BTC-LIGHTNING', 'constructor'])('is not available by the method %s', async (method) => {
    expect((await create({ amount: 25, currency: 'USD' }, `/topup/create/${method}`)).status).toBe(404);
  });

  test('appends no event if it is rejected', async () => {
    const before = await world.listEvents();
    await create({ amount: 5000, currency: 'USD' });
    await world.send('POST', LIGHTNING, { body: { amount: 5, currency: 'USD' } });
    expect(await world.listEvents()).toEqual(before);
  });

  test('appends an InvoiceIssued event with the rate and its sources', async () => {
    const { body } = await create({ amount: 5, currency: 'USD' });
    const issued = (await world.listEvents()).at(-1);
    expect(issued?.stream).toBe(`topup-${body.invoice_id}`);
    expect(issued).toMatchObject({
      type: 'InvoiceIssued',
      data: {
        accountId: world.getAccountId(account),
        method: 'btc-lightning',
        requested: { amount: '5', currency: 'USD' },
        usd: '5000000000000',
        coin: 'BTC',
        units: '5000000',
        rate: { value: '100000', source: 'kraken, coinbase, coingecko', at: expect.any(String) },
        backend: 'lnd',
        reference: read(body.lightning_invoice).payment_hash,
        destination: { kind: 'bolt11', value: body.lightning_invoice },
        bonusPercent: 5,
        expiresAt: new Date(body.expires_at * 1000).toISOString(),
      },
    });
  });

  test.each<[string, number, () => { headers?: Record<string, string>; body?: object }]>([
    ['a bearer key', 201, () => ({ headers: { authorization: `Bearer ${account.apiKey}` } })],
    ['an api-key header', 201, () => ({ headers: { 'api-key': account.apiKey } })],
    ['an x-credit-id header', 201, () => ({ headers: { 'x-credit-id': account.creditId } })],
    ['a credit_id in the body', 201, () => ({ body: { credit_id: account.creditId } })],
    ['a key and unknown fields', 201, () => ({ headers: { 'api-key': account.apiKey }, body: { memo: 1 } })],
    [
      'a key and the credit_id of its account',
      201,
      () => ({ headers: { 'api-key': account.apiKey }, body: { credit_id: account.creditId } }),
    ],
    [
      'a key and another credit_id',
      400,
      () => ({ headers: { 'api-key': account.apiKey }, body: { credit_id: crypto.randomUUID() } }),
    ],
    [
      'a key and another x-credit-id header',
      400,
      () => ({ headers: { 'api-key': account.apiKey, 'x-credit-id': crypto.randomUUID() } }),
    ],
    ['nothing', 401, () => ({})],
    ['an unknown key', 401, () => ({ headers: { 'api-key': 'sk-x' } })],
    ['an unknown credit id', 401, () => ({ headers: { 'x-credit-id': crypto.randomUUID() } })],
    ['an unknown credit id in the body', 401, () => ({ body: { credit_id: crypto.randomUUID() } })],
  ])('requested with %s gets %i', async (_, status, sent) => {
    const { headers = {}, body } = sent();
    const answer = await world.send('POST', LIGHTNING, { headers, body: { amount: 1, currency: 'USD', ...body } });
    expect(answer.status).toBe(status);
  });
});

describe('the status of a top-up', () => {
  test.each(['AAAAAAAAAAAAAAAAAAAAAA', 'x', '%F0%9F%8E%89', "'%20or%201=1"])(
    'that does not exist (%s) is not found',
    async (id) => {
      const { status, body } = await world.get(`/topup/status/${id}`);
      expect([status, body.message]).toEqual([404, 'Invoice not found']);
    },
  );

  test('contains neither the credit id nor a key of the account', async () => {
    const { invoice_id } = (await create({ amount: 1, currency: 'USD' })).body;
    const { text } = await world.get(`/topup/status/${invoice_id}`);
    expect(text).not.toContain(account.creditId);
    expect(text).not.toContain('sk-');
  });

  test('is Expired after its expiry', async () => {
    const id = 'ExpiredExpiredExpired1';
    const { body } = await create({ amount: 1, currency: 'USD' });
    const issued = (await world.listEvents()).findLast(({ type }) => type === 'InvoiceIssued')?.data ?? {};
    const long = {
      expiresAt: '2020-01-01T00:15:00.000Z',
      at: '2020-01-01T00:00:00.000Z',
      reference: '00'.repeat(32),
    };
    const fact = { id: crypto.randomUUID(), type: 'InvoiceIssued', data: { ...issued, ...long }, metadata: {} };
    await world.foundation.store.append(`topup-${id}`, -1, [fact]);
    await world.waitUntil(async () => (await world.get(`/topup/status/${id}`)).status === 200);
    expect((await world.get(`/topup/status/${id}`)).body).toMatchObject({ status: 'Expired', expires_at: 1577837700 });
    expect((await world.get(`/topup/status/${body.invoice_id}`)).body.status).toBe('New');
  });
});

describe('while the projector is paused, a top-up', () => {
  let lock: pg.Client;
  /** This connection locks the checkpoints, so that no read model advances. */
  const stand = () => lock.query('begin; lock table books.checkpoints in exclusive mode');
  const goOn = () => lock.query('rollback');
  const status = async (id: string) => {
    const { status, body, headers } = await world.get(`/topup/status/${id}`);
    return [status, body.status, headers.get('x-books-behind')];
  };
  beforeAll(async () => {
    lock = new pg.Client({ connectionString: world.databaseUrl });
    await lock.connect();
  });
  afterAll(() => lock.end());

  test('is created, shown and credited', async () => {
    await stand();
    try {
      const { status: created, body } = await create({ amount: 1, currency: 'USD' });
      expect([created, read(body.lightning_invoice).amount]).toEqual([201, '1000000']);
      expect(await status(body.invoice_id)).toEqual([200, 'New', null]);
      expect((await status('AAAAAAAAAAAAAAAAAAAAAA'))[0]).toBe(404);
      await world.payInvoice(body.lightning_invoice);
      await world.waitUntil(async () => (await status(body.invoice_id))[1] === 'Settled');
    } finally {
      await goOn();
    }
  });
});

// At 100,000 USD for one bitcoin, 100 for one litecoin and 200 for one Monero.
const COIN_LIMITS = [
  ['btc', 'BTC', 0.0001, 0.1],
  ['ltc', 'LTC', 0.02, 10],
  ['lbtc', 'LBTC', 0.00002, 0.1],
  ['xmr', 'XMR', 0.025, 50],
] as const;

describe('a top-up in coins', () => {
  test.each(COIN_LIMITS)('by %s has the limits in USD at the rate of %s', async (method, currency, min, max) => {
    const route = `/topup/create/${method}`;
    for (const amount of [min, max]) expect((await create({ amount, currency }, route)).status).toBe(201);
    for (const amount of [min - 1e-8, max + 1e-8]) {
      const { status, body } = await create({ amount: Number(amount.toFixed(8)), currency }, route);
      expect([status, body.error.param]).toEqual([400, 'amount']);
      expect(body.message).toMatch(
        /^amount must be from \S+ to \S+ [A-Z]+ \([.\d]+ to [.\d]+ USD at the current exchange rate\)$/,
      );
    }
  });
});

describe('the payment methods', () => {
  test('are public, with their currencies and limits', async () => {
    const { status, headers, body } = await world.get('/topup/payment-methods');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    const lightning = {
      method: 'btc-lightning',
      display_name: 'Bitcoin Lightning',
      supported_currencies: ['USD', 'BTC', 'SATS'],
      limits: { USD: { min: 0.1, max: 1000 }, BTC: { min: 0.000001, max: 0.01 }, SATS: { min: 100, max: 1_000_000 } },
      expiration_minutes: 15,
      bonus: '5% Lightning fee bonus',
      min_usd: 0.1,
      max_usd: 1000,
      currencies: ['USD', 'BTC', 'SATS'],
    };
    const { supported_methods: methods } = body;
    expect(body).toEqual({ status: 'success', success: true, supported_methods: methods, data: methods });
    expect(methods[0]).toEqual(lightning);
    for (const each of methods) expect(Object.keys(each)).toEqual(Object.keys(lightning));
    for (const [name, currency, min, max] of COIN_LIMITS) {
      const { limits } = methods.find(({ method }: { method: string }) => method === name);
      expect(limits[currency]).toEqual({ min, max });
    }
  });
});
