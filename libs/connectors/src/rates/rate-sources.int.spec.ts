import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Agent } from 'undici';
import { createCoinbaseSource, createCoinGeckoSource, createKrakenSource } from '#connectors';
import { formatUsd } from '#kernel';
import { type StubHandler, StubServer } from '../../../testing/src/servers/stub-server.ts';
import type { RateSource } from './rate-sources.ts';

const NOON = Date.parse('2026-11-20T12:00:00.000Z');
const NAMES = { kraken: ['XBTUSD', 'XXBTZUSD'], coinbase: 'BTC-USD', coingecko: 'bitcoin' } as const;

const server = new StubServer();
/** Resolves every hostname to this host. */
const dispatcher = new Agent({
  maxResponseSize: 65_536,
  connect: { lookup: (_, __, found) => found(null, [{ address: '127.0.0.1', family: 4 }]) },
});
let url: string;

beforeAll(async () => {
  url = await server.listen();
});

afterAll(async () => {
  await dispatcher.close();
  await server.close();
});

const json =
  (body: unknown, status = 200, headers = {}): StubHandler =>
  (response) =>
    void response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));

/** Returns the price and its time from a source that sends this response. */
async function price(source: RateSource, answers: StubHandler, timeoutMs = 60_000): Promise<readonly [string, string]> {
  server.handler = answers;
  const { price: each, at } = await source.fetchPrice(NAMES, { now: NOON, timeoutMs, dispatcher });
  return [formatUsd(each), new Date(at).toISOString()];
}

const ticker = (last: string, [bid, ask] = [last, last]) =>
  json(`{"error":[],"result":{"XXBTZUSD":{"a":[${ask},"1"],"b":[${bid},"1"],"c":[${last},"0.1"]}}}`);
const spot = (amount: string, base = 'BTC', currency = 'USD') =>
  json(`{"data":{"amount":${amount},"base":"${base}","currency":"${currency}"}}`);
const simple = (usd: string, seconds: string = String(NOON / 1000 - 30)) =>
  json(`{"bitcoin":{"usd":${usd},"last_updated_at":${seconds}}}`);

const SOURCES: readonly (readonly [string, () => RateSource, (price: string) => StubHandler])[] = [
  ['kraken', () => createKrakenSource(url), ticker],
  ['coinbase', () => createCoinbaseSource(url), spot],
  ['coingecko', () => createCoinGeckoSource(url), simple],
];

test.each([
  ['kraken', () => createKrakenSource(url), ticker('"1"'), '/0/public/Ticker?pair=XBTUSD'],
  ['coinbase', () => createCoinbaseSource(url), spot('"1"'), '/v2/prices/BTC-USD/spot'],
  [
    'coingecko',
    () => createCoinGeckoSource(url),
    simple('1'),
    '/api/v3/simple/price?ids=bitcoin&vs_currencies=usd&include_last_updated_at=true&precision=full',
  ],
])('%s is called with its own path', async (_, source, answers, path) => {
  await price(source(), answers);
  expect(server.requests.at(-1)?.line).toBe(`GET ${path}`);
});

describe.each(SOURCES)('%s', (_, source, saying) => {
  test.each([
    ['100000.12345678', '100000.12345678'],
    ['999999999999.123456789012345678', '999999999999.123456789012'],
    ['0.000000000001', '0.000000000001'],
  ])('parses %s without losing a pico-USD', async (said, read) => {
    const text = saying === simple ? said : `"${said}"`;
    expect((await price(source(), saying(text)))[0]).toBe(read);
  });

  test.each([
    '""',
    '"a lot"',
    '"0.00"',
    '"0.0000000000001"',
    '"-100000"',
    '-1',
    '"1e5"',
    '1e5',
    '"100,000.00"',
    '"Infinity"',
    '"0x10"',
    '" 1"',
    '"1."',
    '".5"',
    'null',
    'true',
    '["100000"]',
    '{"usd":"1"}',
    `"1${'0'.repeat(12)}"`,
    `"0.${'1'.repeat(31)}"`,
    `1${'0'.repeat(400)}`,
  ])('rejects the price %s', async (said) => {
    await expect(price(source(), saying(said))).rejects.toThrow();
  });

  test.each<[string, StubHandler]>([
    ['responds with status 503', json('', 503)],
    ['sends a redirect', json('', 302, { location: '/' })],
    ['limits requests', json({ error: ['EAPI:Rate limit exceeded'] }, 429)],
    ['sends an error with status 200, like Kraken', json({ error: ['EQuery:Unknown asset pair'] })],
    ['sends an empty object', json({})],
    ['sends null', json('null')],
    ['sends a number', json('1')],
    ['sends an HTML page', json('<html>maintenance</html>')],
    ['sends an empty response', json('')],
    ['sends incomplete JSON', json('{"error":[],"result":{"XXBTZ')],
    ['closes the connection', (response) => void response.destroy()],
    ['sends too many bytes', json(`{"bitcoin":{"usd":1,"last_updated_at":1},"more":"${'x'.repeat(65_536)}"}`)],
  ])('has no price if the source %s', async (_, answers) => {
    await expect(price(source(), answers)).rejects.toThrow();
  });
});

describe('kraken', () => {
  test.each([
    ['the `ask` price is below the bid', ['"101"', '"100"']],
    ['the last trade is far above the `ask` price', ['"90"', '"98"']],
    ['the last trade is far below the bid', ['"102.1"', '"103"']],
    ['the bid is zero', ['"0"', '"100"']],
  ] as const)('has no price if %s', async (_, [bid, ask]) => {
    await expect(price(createKrakenSource(url), ticker('"100"', [bid, ask]))).rejects.toThrow();
  });

  test('has the price of the last trade with the time of the request', async () => {
    expect(await price(createKrakenSource(url), ticker('"100"', ['"99.5"', '"100.5"']))).toEqual([
      '100',
      '2026-11-20T12:00:00.000Z',
    ]);
  });

  test('has no price if the response is for another pair', async () => {
    const eth = { a: ['3000'], b: ['3000'], c: ['3000'] };
    await expect(price(createKrakenSource(url), json({ error: [], result: { XETHZUSD: eth } }))).rejects.toThrow();
  });

  test('has no price if the response also has an error', async () => {
    const btc = { a: ['1'], b: ['1'], c: ['1'] };
    const answers = json({ error: ['EService:Deadline elapsed'], result: { XXBTZUSD: btc } });
    await expect(price(createKrakenSource(url), answers)).rejects.toThrow('error response: EService:Deadline elapsed');
  });
});

test('coinbase has no price if the response is for another currency or coin', async () => {
  await expect(price(createCoinbaseSource(url), spot('"1"', 'BTC', 'EUR'))).rejects.toThrow();
  await expect(price(createCoinbaseSource(url), spot('"1"', 'LTC'))).rejects.toThrow();
});

test('a price without a time has the time of the request minus the age of the response in a cache', async () => {
  const cached = json({ data: { amount: '1', base: 'BTC', currency: 'USD' } }, 200, { age: '45' });
  expect(await price(createCoinbaseSource(url), cached)).toEqual(['1', '2026-11-20T11:59:15.000Z']);
});

describe('coingecko', () => {
  test('has the time of the price, at most the current time', async () => {
    expect(await price(createCoinGeckoSource(url), simple('1'))).toEqual(['1', '2026-11-20T11:59:30.000Z']);
    expect(await price(createCoinGeckoSource(url), simple('1', String(NOON / 1000 + 60)))).toEqual([
      '1',
      '2026-11-20T12:00:00.000Z',
    ]);
  });

  test.each([String(NOON), String(NOON / 1000 + 61), 'null', '-1', '1.5', '"now"', '[]'])(
    'has no price with the invalid time %s',
    async (seconds) => {
      await expect(price(createCoinGeckoSource(url), simple('1', seconds))).rejects.toThrow();
    },
  );

  test('sends its key in the header of the plan that its host belongs to', async () => {
    await price(
      createCoinGeckoSource(url, () => 'CG-1'),
      simple('1'),
    );
    expect(server.requests.at(-1)?.headers).toMatchObject({ 'x-cg-demo-api-key': 'CG-1' });
    await price(
      createCoinGeckoSource(url.replace('127.0.0.1', 'pro-api.coingecko.invalid'), () => 'CG-2'),
      simple('1'),
    );
    expect(server.requests.at(-1)?.headers).toMatchObject({ 'x-cg-pro-api-key': 'CG-2' });
  });
});

test.each<[string, StubHandler]>([
  ['does not respond', () => {}],
  [
    'sends an endless response',
    (response) => {
      const dripping = setInterval(() => response.write(' '), 5);
      response.on('close', () => clearInterval(dripping));
    },
  ],
])('a source that %s has no price after the timeout', async (_, answers) => {
  await expect(price(createCoinbaseSource(url), answers, 50)).rejects.toThrow();
});
