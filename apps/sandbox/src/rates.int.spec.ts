import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { extendDelay } from '#testing';
import { startSandbox } from './sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeEach(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterEach(() => sandbox.close());

const get = (path: string) => fetch(sandbox.url + path);
const kraken = (pair = 'XBTUSD') => get(`/kraken/0/public/Ticker?pair=${pair}`);
const coinbase = (pair = 'BTC-USD') => get(`/coinbase/v2/prices/${pair}/spot`);
const coingecko = (ids = 'bitcoin') =>
  get(`/coingecko/api/v3/simple/price?ids=${ids}&vs_currencies=usd&precision=full&include_last_updated_at=true`);
const put = (body: unknown) => fetch(`${sandbox.url}/rates`, { method: 'PUT', body: JSON.stringify(body) });
const now = () => Math.floor(Date.now() / 1000);

const AT_FIRST = {
  kraken: { BTC: '100000.00', LTC: '100.00', XMR: '200.00' },
  coinbase: { BTC: '100000.00', LTC: '100.00' },
  coingecko: { BTC: '100000.00', LTC: '100.00', XMR: '200.00' },
};

describe('exchange rates', () => {
  test('start at 100,000 USD for a bitcoin, in the formats of all sources', async () => {
    const quote = ['100000.00000', '1', '1.000'];
    const ticker = expect.objectContaining({ a: quote, b: quote, c: ['100000.00000', '0.00100000'] });
    expect(await (await kraken()).json()).toEqual({ error: [], result: { XXBTZUSD: ticker } });
    expect(await (await coinbase()).json()).toEqual({ data: { amount: '100000.00', base: 'BTC', currency: 'USD' } });
    const at = now();
    const { bitcoin } = (await (await coingecko()).json()) as { bitcoin: { usd: number; last_updated_at: number } };
    expect(bitcoin.usd).toBe(100_000);
    expect([at, at + 1]).toContain(bitcoin.last_updated_at);
  });

  test('exist for every coin of a source, under the names of the source', async () => {
    expect(await (await get('/rates')).json()).toEqual(AT_FIRST);
    expect(await (await kraken('LTCUSD,XMRUSD')).json()).toMatchObject({
      result: { XLTCZUSD: { c: ['100.00000', '0.00100000'] }, XXMRZUSD: { c: ['200.00000', '0.00100000'] } },
    });
    expect(await (await coinbase('LTC-USD')).json()).toMatchObject({ data: { amount: '100.00', base: 'LTC' } });
    expect((await coinbase('XMR-USD')).status).toBe(404);
    expect(await (await coingecko('litecoin,monero,nope')).json()).toMatchObject({
      litecoin: { usd: 100 },
      monero: { usd: 200 },
    });
  });

  test('can be changed for all sources or for one', async () => {
    await put({ btc_usd: '64000.125', xmr_usd: '0.00000125' });
    expect(await (await coinbase()).json()).toMatchObject({ data: { amount: '64000.125' } });
    expect(await (await coingecko('monero')).text()).toContain('"usd":0.00000125');
    await put({ kraken: '63000', coingecko: { LTC: '99', XMR: { times: '1.03' } } });
    expect(await (await get('/rates')).json()).toEqual({
      kraken: { BTC: '63000.00', LTC: '100.00', XMR: '0.00000125' },
      coinbase: { BTC: '64000.125', LTC: '100.00' },
      coingecko: { BTC: '64000.125', LTC: '99.00', XMR: '0.00000128' },
    });
  });

  test('exist for a new coin once its true rate is set', async () => {
    await put({ doge_usd: '0.25' });
    expect(await (await kraken('DOGEUSD')).json()).toMatchObject({
      result: { DOGEUSD: { c: ['0.25000', '0.00100000'] } },
    });
    expect((await coinbase('DOGE-USD')).status).toBe(200);
    expect(await (await coingecko('doge')).json()).toMatchObject({ doge: { usd: 0.25 } });
    expect((await coinbase('NOPE-USD')).status).toBe(404);
  });

  test('can fail at one source, and work there again after a true rate is set', async () => {
    await put({ kraken: null });
    expect([(await kraken()).status, (await coinbase()).status]).toEqual([503, 200]);
    await put({ btc_usd: '50000', coinbase: { LTC: null } });
    expect([(await kraken()).status, (await coinbase()).status]).toEqual([200, 200]);
    expect((await coinbase('LTC-USD')).status).toBe(503);
  });

  test('can be old, delayed or invalid', async () => {
    await put({ coingecko: { BTC: { age_s: 3600, delay_ms: 30 } } });
    const delayed = extendDelay(30);
    const before = now();
    const responded = coingecko();
    await delayed.started;
    delayed.end();
    const { bitcoin } = (await (await responded).json()) as { bitcoin: { last_updated_at: number } };
    expect(bitcoin.last_updated_at).toBeGreaterThanOrEqual(before - 3600);
    expect(bitcoin.last_updated_at).toBeLessThanOrEqual(now() - 3600);
    const nonsense = { BTC: { nonsense: true } };
    await put({ kraken: nonsense, coinbase: nonsense, coingecko: nonsense });
    expect(await (await kraken()).json()).toMatchObject({
      result: { XXBTZUSD: { a: ['100000.00000', '1', '1.000'], b: ['200000.00000', '1', '1.000'] } },
    });
    expect(await (await coinbase()).json()).toMatchObject({ data: { amount: 'NaN' } });
    expect(await (await coingecko()).json()).toMatchObject({ bitcoin: { usd: null } });
  });

  test('of an unknown pair are an error with status 200 at Kraken', async () => {
    const response = await kraken('XBTUSD,NOPE');
    expect([response.status, await response.json()]).toEqual([200, { error: ['EQuery:Unknown asset pair'] }]);
  });

  test.each([
    [{ btc_usd: 64_000 }],
    [{ btc_usd: '0' }],
    [{ btc_usd: '1e5' }],
    [{ btc_usd: null }],
    [{ bitstamp: '1' }],
    [{ kraken: [] }],
    [{ coinbase: { XMR: '1' } }],
    [{ kraken: { BTC: { age: 1 } } }],
    [{ kraken: { BTC: { delay_ms: -1 } } }],
    [{ kraken: { BTC: { nonsense: 1 } } }],
    [[]],
  ])('are not changed by the invalid request %j', async (body) => {
    expect((await put(body)).status).toBe(400);
    expect(await (await get('/rates')).json()).toEqual(AT_FIRST);
  });
});
