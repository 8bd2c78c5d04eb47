import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Clock, type Rate } from '#application';
import { readPayments } from '#catalogue';
import { coinbase, kraken, MarketRates } from '#connectors';
import type { Coin } from '#domain';

const { coins } = readPayments();
const LIMITS = { loneRatePercent: 10 };
const NOON = '2026-11-20T12:00:00.000Z';

class HandClock extends Clock {
  current = Date.parse(NOON);

  milliseconds(): number {
    return this.current;
  }
}

type Answer = (response: ServerResponse) => void;

const json =
  (body: unknown, status = 200): Answer =>
  (response) =>
    void response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
const krakenSays = (price: unknown) => json({ error: [], result: { XXBTZUSD: { c: [price, '0.1'] } } });
const coinbaseSays = (amount: unknown) => json({ data: { amount, base: 'BTC', currency: 'USD' } });
const hangUp: Answer = (response) => void response.destroy();
const away = json('', 503);

let server: Server;
let url: string;
let answers: { kraken: Answer; coinbase: Answer };
let asked: string[];
let clock: HandClock;
let alarms: string[];
const alarm = (problem: string) => void alarms.push(problem);

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    (request.url?.startsWith('/kraken') ? answers.kraken : answers.coinbase)(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

beforeEach(() => {
  answers = { kraken: krakenSays('100000.00000'), coinbase: coinbaseSays('100100.00') };
  asked = [];
  alarms = [];
  clock = new HandClock();
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** Asks for the rate, with so much time between the questions. */
async function rates(questions = 1, waitMs = 0): Promise<Rate[]> {
  const market = new MarketRates(
    { sources: [kraken(`${url}/kraken`), coinbase(`${url}/coinbase`)], coins },
    clock,
    LIMITS,
    alarm,
  );
  const rates: Rate[] = [];
  try {
    for (let i = 0; i < questions; i++) {
      rates.push(await market.usdPer('BTC'));
      clock.current += waitMs;
    }
    return rates;
  } finally {
    await market.close();
  }
}

const unavailable = expect.objectContaining({ name: 'UpstreamFailure', code: 'upstream_unavailable' });

describe('a rate', () => {
  test('is asked for where Kraken and Coinbase have it', async () => {
    await rates();
    expect(asked.toSorted()).toEqual(['/coinbase/v2/prices/BTC-USD/spot', '/kraken/0/public/Ticker?pair=XBTUSD']);
  });

  test('names its source, and is text, so that no digit is lost', async () => {
    answers.kraken = krakenSays('123456789012.12345');
    answers.coinbase = away;
    expect(await rates()).toEqual([{ value: '123456789012.12345', source: 'kraken', at: NOON }]);
  });

  test.each([
    ['100000.1234567891', '100000.12345678'],
    ['100000.00000000', '100000.00000000'],
    ['100000', '100000'],
  ])('of %s has no more decimals than money can use: %s', async (price, rate) => {
    answers.kraken = krakenSays(price);
    expect(await rates()).toMatchObject([{ value: rate }]);
  });

  test('is that of the first source whenever it has one', async () => {
    const seen = await rates(3, 30_000);
    expect(seen).toMatchObject(Array(3).fill({ value: '100000.00000', source: 'kraken' }));
  });
});

describe('the rate of another coin', () => {
  const market = () =>
    new MarketRates({ sources: [kraken(`${url}/kraken`), coinbase(`${url}/coinbase`)], coins }, clock, LIMITS, alarm);

  test.each<[Coin, string, string, readonly string[]]>([
    ['LTC', 'XLTCZUSD', 'kraken', ['/coinbase/v2/prices/LTC-USD/spot', '/kraken/0/public/Ticker?pair=LTCUSD']],
    ['XMR', 'XXMRZUSD', 'kraken', ['/kraken/0/public/Ticker?pair=XMRUSD']],
    ['LBTC', 'XXBTZUSD', 'kraken', ['/coinbase/v2/prices/BTC-USD/spot', '/kraken/0/public/Ticker?pair=XBTUSD']],
  ])('%s is asked for by its own name, of those that have it', async (coin, pair, source, paths) => {
    answers = { kraken: json({ error: [], result: { [pair]: { c: ['80.5', '1'] } } }), coinbase: coinbaseSays('80.6') };
    const rates = market();
    expect(await rates.usdPer(coin)).toMatchObject({ value: '80.5', source });
    expect(asked.toSorted()).toEqual(paths);
    await rates.close();
  });

  test('is not mistaken for the one before', async () => {
    const rates = market();
    await rates.usdPer('BTC');
    answers = {
      kraken: json({ error: [], result: { XLTCZUSD: { c: ['80.5', '1'] } } }),
      coinbase: coinbaseSays('80.6'),
    };
    expect(await rates.usdPer('LTC')).toMatchObject({ value: '80.5' });
    expect(await rates.usdPer('BTC')).toMatchObject({ value: '100000.00000' });
    await rates.close();
  });
});

describe('a source', () => {
  const nonsense: readonly (readonly [string, unknown])[] = [
    ['a number', 100_000],
    ['nothing', undefined],
    ['null', null],
    ['no digits', ''],
    ['words', 'a lot'],
    ['zero', '0.00'],
    ['less than a hundred-millionth of a dollar', '0.000000001'],
    ['a negative number', '-100000'],
    ['an exponent', '1e5'],
    ['a number with separators', '100,000.00'],
    ['more than all', 'Infinity'],
    ['a list', ['100000']],
  ];

  test.each(nonsense)('that says %s is not believed', async (_, price) => {
    answers.kraken = krakenSays(price);
    expect(await rates()).toEqual([{ value: '100100.00', source: 'coinbase', at: NOON }]);
    answers = { kraken: krakenSays('100000.00000'), coinbase: coinbaseSays(price) };
    expect(await rates()).toEqual([{ value: '100000.00000', source: 'kraken', at: NOON }]);
  });

  test.each<[string, Answer]>([
    ['answers with an error', away],
    ['is rate limited', json({ error: ['EAPI:Rate limit exceeded'] }, 429)],
    ['has an error in a good answer, as Kraken does', json({ error: ['EQuery:Unknown asset pair'] })],
    ['sends an empty object', json({})],
    ['sends null', json('null')],
    ['sends a page', json('<html>maintenance</html>')],
    ['sends nothing', json('')],
    ['sends half an answer', json('{"error":[],"result":{"XXBTZ')],
    ['hangs up', hangUp],
    ['has another pair', json({ error: [], result: { XETHZUSD: { c: ['3000', '1'] } } })],
  ])('that %s leaves it to the other one', async (_, answer) => {
    answers.kraken = answer;
    expect(await rates()).toEqual([{ value: '100100.00', source: 'coinbase', at: NOON }]);
    answers = { kraken: krakenSays('100000.00000'), coinbase: answer };
    expect(await rates()).toEqual([{ value: '100000.00000', source: 'kraken', at: NOON }]);
  });

  test('that fails raises an alarm, also while the other one answers', async () => {
    await rates();
    expect(alarms).toEqual([]);
    answers.kraken = away;
    await rates();
    expect(alarms).toEqual(['the exchange rates of kraken cannot be had']);
  });

  test('that makes no sense any more is as good as one that is away: its last rate counts for ten minutes', async () => {
    const market = new MarketRates({ sources: [kraken(`${url}/kraken`)], coins }, clock, LIMITS, alarm);
    await market.usdPer('BTC');
    answers.kraken = krakenSays('0.00');
    clock.current += 599_999;
    expect(await market.usdPer('BTC')).toEqual({ value: '100000.00000', source: 'kraken', at: NOON });
    clock.current += 1;
    await expect(market.usdPer('BTC')).rejects.toEqual(unavailable);
    await market.close();
  });
});

describe('a source that is down', () => {
  const market = () =>
    new MarketRates({ sources: [kraken(`${url}/kraken`), coinbase(`${url}/coinbase`)], coins }, clock, LIMITS, alarm);
  const value = async (rates: MarketRates) => (await rates.usdPer('BTC')).value;

  test.each<[string, 'kraken' | 'coinbase', string]>([
    ['the first', 'kraken', '109000.00'],
    ['the second', 'coinbase', '91000.00'],
  ])('does not vote: the other one serves alone, near to what both said (%s)', async (_, down, rate) => {
    const rates = market();
    await value(rates);
    answers = { kraken: krakenSays(rate), coinbase: coinbaseSays(rate), [down]: away };
    clock.current += 30_000;
    expect(await value(rates)).toBe(rate);
    await rates.close();
  });

  test('leaves the other one alone, which is not believed far from what both said in the last ten minutes', async () => {
    const rates = market();
    await value(rates);
    answers = { kraken: away, coinbase: coinbaseSays('1001000.00') };
    clock.current += 30_000;
    await expect(value(rates)).rejects.toMatchObject({ message: expect.stringContaining('known before') });
    answers.coinbase = coinbaseSays('100500.00');
    clock.current += 3_000;
    expect(await value(rates)).toBe('100500.00');
    await rates.close();
  });

  test('votes again with its first answer', async () => {
    const rates = market();
    await value(rates);
    answers.kraken = away;
    clock.current += 30_000;
    expect(await value(rates)).toBe('100100.00');
    answers.kraken = krakenSays('100050.00000');
    clock.current += 3_000;
    expect(await value(rates)).toBe('100050.00000');
    answers.kraken = krakenSays('150000.00000');
    clock.current += 30_000;
    await expect(value(rates)).rejects.toMatchObject({ message: expect.stringContaining('contradict each other') });
    await rates.close();
  });

  test('and the other one serve again three seconds after they agree', async () => {
    answers.coinbase = coinbaseSays('150000.00');
    const rates = market();
    await expect(value(rates)).rejects.toEqual(unavailable);
    answers.coinbase = coinbaseSays('100100.00');
    clock.current += 2_999;
    await expect(value(rates)).rejects.toEqual(unavailable);
    clock.current += 1;
    expect(await value(rates)).toBe('100000.00000');
    await rates.close();
  });
});

describe('there is no rate', () => {
  test.each<[string, Answer, Answer]>([
    ['both sources are away', away, hangUp],
    ['none of them makes sense', krakenSays('0'), json('<html>')],
    ['they contradict each other', krakenSays('100000'), coinbaseSays('102000.01')],
    ['they contradict each other the other way round', krakenSays('100000'), coinbaseSays('97999.99')],
    ['one of them has lost its decimal point', krakenSays('100000.00'), coinbaseSays('10000000')],
  ])('while %s', async (_, first, second) => {
    answers = { kraken: first, coinbase: second };
    await expect(rates()).rejects.toEqual(unavailable);
  });

  test('when no source is configured', async () => {
    await expect(new MarketRates({ sources: [], coins }, clock, LIMITS, alarm).usdPer('BTC')).rejects.toEqual(
      unavailable,
    );
  });
});
