import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { startSandbox } from './sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeEach(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterEach(() => sandbox.close());

const get = (path: string) => fetch(sandbox.url + path);
const kraken = () => get('/kraken/0/public/Ticker?pair=XBTUSD');
const coinbase = () => get('/coinbase/v2/prices/BTC-USD/spot');
const put = (body: unknown) => fetch(`${sandbox.url}/rates`, { method: 'PUT', body: JSON.stringify(body) });

describe('exchange rates', () => {
  test('are 100,000 USD at first, in the shapes of both sources', async () => {
    const quote = ['100000.00000', '1', '1.000'];
    const ticker = expect.objectContaining({ a: quote, b: quote, c: ['100000.00000', '0.00100000'] });
    expect(await (await kraken()).json()).toEqual({ error: [], result: { XXBTZUSD: ticker } });
    expect(await (await coinbase()).json()).toEqual({ data: { amount: '100000.00', base: 'BTC', currency: 'USD' } });
  });

  test('can be changed, for both sources or for one', async () => {
    expect(await (await put({ btc_usd: '64000.125' })).json()).toEqual({ kraken: '64000.125', coinbase: '64000.125' });
    expect(await (await coinbase()).json()).toMatchObject({ data: { amount: '64000.125' } });
    expect(await (await put({ kraken: '63000' })).json()).toEqual({ kraken: '63000.00', coinbase: '64000.125' });
    expect(await (await kraken()).json()).toMatchObject({ result: { XXBTZUSD: { c: ['63000.00000', '0.00100000'] } } });
  });

  test('of other coins have the names of their sources, and any coin may be given one', async () => {
    await put({ doge_usd: '0.25' });
    const ticker = (await (await get('/kraken/0/public/Ticker?pair=LTCUSD,XMRUSD,DOGEUSD')).json()) as {
      result: Record<string, { c: string[] }>;
    };
    const prices = Object.entries(ticker.result).map(([pair, { c }]) => [pair, c[0]]);
    expect(prices).toEqual([
      ['XLTCZUSD', '100.00000'],
      ['XXMRZUSD', '200.00000'],
      ['DOGEUSD', '0.25000'],
    ]);
    const at = async (coin: string) => (await get(`/coinbase/v2/prices/${coin}-USD/spot`)).status;
    expect([await at('DOGE'), await at('XMR'), await at('NOPE')]).toEqual([200, 404, 404]);
  });

  test('can fail, one source at a time, and come back', async () => {
    await put({ kraken: null });
    expect([(await kraken()).status, (await coinbase()).status]).toEqual([503, 200]);
    await put({ btc_usd: '50000' });
    expect((await kraken()).status).toBe(200);
  });

  test('of an unknown pair are an error with status 200 at Kraken', async () => {
    const response = await get('/kraken/0/public/Ticker?pair=XBTUSD,NOPE');
    expect([response.status, await response.json()]).toEqual([200, { error: ['EQuery:Unknown asset pair'] }]);
  });

  test.each([
    [{ btc_usd: 64_000 }],
    [{ btc_usd: '0' }],
    [{ btc_usd: '1e5' }],
    [{ btc_usd: null }],
    [{ bitstamp: '1' }],
    [[]],
  ])('are not changed by %j', async (body) => {
    expect((await put(body)).status).toBe(400);
    expect(await (await get('/rates')).json()).toEqual({ kraken: '100000.00', coinbase: '100000.00' });
  });
});
