import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Agent } from 'undici';
import { createCoinbaseSource, createCoinGeckoSource, createKrakenSource } from '#connectors';
import { formatUsd } from '#kernel';
import { type StubHandler, StubServer } from '../../../testing/src/servers/stub-server.ts';
import type { RateSource } from './rate-sources.ts';

const NOON = Date.parse('2026-11-20T12:00:00.000Z');
const NAMES = { kraken: ['XBTUSD', 'XXBTZUSD'], coinbase: 'BTC-USD', coingecko: 'bitcoin' } as const;

const server = new StubServer();
/** Finds every host here. */
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

/** Asks a source that answers so. Prices are as they stand in JSON: with quotes, or as numbers. */
async function price(source: RateSource, answers: StubHandler, timeoutMs = 3_000): Promise<readonly [string, string]> {
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
])('%s is asked where it has a price', async (_, source, answers, path) => {
  await price(source(), answers);
  expect(server.requests.at(-1)?.line).toBe(`GET ${path}`);
});

describe.each(SOURCES)('%s', (_, source, saying) => {
  test.each([
    ['100000.12345678', '100000.12345678'],
    ['999999999999.123456789012345678', '999999999999.123456789012'],
    ['0.000000000001', '0.000000000001'],
  ])('that says %s loses no digit that money has', async (said, read) => {
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
  ])('that says %.40s says no price', async (said) => {
    await expect(price(source(), saying(said))).rejects.toThrow();
  });

  test.each<[string, StubHandler]>([
    ['answers with an error', json('', 503)],
    ['sends a price elsewhere', json('', 302, { location: '/' })],
    ['is rate limited', json({ error: ['EAPI:Rate limit exceeded'] }, 429)],
    ['has an error in a good answer, as Kraken does', json({ error: ['EQuery:Unknown asset pair'] })],
    ['sends an empty object', json({})],
    ['sends null', json('null')],
    ['sends a number', json('1')],
    ['sends a page', json('<html>maintenance</html>')],
    ['sends nothing', json('')],
    ['sends half an answer', json('{"error":[],"result":{"XXBTZ')],
    ['hangs up', (response) => void response.destroy()],
    ['sends too much', json(`{"bitcoin":{"usd":1,"last_updated_at":1},"more":"${'x'.repeat(65_536)}"}`)],
  ])('that %s says no price', async (_, answers) => {
    await expect(price(source(), answers)).rejects.toThrow();
  });
});

describe('kraken', () => {
  test.each([
    ['is asked for less than is bid', ['"101"', '"100"']],
    ['was traded far above what is asked', ['"90"', '"98"']],
    ['was traded far below what is bid', ['"102.1"', '"103"']],
    ['is not bid for', ['"0"', '"100"']],
  ] as const)('is not understood of a coin that %s', async (_, [bid, ask]) => {
    await expect(price(createKrakenSource(url), ticker('"100"', [bid, ask]))).rejects.toThrow();
  });

  test('has the price of the last trade, and was asked for it now', async () => {
    expect(await price(createKrakenSource(url), ticker('"100"', ['"99.5"', '"100.5"']))).toEqual([
      '100',
      '2026-11-20T12:00:00.000Z',
    ]);
  });

  test('has no price of another pair', async () => {
    const eth = { a: ['3000'], b: ['3000'], c: ['3000'] };
    await expect(price(createKrakenSource(url), json({ error: [], result: { XETHZUSD: eth } }))).rejects.toThrow();
  });

  test('is not believed beside an error', async () => {
    const btc = { a: ['1'], b: ['1'], c: ['1'] };
    const answers = json({ error: ['EService:Deadline elapsed'], result: { XXBTZUSD: btc } });
    await expect(price(createKrakenSource(url), answers)).rejects.toThrow('it says EService:Deadline elapsed');
  });
});

test('coinbase has no price in another currency, or of another coin', async () => {
  await expect(price(createCoinbaseSource(url), spot('"1"', 'BTC', 'EUR'))).rejects.toThrow();
  await expect(price(createCoinbaseSource(url), spot('"1"', 'LTC'))).rejects.toThrow();
});

test('an answer that has lain in a cache is as old as that', async () => {
  const cached = json({ data: { amount: '1', base: 'BTC', currency: 'USD' } }, 200, { age: '45' });
  expect(await price(createCoinbaseSource(url), cached)).toEqual(['1', '2026-11-20T11:59:15.000Z']);
});

describe('coingecko', () => {
  test('says when its price was so; a clock that is a little ahead does no harm', async () => {
    expect(await price(createCoinGeckoSource(url), simple('1'))).toEqual(['1', '2026-11-20T11:59:30.000Z']);
    expect(await price(createCoinGeckoSource(url), simple('1', String(NOON / 1000 + 60)))).toEqual([
      '1',
      '2026-11-20T12:00:00.000Z',
    ]);
  });

  test.each([String(NOON), String(NOON / 1000 + 61), 'null', '-1', '1.5', '"now"', '[]'])(
    'that says it was so at %s says no price',
    async (seconds) => {
      await expect(price(createCoinGeckoSource(url), simple('1', seconds))).rejects.toThrow();
    },
  );

  test('has its key in a header, by the plan that the address is of', async () => {
    await price(createCoinGeckoSource(url, 'CG-1'), simple('1'));
    expect(server.requests.at(-1)?.headers).toMatchObject({ 'x-cg-demo-api-key': 'CG-1' });
    await price(createCoinGeckoSource(url.replace('127.0.0.1', 'pro-api.coingecko.invalid'), 'CG-2'), simple('1'));
    expect(server.requests.at(-1)?.headers).toMatchObject({ 'x-cg-pro-api-key': 'CG-2' });
  });
});

test.each<[string, StubHandler]>([
  ['does not answer', () => {}],
  [
    'answers for ever',
    (response) => {
      const dripping = setInterval(() => response.write(' '), 5);
      response.on('close', () => clearInterval(dripping));
    },
  ],
])('a source that %s has no price when its time is over', async (_, answers) => {
  await expect(price(createCoinbaseSource(url), answers, 50)).rejects.toThrow();
});
