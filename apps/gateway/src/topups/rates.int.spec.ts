import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
let account: TestAccount;
let database: pg.Client;
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
  database = new pg.Client({ connectionString: world.databaseUrl });
  await database.connect();
  account = await world.createAccount();
});
beforeEach(() => setRates({ btc_usd: '100000', ltc_usd: '100', xmr_usd: '200' }));
afterAll(async () => {
  await database.end();
  await world.close();
});

/** Sets the rates of the sources. All processes forget earlier quotes and rates. */
async function setRates(rates: object): Promise<void> {
  await changeRates(rates);
  await database.query('delete from public.rate_quotes; delete from public.agreed_rates');
}

async function changeRates(rates: object): Promise<void> {
  expect((await world.send('PUT', '/rates', { api: world.sandbox, body: rates })).status).toBe(200);
}

const topUp = (currency = 'USD', amount = 1, method = 'btc-lightning', gateway = world.api) =>
  world.post(`/topup/create/${method}`, { amount, currency }, account, gateway);

test('credits a payment at the current rate if it settles over a minute after the expiry of its invoice', async () => {
  const { body: invoice } = await topUp();
  await setRates({ btc_usd: '50000' });
  await world.payInvoice(invoice.lightning_invoice, { late: true, settled_at: invoice.expires_at + 90 });
  await world.waitUntil(async () => (await world.get(`/topup/status/${invoice.invoice_id}`)).body.status === 'Settled');
  expect(await world.fetchBalance(account)).toBe('0.525');
  const received = (await world.listEvents()).findLast(({ type }) => type === 'PaymentReceived');
  expect(received).toMatchObject({
    data: {
      amount: '500000000000',
      bonus: '25000000000',
      rate: { value: '50000', source: 'kraken, coinbase, coingecko' },
    },
  });
});

describe('a top-up', () => {
  test('is quoted at the market rate', async () => {
    await setRates({ btc_usd: '64000' });
    expect((await topUp()).body.crypto_amount_due).toBe(0.00001563);
    await setRates({ btc_usd: '0.5' });
    expect((await topUp()).body.crypto_amount_due).toBe(2);
  });

  test('has the same rate on all gateways, of quotes that were fetched at most 10 s before', async () => {
    expect((await topUp()).body.crypto_amount_due).toBe(0.00001);
    await changeRates({ btc_usd: '85000' });
    const gateways = [world.api, await world.addGateway()];
    for (const gateway of gateways)
      expect((await topUp('USD', 85, 'btc-lightning', gateway)).body.crypto_amount_due).toBe(0.00085);
    // As after 10 s.
    await database.query(`update public.rate_quotes
      set fetched_at = fetched_at - 10000, quoted_at = quoted_at - 10000, next_fetch_at = next_fetch_at - 10000`);
    for (const gateway of gateways)
      expect((await topUp('USD', 85, 'btc-lightning', gateway)).body.crypto_amount_due).toBe(0.001);
    const { data } = (await world.listEvents()).findLast(({ type }) => type === 'InvoiceIssued') as {
      data: { at: string; rate: { at: string } };
    };
    expect(Date.parse(data.at) - Date.parse(data.rate.at)).toBeLessThan(10_000);
  });

  test('uses the middle of three rates, or the mean of two while the third deviates or is unavailable', async () => {
    await setRates({ kraken: '100000', coinbase: '101900', coingecko: '101000' });
    expect((await topUp('USD', 101)).body.crypto_amount_due).toBe(0.001);
    await setRates({ kraken: '1000000000' });
    expect((await topUp('USD', 101.45)).body.crypto_amount_due).toBe(0.001);
    await setRates({ kraken: null });
    expect((await topUp('USD', 101.45)).body.crypto_amount_due).toBe(0.001);
    const issued = (await world.listEvents()).findLast(({ type }) => type === 'InvoiceIssued');
    expect(issued).toMatchObject({ data: { rate: { value: '101450', source: 'coinbase, coingecko' } } });
  });

  const THREE = { kraken: '100000', coinbase: '50000', coingecko: '200000' };
  test.each([
    ['contradict each other', THREE, /: the sources of exchange rates contradict each other$/],
    ['are all offline', { kraken: null, coinbase: null, coingecko: null }, /: no source has a current rate$/],
    ['are offline except for one', { kraken: null, coinbase: null }, /: only one source has a current rate$/],
  ])('is rejected while the sources %s, in every currency, and no invoice is created', async (_, rates, message) => {
    await setRates(rates);
    const before = await world.listEvents();
    for (const [currency, amount] of [
      ['USD', 1],
      ['SATS', 1000],
      ['BTC', 0.00001],
    ] as const) {
      const { status, body, headers } = await topUp(currency, amount);
      expect([status, Number(headers.get('retry-after')) >= 1]).toEqual([503, true]);
      expect(body).toMatchObject({ status: 'error', statusCode: 503, message: expect.stringMatching(message) });
      expect(body.message).toMatch(/^No exchange rate is available at the moment/);
      expect(body.error).toMatchObject({ code: 'upstream_unavailable', type: 'upstream_unavailable' });
    }
    expect(await world.listEvents()).toEqual(before);
  });

  test('in Monero requires both of its sources', async () => {
    expect((await topUp('USD', 10, 'xmr')).body.crypto_amount_due).toBe(0.05);
    await setRates({ coingecko: { XMR: null } });
    expect((await topUp('USD', 10, 'xmr')).status).toBe(503);
    expect((await topUp()).status).toBe(201);
  });
});

test('requires at least two sources of exchange rates if a coin is accepted', async () => {
  const one = { krakenUrl: undefined, coinbaseUrl: undefined };
  await expect(world.startGateway(one)).rejects.toThrow(
    'Two of KRAKEN_URL, COINBASE_URL and COINGECKO_URL must be set',
  );
  const cardsAlone = await world.startGateway({
    ...one,
    coinGeckoUrl: undefined,
    lndUrl: undefined,
    btcpayUrl: undefined,
  });
  await cardsAlone.close();
  for (const code of ['USD', 'DOGE', 'LBTC']) {
    const unfit = world.startGateway({ loneSourceCoins: [code] });
    await expect(unfit).rejects.toThrow(`RATE_LONE_SOURCE_COINS names "${code}"`);
  }
  const two = world.startGateway({ coinGeckoUrl: undefined, loneSourceCoins: ['XMR'] });
  await expect(two).rejects.toThrow('RATE_LONE_SOURCE_COINS names "XMR"');
});
