import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mock } from 'node:test';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type pg from 'pg';
import { readPayments } from '#catalogue';
import { createCoinbaseSource, createCoinGeckoSource, createKrakenSource, MarketRates, SharedRates } from '#connectors';
import type { ConsensusRate } from '#domain';
import { money, StoreUnavailableError } from '#kernel';
import { openPool } from '#postgres';
import { createMigratedDatabase, type TestDatabase, waitUntil } from '#testing';
import { startSandbox } from '../../../../apps/sandbox/src/sandbox.ts';
import { FakeClock } from '../../../testing/src/fake-clock.ts';

const { coins } = readPayments();
const SETTINGS = { maxSpreadPercent: 2, maxJumpPercent: 20, loneSourceCoins: [] };
const MINUTE = 60_000;
const JUMP = { code: 'upstream_unavailable', message: expect.stringMatching(/: the rate has jumped$/) };
const MOVING = {
  code: 'upstream_unavailable',
  retryAfterSeconds: expect.any(Number),
  message: expect.stringMatching(/: the rate moves too fast for its sources$/),
};
const THREE = ['/coinbase', '/coingecko', '/kraken'];

let database: TestDatabase;
let sandbox: Awaited<ReturnType<typeof startSandbox>>;
/** Forwards to the sandbox. The quotes of CoinGecko get the time of the test. */
let proxy: Server;
let url: string;
/** The sources that were called, through the proxy. */
let called: string[];
/** The time of the database; undefined: its own clock. */
let time: number | undefined;
let disposables: AsyncDisposableStack;

beforeAll(async () => {
  database = await createMigratedDatabase();
  sandbox = await startSandbox({ port: 0 });
  proxy = createServer(async ({ url: path = '' }, outgoing) => {
    called.push(path.slice(0, path.indexOf('/', 1)));
    const response = await fetch(sandbox.url + path);
    const text = await response.text();
    const seconds = Math.floor((time ?? Date.now()) / 1000);
    outgoing.writeHead(response.status).end(text.replace(/("last_updated_at":)\d+/, `$1${seconds}`));
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
});
beforeEach(async () => {
  disposables = new AsyncDisposableStack();
  [called, time] = [[], Date.now()];
  await openTestPool().query('delete from public.rate_quotes; delete from public.agreed_rates');
  await setRates({ btc_usd: '100', ltc_usd: '100', xmr_usd: '100' });
});
afterEach(() => disposables.disposeAsync());
afterAll(async () => {
  proxy.close();
  proxy.closeAllConnections();
  await sandbox.close();
  await database.drop();
});

function openTestPool(): pg.Pool {
  const pool = openPool({ connectionString: database.url, name: 'rates' });
  disposables.defer(() => pool.end());
  return pool;
}

const openShared = (pool = openTestPool()) => new SharedRates(pool, () => time ?? null);

/** Opens the exchange rates of a new gateway. */
function openGatewayRates({ at = url, pool = openTestPool() } = {}) {
  const sources = [
    createKrakenSource(`${at}/kraken`),
    createCoinbaseSource(`${at}/coinbase`),
    createCoinGeckoSource(`${at}/coingecko`),
  ];
  const market = { sources, coins, shared: openShared(pool) };
  const rates = new MarketRates(market, new FakeClock('2020-01-01T00:00:00.000Z'), SETTINGS, () => {});
  disposables.defer(() => rates.close());
  return async (coin: string) => (await rates.fetchUsdRate(coin)).value;
}

async function setRates(changes: object): Promise<void> {
  const response = await fetch(`${sandbox.url}/rates`, { method: 'PUT', body: JSON.stringify(changes) });
  expect(response.status).toBe(200);
}

function pass(milliseconds: number): void {
  time = (time ?? 0) + milliseconds;
}

describe('all gateways', () => {
  test('share one fetch from each source, and so the rate', async () => {
    const gateways = [openGatewayRates(), openGatewayRates(), openGatewayRates()];
    const fetches = gateways.flatMap((fetchRate) => Array.from({ length: 10 }, () => fetchRate('BTC')));
    expect(new Set(await Promise.all(fetches))).toEqual(new Set(['100']));
    expect(called.toSorted()).toEqual(THREE);
    await setRates({ btc_usd: '110' });
    pass(9_999);
    expect(await openGatewayRates()('BTC')).toBe('100');
    expect(called.toSorted()).toEqual(THREE);
  });

  test('sell at the new rate 10 s after all sources have fallen by 15 %', async () => {
    const gateways = [openGatewayRates(), openGatewayRates()];
    await Promise.all(gateways.map((fetchRate) => fetchRate('LTC')));
    await setRates({ ltc_usd: '85' });
    pass(10_000);
    for (const fetchRate of gateways) expect(await fetchRate('LTC')).toBe('85');
    // CoinGecko is called at most once a minute.
    expect(called.toSorted()).toEqual([...THREE, '/coinbase', '/kraken'].toSorted());
  });

  test('sell nothing 10 s after all sources have fallen by 40 %', async () => {
    const gateways = [openGatewayRates(), openGatewayRates()];
    await Promise.all(gateways.map((fetchRate) => fetchRate('LTC')));
    await setRates({ ltc_usd: '60' });
    pass(10_000);
    for (const fetchRate of gateways) await expect(fetchRate('LTC')).rejects.toMatchObject(JUMP);
  });

  test('accept only one of two first rates that differ too much', async () => {
    const other = await startSandbox({ port: 0 });
    disposables.defer(() => other.close());
    const gateways = [openGatewayRates(), openGatewayRates({ at: other.url })];
    const locker = await openTestPool().connect();
    // Both have read the empty history before either can write it.
    await locker.query('begin; lock table public.agreed_rates in share mode');
    const fetches = Promise.allSettled(gateways.map((fetchRate) => fetchRate('BTC')));
    await waitUntil(async () => {
      const { rows } = await locker.query(
        "select count(*) from pg_locks where relation = 'public.agreed_rates'::regclass and not granted",
      );
      return Number(rows[0].count) >= 2;
    });
    await locker.query('commit');
    locker.release();
    const rates = await fetches;
    expect(rates.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(rates).toContainEqual({ status: 'rejected', reason: expect.objectContaining(JUMP) });
  });

  test('measure ages by the clock of the database, not by their own', async () => {
    time = undefined;
    expect(await openGatewayRates()('BTC')).toBe('100');
    await openTestPool().query(`update public.rate_quotes
      set fetched_at = fetched_at - 10000, quoted_at = quoted_at - 10000, next_fetch_at = next_fetch_at - 10000`);
    await setRates({ btc_usd: '99' });
    expect(await openGatewayRates()('BTC')).toBe('99');
  });
});

test('a gateway that starts during a price spike rejects it, and accepts the true rate afterwards', async () => {
  expect(await openGatewayRates()('BTC')).toBe('100');
  await setRates({ btc_usd: '150' });
  pass(MINUTE);
  const started = openGatewayRates();
  await expect(started('BTC')).rejects.toMatchObject(JUMP);
  await setRates({ btc_usd: '101' });
  pass(10_000);
  expect(await started('BTC')).toBe('101');
  expect(await openGatewayRates()('BTC')).toBe('101');
});

describe('a coin with a slow source', () => {
  test('is not sold while its rate has moved by more than 5 % within ten minutes, while others are', async () => {
    const gateways = [openGatewayRates(), openGatewayRates()] as const;
    await Promise.all([gateways[0]('XMR'), gateways[1]('BTC')]);
    await setRates({ xmr_usd: '94', btc_usd: '94' });
    pass(MINUTE);
    await expect(gateways[0]('XMR')).rejects.toMatchObject(MOVING);
    expect(await gateways[1]('BTC')).toBe('94');
    await setRates({ xmr_usd: '100' });
    pass(MINUTE);
    await expect(openGatewayRates()('XMR')).rejects.toMatchObject(MOVING);
    // 94 was its rate in the second minute.
    pass(9 * MINUTE - 1);
    await expect(gateways[1]('XMR')).rejects.toMatchObject(MOVING);
    pass(1);
    expect(await gateways[1]('XMR')).toBe('100');
  });

  test('is sold while its rate moves by less, at quotes that are at most a minute old', async () => {
    const fetchRate = openGatewayRates();
    await fetchRate('XMR');
    await setRates({ xmr_usd: '101' });
    pass(MINUTE - 1);
    expect(await fetchRate('XMR')).toBe('100.5');
    pass(1);
    expect(await fetchRate('XMR')).toBe('101');
  });

  test('is each coin while fast sources fail', async () => {
    const fetchRate = openGatewayRates();
    await fetchRate('BTC');
    await setRates({ btc_usd: '94' });
    await setRates({ kraken: { BTC: null } });
    pass(MINUTE);
    await expect(fetchRate('BTC')).rejects.toMatchObject(MOVING);
    await setRates({ btc_usd: '94' });
    pass(3_000);
    expect(await fetchRate('BTC')).toBe('94');
  });
});

describe('a fetch', () => {
  test('of a process that has died is repeated after 4 s, and its late result has no effect', async () => {
    const dead = openShared();
    const sources = ['kraken', 'coinbase', 'coingecko'].map((name) => `${name} ${new URL(url).host}/${name}`);
    const claims = await dead.claim('BTC', sources);
    expect(claims.map(({ source }) => source).toSorted()).toEqual(sources.toSorted());
    pass(3_999);
    expect(await openShared().claim('BTC', sources)).toEqual([]);
    pass(1);
    expect(await openGatewayRates()('BTC')).toBe('100');
    for (const claim of claims) await dead.complete(claim, { price: money.parseUsd('1'), at: claim.claimedAt }, 10_000);
    for (const claim of claims) await dead.fail(claim);
    expect(await openGatewayRates()('BTC')).toBe('100');
    expect(called.toSorted()).toEqual(THREE);
  });

  test('from another address than before is not replaced by earlier quotes', async () => {
    await openGatewayRates()('BTC');
    await setRates({ btc_usd: '110' });
    expect(await openGatewayRates({ at: sandbox.url })('BTC')).toBe('110');
  });
});

test('a history is replaced by only one of several processes that have read it', async () => {
  const history: readonly ConsensusRate[] = [{ price: money.parseUsd('123456789012.123456789012'), at: 5 }];
  const stores = Array.from({ length: 8 }, () => openShared());
  for (const version of [0, 1]) {
    const replaced = await Promise.all(stores.map((store) => store.replaceHistory('BTC', version, history)));
    expect(replaced.filter(Boolean)).toHaveLength(1);
  }
  expect(await stores[0]?.read('BTC', [])).toMatchObject({ version: 2, history });
});

test('a rate costs one query while its quotes are new', async () => {
  const pool = openTestPool();
  const fetchRate = openGatewayRates({ pool });
  await fetchRate('BTC');
  const queries = jest.spyOn(pool, 'query');
  pass(9_999);
  for (let i = 0; i < 5; i++) await fetchRate('BTC');
  expect(queries).toHaveBeenCalledTimes(5);
});

test('no rate is available if the database does not respond for 5 s', async () => {
  const fetchRate = openGatewayRates();
  await fetchRate('BTC');
  const other = await openTestPool().connect();
  try {
    await other.query('begin; lock table public.agreed_rates');
    mock.timers.enable({ apis: ['setTimeout'] });
    const rate = expect(fetchRate('BTC')).rejects.toBeInstanceOf(StoreUnavailableError);
    mock.timers.tick(5_000);
    await rate;
  } finally {
    mock.timers.reset();
    await other.query('rollback');
    other.release();
  }
});
