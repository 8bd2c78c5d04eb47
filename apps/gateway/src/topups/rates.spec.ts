import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Clock } from '#application';
import { readPayments } from '#catalogue';
import { coinbase, kraken, MarketRates } from '#connectors';
import { type TestAccount, World } from '#testing';

let world: World;
let account: TestAccount;
beforeAll(async () => {
  world = await World.open();
  account = await world.account();
});
beforeEach(() => setRates({ btc_usd: '100000' }));
afterAll(() => world.close());

async function setRates(rates: object): Promise<void> {
  expect((await world.send('PUT', '/rates', { api: world.sandbox, body: rates })).status).toBe(200);
}

/** By a gateway that has not asked for a rate yet. */
async function topUp(currency = 'USD', amount = 1) {
  const api = await world.anotherGateway();
  return world.post('/topup/create/btc-lightning', { amount, currency }, account, api);
}

// A process keeps a rate for a while. Here the one that credits asks for none but this.
test('a payment that settles later than a minute after the invoice expired is worth the rate of its time', async () => {
  const { body: invoice } = await topUp();
  await setRates({ btc_usd: '50000' });
  await world.pay(invoice.lightning_invoice, { late: true, settled_at: invoice.expires_at + 90 });
  await world.until(async () => (await world.get(`/topup/status/${invoice.invoice_id}`)).body.status === 'Settled');
  expect(await world.balance(account)).toBe('0.525');
  const received = (await world.facts()).findLast(({ type }) => type === 'PaymentReceived');
  expect(received).toMatchObject({
    data: { amount: '500000000000', bonus: '25000000000', rate: { value: '50000.00000', source: 'kraken' } },
  });
});

describe('a top-up', () => {
  test('is sold at the rate of the market', async () => {
    await setRates({ btc_usd: '64000' });
    expect((await topUp()).body.crypto_amount_due).toBe(0.00001563);
    await setRates({ btc_usd: '0.5' });
    expect((await topUp()).body.crypto_amount_due).toBe(2);
  });

  test('is sold at the first source as long as the other is within two hundredths of it', async () => {
    await setRates({ kraken: '100000', coinbase: '101900' });
    expect((await topUp()).body.crypto_amount_due).toBe(0.00001);
    await setRates({ kraken: '100000', coinbase: '98100' });
    expect((await topUp()).body.crypto_amount_due).toBe(0.00001);
  });

  test.each([
    ['kraken', null, '0.00002'],
    ['coinbase', null, '0.00001'],
  ])('is sold at the other source when %s fails', async (source, rate, due) => {
    await setRates({ kraken: '100000', coinbase: '50000', [source]: rate });
    expect((await topUp()).body.crypto_amount_due).toBe(Number(due));
  });

  test.each([
    ['contradict each other', { kraken: '100000', coinbase: '102100' }, /contradict/],
    ['contradict each other downwards', { kraken: '100000', coinbase: '97900' }, /contradict/],
    ['are both away', { kraken: null, coinbase: null }, /No exchange rate/],
  ])('is refused while the sources %s, in whatever currency, and no invoice is made', async (_, rates, message) => {
    await setRates(rates);
    const before = await world.facts();
    for (const [currency, amount] of [
      ['USD', 1],
      ['SATS', 1000],
      ['BTC', 0.00001],
    ] as const) {
      const { status, body } = await topUp(currency, amount);
      expect(status).toBe(503);
      expect(body).toMatchObject({ status: 'error', statusCode: 503, message: expect.stringMatching(message) });
      expect(body.error).toMatchObject({ code: 'upstream_unavailable', type: 'upstream_unavailable' });
    }
    expect(await world.facts()).toEqual(before);
  });
});

describe('a rate', () => {
  class HandClock extends Clock {
    now_ms = 1_800_000_000_000;
    milliseconds(): number {
      return this.now_ms;
    }
  }
  const open = () => {
    const clock = new HandClock();
    const sources = [kraken(`${world.sandbox}/kraken`), coinbase(`${world.sandbox}/coinbase`)];
    return {
      clock,
      rates: new MarketRates({ sources, coins: readPayments().coins }, clock, { loneRatePercent: 10 }, () => {}),
    };
  };
  const rateOf = async (rates: MarketRates) => Number((await rates.usdPer('BTC')).value);

  test('is kept for half a minute, and then asked for again', async () => {
    const { clock, rates } = open();
    expect(await rateOf(rates)).toBe(100_000);
    await setRates({ btc_usd: '90000' });
    clock.now_ms += 29_999;
    expect(await rateOf(rates)).toBe(100_000);
    clock.now_ms += 1;
    expect(await rateOf(rates)).toBe(90_000);
    await rates.close();
  });

  test('outlives the failure of its sources for ten minutes, and no longer', async () => {
    const { clock, rates } = open();
    expect(await rateOf(rates)).toBe(100_000);
    await setRates({ kraken: null, coinbase: null });
    clock.now_ms += 599_999;
    expect(await rateOf(rates)).toBe(100_000);
    clock.now_ms += 1;
    await expect(rates.usdPer('BTC')).rejects.toMatchObject({ code: 'upstream_unavailable' });
    await rates.close();
  });

  test('is asked for again soon after a failure, but not with every top-up', async () => {
    const { clock, rates } = open();
    await setRates({ kraken: null, coinbase: null });
    await expect(rates.usdPer('BTC')).rejects.toThrow();
    await setRates({ btc_usd: '100000' });
    clock.now_ms += 2_999;
    await expect(rates.usdPer('BTC')).rejects.toThrow();
    clock.now_ms += 1;
    expect(await rateOf(rates)).toBe(100_000);
    await rates.close();
  });

  test('of a source that failed is not held against the other, as long as that is believable', async () => {
    const { clock, rates } = open();
    expect(await rateOf(rates)).toBe(100_000);
    await setRates({ kraken: null, coinbase: '105000' });
    clock.now_ms += 60_000;
    expect(await rateOf(rates)).toBe(105_000);
    await setRates({ coinbase: '150000' });
    clock.now_ms += 30_000;
    await expect(rates.usdPer('BTC')).rejects.toThrow(/contradict/);
    clock.now_ms += 540_000;
    expect(await rateOf(rates)).toBe(150_000);
    await rates.close();
  });
});
